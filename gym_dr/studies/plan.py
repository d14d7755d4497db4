"""Defines a study and reads it from a file, with all checks before anything is trained."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gym_dr.errors import ConfigError, check_known, located, shortened
from gym_dr.evaluation.evaluate import check_success
from gym_dr.evaluation.sets import TRAINING, corners, draws, grid, sobol
from gym_dr.evaluation.suite import sets_of
from gym_dr.options import check_fields, expect, is_whole
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.files import read_table
from gym_dr.randomization.presets import presets, resolve
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import RunConfig, RunSettings, check_not_reserved
from gym_dr.runs.configure import build_config, file_beside
from gym_dr.runs.sources import check_source
from gym_dr.studies.contrasts import Contrast, pair
from gym_dr.studies.factors import SEEDS, Design, read_design
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS, find_algorithm
from gym_dr.version import WRITTEN_BY, __version__
from gym_dr.wording import counted, listed

if TYPE_CHECKING:
    from gym_dr.evaluation.sets import CellSet

FORMAT, VERSION = "gym_dr study", 1
# besides one for each algorithm and sampler
TABLES = ("settings", "randomization", "randomize", "variants", "factors", "design", "evaluation", "comparisons")
OF_THE_FILE = ("env", "seed")  # settings that variants cannot override
DRAWS = ("randomization", "randomize")
NAME = re.compile(r"\w[\w.+-]{0,63}", re.ASCII)  # of a variant, which has a folder of that name
Plan = TypeVar("Plan")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to train."""

    name: str
    algorithm: Algorithm
    config: RunConfig  # with the study's first seed
    seeds: tuple[int, ...]

    def with_seed(self, seed: int) -> RunConfig:
        """The configuration of its run with a seed."""
        return dataclasses.replace(self.config, settings=dataclasses.replace(self.config.settings, seed=seed))

    @property
    def content(self) -> dict[str, Any]:
        """What distinguishes it from others: its configuration in the form of ``config.json``, without the seed."""
        form: dict[str, Any] = json.loads(self.config.to_json())
        del form["seed"]
        return form

    @property
    def budget(self) -> int | None:
        """Environment steps of one run, including reset steps; None if they depend on the length of episodes."""
        each = self.config.steps_per_update
        return None if each is None else int(self.config.options.updates * each)


@dataclass(frozen=True, kw_only=True, repr=False)
class Study:
    """Variants, seeds, evaluation sets and contrasts."""

    env: str
    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]
    sets: tuple[CellSet, ...]
    success: float | None  # None for the environment's own threshold
    contrasts: tuple[Contrast, ...]
    unequal_budgets: bool = False  # whether they are allowed
    references: tuple[str, ...] = ()  # variants that show what is possible; with any, the study states regret
    notes: tuple[str, ...] = ()  # about the sets

    @cached_property
    def budgets(self) -> dict[str, int | None]:
        """Environment steps of one run of each variant."""
        return {variant.name: variant.budget for variant in self.variants}

    @cached_property
    def seeds_of(self) -> dict[str, tuple[int, ...]]:
        """The seeds that each variant is trained with."""
        return {variant.name: variant.seeds for variant in self.variants}

    @property
    def counts(self) -> str:
        """How many seeds variants have, as text."""
        few, most = (end(len(seeds) for seeds in self.seeds_of.values()) for end in (min, max))
        return counted(most, "seed") if few == most else f"{few} to {most} seeds"

    def same_budget(self) -> bool:
        """Whether all variants train for the same number of environment steps."""
        found = {*self.budgets.values()}
        return len(found) == 1 and (None not in found or len(self.budgets) == 1)

    def same_steps(self, contrast: Contrast) -> bool:
        """Whether a contrast compares only variants that train for the same number of environment steps."""
        sums: dict[int | None, float] = {}
        for variant, weight in contrast.weights.items():
            sums[self.budgets[variant]] = sums.get(self.budgets[variant], 0.0) + weight
        return None not in sums and all(abs(total) < 1e-9 for total in sums.values())

    def __repr__(self) -> str:
        return f"Study({listed([variant.name for variant in self.variants])} on {self.env}, {self.counts} each)"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``study.json``: the whole study, resolved."""
        return {
            "format": FORMAT,
            WRITTEN_BY: __version__,
            "version": VERSION,
            "env": self.env,
            "unequal_budgets": self.unequal_budgets,
            "variants": {
                v.name: {"steps": v.budget, "seeds": list(v.seeds), "config": v.content} for v in self.variants
            },
            "evaluation": {
                "success": self.success,
                "sets": [cells.to_dict() for cells in self.sets],
                "references": list(self.references),
            },
            "contrasts": [dataclasses.asdict(contrast) for contrast in self.contrasts],
        }


@dataclass(frozen=True, kw_only=True)
class _Head:
    """The top-level keys of a file that are not tables."""

    env: str = RunSettings.env
    algorithm: str | None = None
    seeds: tuple[int, ...] = ()
    reserved_seeds: tuple[int, ...] = ()
    unequal_budgets: bool = False


@dataclass(frozen=True, kw_only=True)
class _Evaluation:
    """The table ``evaluation`` without its tables; the keys are those of ``gym_dr.evaluate``."""

    episodes: int | None = None
    success: float | None = None
    protocol: str | None = None
    corners: bool = False
    sobol: int | None = None
    sobol_box: int | None = None
    references: tuple[str, ...] = ()  # variants


@dataclass(frozen=True, kw_only=True)
class _Comparisons:
    """The table ``comparisons``."""

    baseline: str | None = None
    pairs: tuple[tuple[str, ...], ...] = ()


def read_study(given: str | Path | Mapping[str, Any], trust: Collection[str] = ()) -> Study:
    """Reads a study from a TOML or JSON file, or from a mapping of the same content, and checks all of it.

    Raises:
        UnknownNameError: A key, variant, setting, environment, preset or parameter is unknown.
        ConfigError: The file cannot be read; two variants have the same name or content; there are no seeds, or
            reserved ones; budgets differ; or a value cannot be used.
        RandomizationError: A range is impossible.
    """
    return read_plan(given, trust, _read)


def read_plan(
    given: str | Path | Mapping[str, Any],
    trust: Collection[str],
    read: Callable[[Mapping[str, Any], Path | None], Plan],
) -> Plan:
    """Reads what a user gave as a file or as its content; ``read`` gets the content and the file, if it is one."""
    load_plugins()
    if isinstance(given, Mapping):
        return read(given, None)
    table = read_table(given)
    with located(given):
        check_source(str(table.get("env", "")), trust)
        return read(table, Path(given))


def _read(table: Mapping[str, Any], file: Path | None) -> Study:
    parts = [name for name in table if name in ALGORITHMS or name in SAMPLERS]
    top = {name: value for name, value in table.items() if name not in (*TABLES, *parts)}
    head = _Head(**check_fields(_Head, top, also=(*TABLES, *ALGORITHMS, *SAMPLERS)))
    _check_seeds(head)
    factors, crossing = inner_table(table, "factors"), inner_table(table, "design")
    if crossing and not factors:
        raise ConfigError("[design]: expected tables of factors to cross, such as [factors.sampler.adr]; got none.")
    design = read_design(factors, crossing) if factors else None
    variants = _variants(table, design, head, file)
    used = {v.algorithm.name for v in variants} | {v.config.settings.sampler for v in variants}
    if unused := set(parts) - used:
        raise ConfigError(f"[{unused.pop()}]: expected options of an algorithm or sampler that a variant uses.")
    where = inner_table(table, "evaluation")
    named = {name: randomization_beside(file, value) for name, value in inner_table(where, "sets").items()}
    chosen = {name: value for name, value in where.items() if name not in ("grid", "sets")}
    evaluation = _Evaluation(**check_fields(_Evaluation, chosen, also=("grid", "sets")))
    notes: list[str] = []
    with located("[evaluation]"):
        for name in evaluation.references:
            check_known("variant", name, [variant.name for variant in variants])
        sets = _sets(head.env, variants, evaluation, inner_table(where, "grid"), named, notes.append)
    study = Study(
        env=head.env,
        seeds=head.seeds,
        variants=variants,
        sets=tuple(sets),
        success=evaluation.success,
        contrasts=(*(design.contrasts() if design else ()), *_pairs(table, variants)),
        unequal_budgets=head.unequal_budgets,
        references=tuple(dict.fromkeys(evaluation.references)),
        notes=tuple(notes),
    )
    if not (study.same_budget() or study.unequal_budgets):
        steps = ", ".join(f"{name} {describe_budget(budget)}" for name, budget in study.budgets.items())
        raise ConfigError(
            f"Expected equal budgets of environment steps, got {steps}. Make them equal, or set unequal_budgets = true "
            "to allow and mark unequal ones."
        )
    return study


def _sets(
    env: str,
    variants: Sequence[Variant],
    evaluation: _Evaluation,
    axes: Mapping[str, Any],
    named: Mapping[str, Any],
    note: Callable[[str], None],
) -> list[CellSet]:
    """Nominal values, training draws and the sets asked for, without draws that are among the latter too."""
    check_success(evaluation.success)
    if evaluation.protocol is not None:
        check_known("protocol", evaluation.protocol, ("dre",))
    space = variants[0].config.space
    trained = _trained(variants, space)
    asked = [draws(name) for name in ("random", "extreme")] if evaluation.protocol else []
    asked += [grid(**axes)] if axes else []
    asked += [] if evaluation.sobol is None else [sobol(evaluation.sobol)]
    asked += [corners()] if evaluation.corners else []
    asked += [] if evaluation.sobol_box is None else [sobol(evaluation.sobol_box, box=True)]
    asked += [draws(value, name=name) for name, value in named.items()]
    found = sets_of(env, space, asked, trained, evaluation.episodes)
    for text in [text for cells in found for text in cells.notes]:
        note(text)
    known = [cells.definition for cells in found if cells.kind == "distribution" and cells.name not in trained]
    return [cells for cells in found if cells.name not in trained or cells.definition not in known]


def describe_budget(budget: int | None) -> str:
    """A budget of environment steps as text."""
    return "by episodes" if budget is None else f"{budget:,}"


def _check_seeds(head: _Head) -> None:
    check_distinct("seeds", head.seeds)
    check_distinct("reserved_seeds", head.reserved_seeds)
    if not head.seeds:
        raise ConfigError("seeds: expected at least one, such as seeds = [1, 2, 3, 4, 5]; got none.")
    check_not_reserved("seeds", head.seeds, head.reserved_seeds)


def check_distinct(name: str, seeds: Sequence[int]) -> None:
    """Checks a list of seeds."""
    if len(set(seeds)) != len(seeds) or min(seeds, default=0) < 0:
        raise ConfigError(f"{name}: expected distinct whole numbers of at least 0, got {shortened(seeds)}.")


def _variants(table: Mapping[str, Any], design: Design | None, head: _Head, file: Path | None) -> tuple[Variant, ...]:
    """The variants of the file, those of its factors first."""
    combined, named = design.variants() if design else {}, inner_table(table, "variants")
    if not (named or combined):
        raise ConfigError("variants: expected at least one table, such as [variants.nominal]; got none.")
    known: dict[str, str] = {}
    for name in (*combined, *named):
        if not isinstance(name, str) or not NAME.fullmatch(name):  # a mapping of Python may have any key
            raise ConfigError(f"variants: expected a name of letters, digits and _.+- (at most 64), got {name!r}.")
        if (other := known.setdefault(name.casefold(), name)) != name or (name in combined and name in named):
            raise ConfigError(  # some file systems ignore case
                f"variants: expected names that differ in more than case, got {other!r} and {name!r}."
            )
    variants: list[Variant] = []
    given = {**combined, **named}
    for name in given:
        place = f"[factors]: {name}" if name in combined else f"[variants.{name}]"
        with located(place):
            own = inner_table(given, name)
            made = make_variant(name, own, table, file, env=head.env, algorithm=head.algorithm, seeds=head.seeds)
            check_not_reserved("seeds", made.seeds, made.config.settings.reserved_seeds)
        variants.append(made)
    return tuple(variants)


def make_variant(
    name: str,
    own: Mapping[str, Any],
    table: Mapping[str, Any],
    file: Path | None,
    *,
    env: str,
    algorithm: str | None,
    seeds: tuple[int, ...],
) -> Variant:
    """Makes a variant.

    Args:
        name: Its name.
        own: Its settings, options, draws and number of seeds.
        table: The whole content of the file; its tables have those that ``own`` lacks.
        file: The file; None if there is none.
        env: Id of the environment.
        algorithm: Name of the algorithm, unless ``own`` has one.
        seeds: All seeds of the file; it has the first ones if ``own`` has a number of seeds.

    Raises:
        UnknownNameError: A key or name is unknown.
        ConfigError: A value cannot be used.
        RandomizationError: A range is impossible.
    """
    chosen = own.get("algorithm", algorithm)
    if not isinstance(chosen, str):
        raise ConfigError(f"algorithm: expected a name, here or at the top of the file, got {shortened(chosen)}.")
    found = find_algorithm(chosen)
    if found.policy_loader() is None:
        raise ConfigError(f"algorithm {chosen!r} has no load_policy: its runs cannot be evaluated.")
    number = own.get(SEEDS, len(seeds))
    whole = is_whole(number) and 1 <= number <= len(seeds)
    expect(whole, SEEDS, f"how many of the study's seeds to use, from 1 to {len(seeds)}", number)
    draws = {key: own.get(key, table.get(key)) for key in DRAWS}
    if "randomization" in own and "randomize" not in own:
        draws["randomize"] = None  # the common one belongs to the common randomization
    draws["randomization"] = randomization_beside(file, draws["randomization"])
    common = inner_table(table, "settings")
    sampler = SAMPLERS.get(str(own.get("sampler", common.get("sampler", UNIFORM))))
    given = {**common, **inner_table(table, found.name), **inner_table(table, sampler.name)}
    given |= {key: value for key, value in own.items() if key not in ("algorithm", SEEDS, *DRAWS)}
    for key in OF_THE_FILE:
        if key in given:
            raise ConfigError(f"{key}: expected at the top of the file, since all runs share it.")
    # runs are not evaluated after training: the study or tuning evaluates them
    given = {"eval_episodes": 0, **given, "env": env, "seed": seeds[0]}
    config = build_config(found, given, **draws, by_seed=False)  # the same for all seeds
    return Variant(name=name, algorithm=found, config=config, seeds=seeds[:number])


def _trained(variants: Sequence[Variant], space: ParamSpace | None) -> dict[str, Randomization]:
    """Distinct training randomizations, by the names of the sets of their draws: that of a preset or a variant."""
    known = {} if space is None else {resolve(name, space): name for name in presets(space.name)}
    found: dict[Randomization, str] = {}
    for variant in variants:
        if rule := variant.config.randomization:
            name = known.get(rule, variant.name)
            found.setdefault(rule, variant.name if name in found.values() else name)
    return {f"{TRAINING}: {name}": rule for rule, name in found.items()}


def _pairs(table: Mapping[str, Any], variants: Sequence[Variant]) -> list[Contrast]:
    """The variants to compare; by default none if factors say what to compare."""
    if "comparisons" not in table and table.get("factors"):
        return []
    given = _Comparisons(**check_fields(_Comparisons, inner_table(table, "comparisons")))
    if given.pairs and given.baseline:
        raise ConfigError("[comparisons]: expected baseline or pairs, got both.")
    names = [variant.name for variant in variants]
    baseline = given.baseline or names[0]
    pairs = given.pairs or [(name, baseline) for name in names if name != baseline]
    for chosen in (*pairs, (baseline,)):
        for name in chosen:
            check_known("variant", name, names)
    if wrong := [chosen for chosen in pairs if len(chosen) != 2 or chosen[0] == chosen[1]]:
        raise ConfigError(f"[comparisons]: pairs: expected two variants in each, got {shortened(list(wrong[0]))}.")
    return [pair(*chosen) for chosen in dict.fromkeys(pairs)]


def randomization_beside(file: Path | None, value: Any) -> Any:
    """A randomization that a file names; a path is relative to the file."""
    return file_beside(file, value) if isinstance(value, str) and file is not None else value


def inner_table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table in a file; empty if there is none."""
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise ConfigError(f"{key}: expected a table, got {shortened(found)}.")
    return found
