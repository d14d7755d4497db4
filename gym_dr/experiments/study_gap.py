"""The gap of a study: how much more an oracle returns than a policy without memory, and which variants are these.

The oracle sees what the memoryless policy would have to remember: the draw, or all observations. Between the two, only
what policies observe and remember should differ, so their steps, their critics and their draws must be the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gym_dr.errors import ConfigError, check_known
from gym_dr.options import check_fields
from gym_dr.randomization.context import OBSERVATION
from gym_dr.randomization.rules import Rule
from gym_dr.randomization.spec import Randomization

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet
    from gym_dr.experiments.study_file import Variant

SENSORS = "obs_"  # disturbances whose names begin like this change only what a policy observes
# options that make a critic
CRITIC = ("critic_context", "hidden_sizes", "activation", "init", "normalize_observations", "ignored_sensors")


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The variants that a study states the gap of: the table ``gap`` of its file."""

    memoryless: str
    policy: tuple[str, ...]  # one or several
    oracle: str

    @property
    def variants(self) -> tuple[str, ...]:
        """All of them."""
        return self.memoryless, *self.policy, self.oracle

    def to_dict(self) -> dict[str, Any]:
        """The form of ``study.json``."""
        return {"memoryless": self.memoryless, "policy": list(self.policy), "oracle": self.oracle}


def read_gap(table: Mapping[str, Any], variants: Sequence[Variant]) -> Gap:
    """Reads the table ``gap`` of a study and checks that its variants can be compared.

    Raises:
        UnknownNameError: A key or a variant is unknown.
        ConfigError: A variant is missing or named twice, or steps, critics or draws differ.
    """
    one = table.get("policy")
    given = check_fields(Gap, {**table, "policy": [one]} if isinstance(one, str) else table)
    fields = [field.name for field in dataclasses.fields(Gap)]
    if lacking := [name for name in fields if not given.get(name)]:
        raise ConfigError(f"expected the variants {', '.join(fields)}; got no {' and no '.join(lacking)}.")
    gap = Gap(**given)
    by_name = {variant.name: variant for variant in variants}
    for name in gap.variants:
        check_known("variant", name, by_name)
    if len(set(gap.variants)) < len(gap.variants):
        raise ConfigError(f"expected distinct variants, got {', '.join(gap.variants)}.")
    compared = [by_name[name] for name in gap.variants]
    _check_steps(compared)
    _check_critics(compared)
    _check_draws(compared)
    return gap


def judged_on(gap: Gap, variants: Sequence[Variant], sets: Sequence[CellSet]) -> dict[str, dict[str, str]]:
    """The sets that the gap is stated on: name -> variant -> name of the set that this variant is judged on.

    If all variants were trained with the same sensors, these are all sets. Otherwise each variant is judged with the
    sensors that it was trained with, on a set whose other draws are the same; the name is that of the memoryless
    variant's set. There always is one: the training draws.
    """
    trained = {variant.name: variant.config.randomization for variant in variants if variant.name in gap.variants}
    sensors = {name: _split(randomization)[1] for name, randomization in trained.items()}
    if all(own == sensors[gap.oracle] for own in sensors.values()):
        return {cells.name: dict.fromkeys(gap.variants, cells.name) for cells in sets}
    drawn = {cells.name: _split(cells.randomization) for cells in sets if cells.kind in ("nominal", "distribution")}
    found = {}
    for name, (others, seen) in drawn.items():
        if seen == sensors[gap.memoryless]:
            alike = [(cells, with_these) for cells, (draws, with_these) in drawn.items() if draws == others]
            own = {v: next((cells for cells, these in alike if these == sensors[v]), "") for v in gap.variants}
            if all(own.values()):
                found[name] = own
    return found


def _split(randomization: Randomization | None) -> tuple[Any, dict[str, Rule]]:
    """What is drawn of the physics, to compare, and the rules of what policies observe of it."""
    given = randomization or Randomization()
    sensors = {name: rule for name, rule in given.items() if name.startswith(SENSORS)}
    physics = given.without(sensors)
    return (physics.rules, physics.correlation), sensors


def _check_steps(variants: Sequence[Variant]) -> None:
    """Checks that all make the same number of environment steps, which must be known in advance."""
    budgets = {variant.name: variant.budget for variant in variants}
    if len(set(budgets.values())) > 1 or None in budgets.values():
        steps = {name: "by episodes" if budget is None else f"{budget:,}" for name, budget in budgets.items()}
        raise ConfigError(f"expected equal numbers of environment steps, got {_listed(steps)}.")


def _check_critics(variants: Sequence[Variant]) -> None:
    """Checks that critics have the same networks, and that all or none of them see the draw."""
    critics = {variant.name: _critic(variant) for variant in variants}
    for option in ("algorithm", *CRITIC):
        values = {name: repr(critic[option]) for name, critic in critics.items()}
        if len(set(values.values())) > 1:
            raise ConfigError(f"expected the same critic in all, got {option} {_listed(values)}.")
    own = [name for name, critic in critics.items() if critic["own_memory"]]
    if 0 < len(own) < len(variants):
        raise ConfigError(
            f"expected the same critic in all, got critics with a memory of their own in {', '.join(own)} only. Let "
            "all critics see the draw instead: critic_context = true."
        )
    # a critic observes what its policy observes, and with critic_context the draw as well
    shown = [variant.name for variant in variants if variant.config.settings.context == OBSERVATION]
    if 0 < len(shown) < len(variants) and not critics[shown[0]]["critic_context"]:
        raise ConfigError(
            f"expected the same critic in all, got critics that see the draw in {', '.join(shown)}, whose policies "
            "observe it, and in no other. Let all critics see it: critic_context = true."
        )
    pasts = {variant.name: str(variant.config.past) for variant in variants}
    if len(set(pasts.values())) > 1 and not critics[variants[0].name]["critic_context"]:
        raise ConfigError(
            f"expected the same critic in all, got critics that observe another past: {_listed(pasts)}. Let all "
            "critics see the draw as well: critic_context = true."
        )


def _critic(variant: Variant) -> dict[str, Any]:
    """What makes its critic: the algorithm, and the options that shape the network; None for those it lacks."""
    options = variant.config.options
    remembers = getattr(options, "memory", "none") != "none" and not getattr(options, "critic_context", False)
    shapes = {name: getattr(options, name, None) for name in CRITIC}
    return {"algorithm": variant.algorithm.name, "own_memory": remembers, **shapes}


def _check_draws(variants: Sequence[Variant]) -> None:
    """Checks that all train on the same physics, which is also what critics see that observe the draw."""
    first, *others = variants
    for variant in others:
        if _draws(variant) != _draws(first):
            raise ConfigError(
                f"expected the same training draws in all but for what policies observe ({SENSORS}...), got others in "
                f"{variant.name} than in {first.name}."
            )


def _draws(variant: Variant) -> tuple[Any, ...]:
    """What is drawn in training, apart from sensors, and how."""
    config = variant.config
    return _split(config.randomization)[0], config.settings.sampler, config.sampler_options


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{value} in {name}" for name, value in values.items())
