"""Sets of conditions to play policies under: ``gym_dr.grid``, ``corners``, ``sobol`` and ``draws`` make them.

What a set holds depends on the environment, and for some on the randomizations that policies were trained on. So it
becomes cells (see ``CellSet``) when both are known.
"""

from __future__ import annotations

import hashlib
import json
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, shortened
from gym_dr.evaluation import cells
from gym_dr.evaluation.cells import SET_KINDS, CellSet
from gym_dr.options import is_number, is_whole
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.presets import CUSTOM, NONE, presets, resolve, with_rules
from gym_dr.randomization.space import ParamSpace, ranges_of, switches_needed
from gym_dr.randomization.spec import Randomization, Rule, as_rule
from gym_dr.wording import exact_text

if TYPE_CHECKING:  # torch is heavy
    from gym_dr.policies.frozen import FrozenPolicy

EPISODES, CELL_EPISODES, POINT_EPISODES = 100, 20, 5  # of draws and nominal values, of a cell, of a Sobol point
TRAINING = "training"
DEFAULT = "default"  # the preset to play if what policies were trained on is unknown
MAX_NAMED = 4  # rules in a name

Trained = Mapping[str, Randomization]  # distinct training randomizations, by the names of the sets of their draws


@dataclass(frozen=True, repr=False)
class EvaluationSet:
    """Conditions under which all policies of an evaluation are played."""

    text: str  # how it was made
    # its cells in an environment; the number is that of episodes of each cell, for sets that do not say how many
    cells: Callable[[ParamSpace, Trained, int | None], list[CellSet]]

    def __repr__(self) -> str:
        return self.text


SetLike = Any  # an EvaluationSet, or what ``draws`` takes: the name of a preset, a file, a mapping, a Randomization


def grid(*, episodes: int | None = None, **axes: tuple[float, float, int]) -> EvaluationSet:
    """Every combination of values of some parameters; all others are nominal.

    Example:
        >>> gym_dr.evaluate("runs/first", sets=[gym_dr.grid(gravity=(-12, -2, 11), wind_power=(0, 20, 5))])

    Args:
        episodes: Episodes of each cell; None for 20.
        **axes: name=(lowest, highest, count), both ends included.

    Raises:
        ConfigError: An axis describes no values.
    """
    values = {name: _axis(name, given) for name, given in axes.items()}
    _check_episodes(episodes)

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        return [cells.grid(space, values, episodes or default or CELL_EPISODES)]

    return EvaluationSet(f"grid({', '.join(f'{name}={given}' for name, given in axes.items())})", make)


def corners(*, episodes: int | None = None) -> EvaluationSet:
    """The corners of the box of all training ranges.

    Args:
        episodes: Episodes of each corner; None for 20.
    """
    _check_episodes(episodes)

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        return [cells.corners(cells.training_box(space, trained.values()), episodes or default or CELL_EPISODES)]

    return EvaluationSet("corners()", make)


def sobol(points: int, *, box: bool = False, episodes: int | None = None) -> EvaluationSet:
    """Points that fill each training distribution evenly, for sensitivity indices.

    Args:
        points: How many, a power of 2; from 4 on there are indices.
        box: Whether they fill the box of all training ranges instead, no matter how rarely training drew its parts.
        episodes: Episodes of each point; None for 5.
    """
    _check_episodes(episodes)

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        each = episodes or default or POINT_EPISODES
        if box:
            return [cells.sobol_box(cells.training_box(space, trained.values()), points, each)]
        varied = {of: randomization for of, randomization in trained.items() if cells.varies(space, randomization)}
        if not varied:
            raise cells.nothing_varies()
        return [cells.sobol(sobol_name(of), rules, space, points, each) for of, rules in varied.items()]

    return EvaluationSet(f"sobol({points}{', box=True' if box else ''})", make)


def draws(randomization: Any = None, /, *, name: str = "", episodes: int | None = None, **params: Any) -> EvaluationSet:
    """New draws in each episode, or values that you choose.

    Example:
        >>> gym_dr.draws("wide")
        >>> gym_dr.draws(gravity=-3, wind_power=15)  # exactly these values; others are nominal
        >>> gym_dr.draws("wide", gravity=gym_dr.Uniform(-4, -2), name="weak")

    Args:
        randomization: What is drawn, in any form that an environment takes; None for nothing.
        name: Name of the set; empty for one that says what it holds.
        episodes: Episodes; None for 100.
        **params: name=value, which replaces a draw, or name=rule, which replaces the rule of ``randomization``.
    """
    _check_episodes(episodes)
    rules = {key: value for key, value in params.items() if not isinstance(value, numbers.Real)}
    exact = {key: value for key, value in params.items() if key not in rules}

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        return [_chosen(space, randomization, rules, exact, name, episodes or default or EPISODES)]

    given = [repr(randomization)] if randomization is not None else []
    return EvaluationSet(f"draws({', '.join([*given, *(f'{key}={value!r}' for key, value in params.items())])})", make)


def sobol_name(training: str) -> str:
    """The name of a Sobol set through training draws, whose own set is ``training``, ``training: NAME`` or a preset."""
    return f"sobol{training.removeprefix(TRAINING) if training.startswith(TRAINING) else f': {training}'}"


def sets_of(
    env: str, space: ParamSpace | None, sets: SetLike | Sequence[SetLike], trained: Trained, episodes: int | None
) -> list[CellSet]:
    """The cells of nominal values, of the training draws, and of further sets.

    Args:
        env: Id of the environment, for messages.
        space: Its parameters; None if it has none.
        sets: Further ones.
        trained: Distinct training randomizations.
        episodes: Episodes of each cell of sets that do not say how many; None for their own defaults.

    Raises:
        ConfigError: The environment has no parameters, or two sets have the same name.
        UnknownNameError: There is no such parameter or preset.
        RandomizationError: A value is out of bounds.
    """
    _check_episodes(episodes)
    count = episodes or EPISODES
    found = [cells.nominal(count)]
    found += [cells.distribution(name, randomization, count) for name, randomization in trained.items()]
    several = sets if isinstance(sets, Sequence) and not isinstance(sets, str) else [sets]
    for one in several:
        if space is None:
            raise ConfigError(f"{env} has no parameters to vary: expected no sets, got {shortened(one)}.")
        made = one if isinstance(one, EvaluationSet) else draws(one)
        for each in made.cells(space, trained, episodes):
            same = [other for other in found if other.name == each.name]
            if any(other.to_dict() != each.to_dict() for other in same):
                raise ConfigError(f"Two sets are named {each.name!r}. Give one of them another name.")
            found += [] if same else [each]
    return found


def training_sets(policies: Sequence[FrozenPolicy]) -> dict[str, Randomization]:
    """Distinct training randomizations of policies, by the names of the sets of their draws; nominal values are none.

    A single one is called "training", several "training: PRESET" or "training: NAME". If all are unknown, it is the
    preset "default", by its own name.
    """
    space = policies[0].space
    if all(policy.randomization is None for policy in policies):
        return {} if space is None or DEFAULT not in presets(space.name) else {DEFAULT: resolve(DEFAULT, space)}
    owners: dict[Randomization, FrozenPolicy] = {}
    for policy in policies:
        if policy.randomization:
            owners.setdefault(policy.randomization, policy)
    if len(owners) == 1:
        return dict.fromkeys([TRAINING], next(iter(owners)))
    found = {}
    for randomization, policy in owners.items():
        preset = policy.trained_on
        named = preset == CUSTOM or preset in {other.name for other in policies}  # the preset's name would be ambiguous
        found[f"{TRAINING}: {policy.name if named else preset}"] = randomization
    return found


def sets_for(
    policies: Sequence[FrozenPolicy], sets: SetLike | Sequence[SetLike] = (), episodes: int | None = None
) -> list[CellSet]:
    """The sets on which policies are evaluated, with the training draws of all that are no references."""
    trained = training_sets([policy for policy in policies if not policy.reference])
    return sets_of(policies[0].env, policies[0].space, sets, trained, episodes)


def cells_to_play(policy: FrozenPolicy, draws: SetLike | None, episodes: int) -> CellSet:
    """What to play with a policy: draws that the user chose, or else those of its training.

    Raises:
        ConfigError: The environment has no parameters.
    """
    if draws is None:
        return sets_for([policy], (), episodes)[-1]
    cells = sets_of(policy.env, policy.space, draws, {}, episodes)[-1]
    if cells.num_cells > 1:
        raise ConfigError(f"Expected draws or values to play, such as `gym_dr.draws('wide')`, got {draws!r}.")
    return cells


def _axis(name: str, given: Any) -> Array:
    """The values of a parameter on a grid, both ends included.

    Raises:
        ConfigError: The ends and the count describe no values.
    """
    numbers = list(given) if isinstance(given, list | tuple) else []
    if len(numbers) != 3 or not (is_number(numbers[0]) and is_number(numbers[1]) and is_whole(numbers[2])):
        raise ConfigError(
            f"`grid`: {name}: expected (lowest, highest, count), such as (-12, -2, 11), finite and with a whole count, "
            f"got {shortened(given)}."
        )
    low, high, count = numbers
    if count < 1 or low > high or (low == high) != (count == 1):
        raise ConfigError(
            f"`grid`: {name}: both ends are included, so expected the lowest first and a count of at least 2, "
            f"or 1 for a single value, got {low:g}, {high:g} and {count}."
        )
    return np.linspace(low, high, count)


def _check_episodes(episodes: int | None) -> None:
    if episodes is not None and not (is_whole(episodes) and episodes >= 1):
        raise ConfigError(f"`episodes`: expected a whole number of at least 1, got {shortened(episodes)}.")


# ---- draws and values that a user chooses ----------------------------------------------------------------------------


def _chosen(
    space: ParamSpace, whole: Any, rules: Mapping[str, Any], exact: Mapping[str, float], name: str, episodes: int
) -> CellSet:
    """The set of draws and of values that replace draws; see ``draws``."""
    values = space.check(exact)
    drawn = with_rules(whole, rules, space) if rules else resolve(NONE if whole is None else whole, space)
    ranges = ranges_of(drawn, space)
    asked = {key: ends for key, ends in ranges.items() if key in rules}
    on = switches_needed(space, asked | {key: (value, value) for key, value in values.items()}, ranges)
    fixed = {**values, **on}
    if not (drawn or fixed or name):
        return cells.nominal(episodes)
    parts = [] if whole is None else [_name(whole, space)]
    parts += [f"{key}={_rule_text(as_rule(rule))}" for key, rule in rules.items()]
    parts += [f"{key}={exact_text(values[key])}" for key in space.in_order(values)]
    name = name or ", ".join(parts)
    if name.split(":")[0] in (*SET_KINDS, TRAINING):
        raise ConfigError(f"{name!r} is the name of a kind of set. Choose another name.")
    made = cells.distribution(name, drawn, episodes, fixed) if drawn else cells.fixed(name, fixed, episodes)
    return replace(made, switched_on=tuple(on))


def _rule_text(rule: Rule) -> str:
    number = isinstance(rule.distribution, Constant) and rule.operation == "absolute"
    return exact_text(rule.distribution.support[0]) if number else repr(rule)


def _name(randomization: Any, space: ParamSpace) -> str:
    """The name of a preset or of a file; a mapping is named after its rules, or if they are many by a digest."""
    if isinstance(randomization, str) and randomization in presets(space.name):
        return randomization
    if isinstance(randomization, str | os.PathLike):
        path = Path(os.fspath(randomization))
        return path.name if path.stem in presets(space.name) else path.stem
    found = randomization if isinstance(randomization, Randomization) else Randomization.from_dict(randomization)
    if len(found) <= MAX_NAMED and found.correlation is None:
        return ", ".join(f"{name}={_rule_text(rule)}" for name, rule in found.items()) or NONE
    return f"{CUSTOM} {hashlib.sha256(json.dumps(found.to_dict(), sort_keys=True).encode()).hexdigest()[:8]}"
