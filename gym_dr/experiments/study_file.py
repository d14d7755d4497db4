"""Defines a study and reads it from a file, with all checks before anything is trained."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gym_dr.errors import ConfigError, check_known, located, shortened, unknown_name
from gym_dr.evaluation.sets import TRAINING, corners, draws, grid, sets_of, sobol
from gym_dr.experiments.evaluate import check_success
from gym_dr.experiments.study_factors import Design, read_design
from gym_dr.experiments.study_gap import Gap, read_gap
from gym_dr.options import check_fields, expect
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.files import read_table
from gym_dr.randomization.presets import presets, resolve
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import SETTINGS, RunConfig, RunSettings, check_not_reserved
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import check_module
from gym_dr.runs.given import file_beside, option_names, sampler_option_names
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS, find_algorithm
from gym_dr.version import WRITTEN_BY, __version__
from gym_dr.wording import addressing, counted, listed

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet

FORMAT, VERSION = "gym_dr study", 1
# besides one for each algorithm and sampler
TABLES = (
    *("settings", "randomization", "randomize", "variants", "factors", "design", "evaluation", "comparisons", "gap"),
)
OF_THE_FILE = ("env", "seed")  # settings that variants cannot override
NAME = re.compile(r"\w[\w.+-]{0,63}", re.ASCII)  # of a variant, which has a folder of that name
Plan = TypeVar("Plan")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to train."""

    name: str
    algorithm: Algorithm
    config: RunConfig  # with the study's first seed

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
    """Variants, seeds, evaluation sets, comparisons and the gap."""

    env: str
    seeds: tuple[int, ...]
    reserved_seeds: tuple[int, ...]
    variants: tuple[Variant, ...]
    sets: tuple[CellSet, ...]
    success: float | None  # None for the environment's own threshold
    pairs: tuple[tuple[str, str], ...]  # (variant, the variant to compare it with)
    unequal_budgets: bool  # whether they are allowed
    gap: Gap | None = None  # to state; None for none
    design: Design | None = None  # the factors whose effects to state; None for none
    references: tuple[str, ...] = ()  # variants that show what is possible; with any, the study states regret
    notes: tuple[str, ...] = ()  # about the sets

    @cached_property
    def budgets(self) -> dict[str, int | None]:
        """Environment steps of one run of each variant."""
        return {variant.name: variant.budget for variant in self.variants}

    @cached_property
    def seeds_of(self) -> dict[str, tuple[int, ...]]:
        """The seeds that each variant is trained with; those of some levels of factors have fewer."""
        found = {variant.name: self.seeds for variant in self.variants}
        if self.design is not None:
            total = len(self.seeds)
            found |= {name: self.seeds[: self.design.num_seeds(name, total)] for name in self.design.combinations}
        return found

    @property
    def counts(self) -> str:
        """How many seeds variants have, as text."""
        few, most = (end(len(seeds) for seeds in self.seeds_of.values()) for end in (min, max))
        return counted(most, "seed") if few == most else f"{few} to {most} seeds"

    def same_budget(self, *names: str) -> bool:
        """Whether variants, all by default, train for the same number of environment steps."""
        found = {self.budgets[name] for name in names or self.budgets}
        return len(found) == 1 and (None not in found or len(names or self.budgets) == 1)

    def __repr__(self) -> str:
        return f"Study({listed([variant.name for variant in self.variants])} on {self.env}, {self.counts} each)"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``study.json``: the whole study, resolved."""
        variants = {v.name: {"steps": v.budget, "config": v.content} for v in self.variants}
        return {
            "format": FORMAT,
            WRITTEN_BY: __version__,
            "version": VERSION,
            "env": self.env,
            "seeds": list(self.seeds),
            "reserved_seeds": list(self.reserved_seeds),
            "unequal_budgets": self.unequal_budgets,
            "variants": variants,
            "evaluation": {
                "success": self.success,
                "sets": [cells.to_dict() for cells in self.sets],
                "references": list(self.references),
            },
            "comparisons": [list(pair) for pair in self.pairs],
            "gap": None if self.gap is None else self.gap.to_dict(),
            "design": None if self.design is None else self.design.to_dict(),
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
            reserved ones; budgets differ; the variants of the gap cannot be compared; or a value cannot be used.
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
        check_module(str(table.get("env", "")), trust)
        with addressing(command_line=False):  # its keys are the keywords of Python
            return read(table, Path(given))


def _read(table: Mapping[str, Any], file: Path | None) -> Study:
    parts = [name for name in table if name in ALGORITHMS or name in SAMPLERS]
    top = {name: value for name, value in table.items() if name not in (*TABLES, *parts)}
    head = _Head(**check_fields(_Head, top, also=(*TABLES, *ALGORITHMS, *SAMPLERS)))
    _check_seeds(head)
    design, combined = _design(table, len(head.seeds))
    variants = _variants(table, combined, head, file)
    unused = set(parts) - {variant.algorithm.name for variant in variants}
    if unused := unused - {variant.config.settings.sampler for variant in variants}:
        raise ConfigError(f"[{unused.pop()}]: expected options of an algorithm or sampler that a variant uses.")
    where = inner_table(table, "evaluation")
    axes = inner_table(where, "grid")
    named = {name: randomization_beside(file, value) for name, value in inner_table(where, "sets").items()}
    chosen = {name: value for name, value in where.items() if name not in ("grid", "sets")}
    evaluation = _Evaluation(**check_fields(_Evaluation, chosen, also=("grid", "sets")))
    notes: list[str] = []
    with located("[evaluation]"):
        for name in evaluation.references:
            check_known("variant", name, [variant.name for variant in variants])
        sets = _sets(head.env, variants, evaluation, axes, named, notes.append)
    study = Study(
        env=head.env,
        seeds=head.seeds,
        reserved_seeds=head.reserved_seeds,
        variants=variants,
        sets=tuple(sets),
        success=evaluation.success,
        pairs=_pairs(table, variants),
        unequal_budgets=head.unequal_budgets,
        gap=_gap(table, variants),
        design=design,
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
    expect(evaluation.protocol in (None, "dre"), "protocol", "dre", evaluation.protocol)
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


def _design(table: Mapping[str, Any], seeds: int) -> tuple[Design | None, dict[str, dict[str, Any]]]:
    """The factors, and the tables of their variants; None and none if the file has no factors."""
    factors, design = inner_table(table, "factors"), inner_table(table, "design")
    if design and not factors:
        raise ConfigError("[design]: expected tables of factors to cross, such as [factors.sampler.adr]; got none.")
    return read_design(factors, design, seeds) if factors else (None, {})


def _variants(
    table: Mapping[str, Any], combined: Mapping[str, Any], head: _Head, file: Path | None
) -> tuple[Variant, ...]:
    """The variants of the file, those of its factors first."""
    named = inner_table(table, "variants")
    if not (named or combined):
        raise ConfigError("variants: expected at least one table, such as [variants.nominal]; got none.")
    for name in (*combined, *named):
        if not isinstance(name, str) or not NAME.fullmatch(name):  # a mapping of Python may have any key
            raise ConfigError(f"variants: expected a name of letters, digits and _.+- (at most 64), got {name!r}.")
    for spelled, count in Counter(name.casefold() for name in (*combined, *named)).items():
        if count > 1:  # some file systems ignore case
            raise ConfigError(f"variants: expected names that differ in more than case, got {spelled!r} {count} times.")
    variants: list[Variant] = []
    given = {**combined, **named}
    for name in given:
        place = f"[factors]: {name}" if name in combined else f"[variants.{name}]"
        with located(place):
            own = inner_table(given, name)
            variants.append(
                make_variant(name, own, table, file, env=head.env, algorithm=head.algorithm, seed=head.seeds[0])
            )
            check_not_reserved("seeds", head.seeds, variants[-1].config.settings.reserved_seeds)
        if same := next((v.name for v in variants[:-1] if v.content == variants[-1].content), None):
            raise ConfigError(f"{place}: expected a distinct configuration, got that of {same}.")
    return tuple(variants)


def make_variant(
    name: str,
    own: Mapping[str, Any],
    table: Mapping[str, Any],
    file: Path | None,
    *,
    env: str,
    algorithm: str | None,
    seed: int,
) -> Variant:
    """Makes a variant.

    Args:
        name: Its name.
        own: Its settings, options and draws.
        table: The whole content of the file; its tables have those that ``own`` lacks.
        file: The file; None if there is none.
        env: Id of the environment.
        algorithm: Name of the algorithm, unless ``own`` has one.
        seed: The first seed.

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
    settings = [setting for setting in SETTINGS if setting not in OF_THE_FILE]
    options = option_names(found)
    draws = {key: own.get(key, table.get(key)) for key in ("randomization", "randomize")}
    if "randomization" in own and "randomize" not in own:
        draws["randomize"] = None  # the common one belongs to the common randomization
    draws["randomization"] = randomization_beside(file, draws["randomization"])
    common, shared = inner_table(table, "settings"), inner_table(table, found.name)
    sampler = SAMPLERS.get(str(own.get("sampler", common.get("sampler", UNIFORM))))
    of_sampler, drawing = sampler_option_names(sampler, found), inner_table(table, sampler.name)
    for place, values, known in (
        ("[settings]: ", common, settings),
        (f"[{found.name}]: ", shared, options),
        (f"[{sampler.name}]: ", drawing, of_sampler),
        ("", own, [*settings, *options, *of_sampler, "algorithm", *draws]),
    ):
        for key in values:
            if key in OF_THE_FILE:
                raise ConfigError(f"{place}{key}: expected at the top of the file, since all runs share it.")
            if key not in known:
                error = unknown_name("key", key, known)
                raise type(error)(f"{place}{error}")
    # runs are not evaluated after training: the study or tuning evaluates them
    given = {"eval_episodes": 0, **common, **shared, **drawing, **own, "env": env, "seed": seed}
    options_given = {key: value for key, value in given.items() if key not in ("algorithm", *draws)}
    config = build_config(found, options_given, **draws, by_seed=False)  # the same for all seeds
    return Variant(name=name, algorithm=found, config=config)


def _trained(variants: Sequence[Variant], space: ParamSpace | None) -> dict[str, Randomization]:
    """Distinct training randomizations, by the names of the sets of their draws: that of a preset or a variant."""
    known = {} if space is None else {resolve(name, space): name for name in presets(space.name)}
    found: dict[Randomization, str] = {}
    for variant in variants:
        if rule := variant.config.randomization:
            name = known.get(rule, variant.name)
            found.setdefault(rule, variant.name if name in found.values() else name)
    return {f"{TRAINING}: {name}": rule for rule, name in found.items()}


def _pairs(table: Mapping[str, Any], variants: Sequence[Variant]) -> tuple[tuple[str, str], ...]:
    """The pairs of variants to compare; by default none if effects of factors are stated."""
    if "comparisons" not in table and table.get("factors"):
        return ()
    given = _Comparisons(**check_fields(_Comparisons, inner_table(table, "comparisons")))
    names = [variant.name for variant in variants]
    pairs = [(name, given.baseline or names[0]) for name in names] if not given.pairs else given.pairs
    if given.pairs and given.baseline:
        raise ConfigError("[comparisons]: expected baseline or pairs, got both.")
    checked: list[tuple[str, str]] = []
    for pair in pairs:
        for name in pair:
            check_known("variant", name, names)
        if given.pairs and (len(pair) != 2 or pair[0] == pair[1]):
            raise ConfigError(f"[comparisons]: pairs: expected two variants in each, got {shortened(list(pair))}.")
        if pair[0] != pair[1]:
            checked.append((pair[0], pair[1]))
    return tuple(dict.fromkeys(checked))


def _gap(table: Mapping[str, Any], variants: Sequence[Variant]) -> Gap | None:
    """The variants of the gap; None if the file has no such table."""
    if "gap" not in table:
        return None
    given = inner_table(table, "gap")
    with located("[gap]"):
        return read_gap(given, variants)


def randomization_beside(file: Path | None, value: Any) -> Any:
    """A randomization that a file names; a path is relative to the file."""
    return file_beside(file, value) if isinstance(value, str) and file is not None else value


def inner_table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table in a file; empty if there is none."""
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise ConfigError(f"{key}: expected a table, got {shortened(found)}.")
    return found
