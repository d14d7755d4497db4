"""The plan of a study, read from a file and checked before anything is trained."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, check_known, located
from gym_dr.evaluation.question import check_success
from gym_dr.evaluation.sets import TRAINING, CellSet, draws, grid, sobol
from gym_dr.evaluation.suite import sets_of
from gym_dr.options import check_fields
from gym_dr.randomization.presets import presets, resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import check_not_reserved
from gym_dr.studies.contrasts import Contrast, read_comparisons, read_design
from gym_dr.studies.variants import Head, Variant, VariantFile, inner_table, opened

# besides a table for each algorithm and sampler -> keys that are in no other table
STUDY_TABLES = {
    **dict.fromkeys(("settings", "randomization", "randomize", "variants", "factors"), ()),
    **{"design": ("cross",), "comparisons": ("baseline", "pairs")},
    "evaluation": ("episodes", "success", "sobol", "references", "grid", "sets"),
}
FOLDER_NAME = re.compile(r"\w[\w.+-]{0,63}", re.ASCII)  # of a variant


@dataclass(frozen=True, kw_only=True)
class Study:
    """Variants, seeds, evaluation sets and contrasts.

    Attributes:
        env: Id of the environment.
        seeds: All seeds.
        variants: The variants by name.
        sets: The sets on which all runs are evaluated.
        success: Return from which an episode counts as solved; None for the environment's threshold.
        contrasts: The contrasts between variants.
        unequal_budgets: Whether variants may train for different numbers of environment steps.
        references: Variants that show what is possible; if there are any, the results include regret.
    """

    env: str
    seeds: tuple[int, ...]
    variants: Mapping[str, Variant]
    sets: tuple[CellSet, ...]
    success: float | None
    contrasts: tuple[Contrast, ...]
    unequal_budgets: bool = False
    references: tuple[str, ...] = ()

    def same_budget(self) -> bool:
        """Whether all variants train for the same number of environment steps."""
        found = {variant.asked for variant in self.variants.values()}
        return len(found) == 1 and (None not in found or len(self.variants) == 1)

    def describe_budgets(self) -> str:
        """The budget of each variant, as text."""
        budgets = {name: variant.budget for name, variant in self.variants.items()}
        return ", ".join(f"{name} {'by episodes' if of is None else f'{of:,}'}" for name, of in budgets.items())

    def to_dict(self) -> dict[str, Any]:
        """The content of ``study.json``: the whole study, resolved."""
        return {
            "env": self.env,
            "unequal_budgets": self.unequal_budgets,
            "variants": {
                name: {"steps": variant.budget, "seeds": list(variant.seeds), "config": variant.content}
                for name, variant in self.variants.items()
            },
            "evaluation": {
                "success": self.success,
                "sets": [cells.to_dict() for cells in self.sets],
                "references": list(self.references),
            },
            "contrasts": [asdict(contrast) for contrast in self.contrasts],
        }


@dataclass(frozen=True, kw_only=True)
class _Head(Head):
    """The top-level keys of a study's file that are not tables."""

    reserved_seeds: tuple[int, ...] = ()
    unequal_budgets: bool = False


@dataclass(frozen=True, kw_only=True)
class _Evaluation:
    """The table ``evaluation`` without its tables; the keys are those of ``gym_dr.evaluate``."""

    episodes: int | None = None
    success: float | None = None
    sobol: int | None = None
    references: tuple[str, ...] = ()  # variants


def read_study(given: str | Path | Mapping[str, Any], trust: Collection[str] = ()) -> Study:
    """Reads a study from a TOML or JSON file, or from a mapping of the same content, and checks all of it.

    Raises:
        UnknownNameError: A key, variant, setting, environment, preset or parameter is unknown.
        ConfigError: The file cannot be read, two variants have the same name, there are no seeds, a seed is reserved,
            budgets differ, or a value cannot be used.
        RandomizationError: A range is impossible.
    """
    with opened(given, trust) as file:
        return _read(file)


def _read(file: VariantFile) -> Study:
    head = file.head(_Head, STUDY_TABLES)
    check_not_reserved("seeds", head.seeds, head.reserved_seeds)
    factors, crossing = file.inner("factors"), file.inner("design")
    if crossing and not factors:
        raise ConfigError("[design]: expected tables of factors to cross, such as [factors.sampler.adr]; got none.")
    design = read_design(factors, crossing)
    variants = _variants(file, design.variants() if factors else {}, head)
    file.check_used(variants.values())
    chosen = file.inner("evaluation")
    with located("[evaluation]"):
        plain = {name: value for name, value in chosen.items() if name not in ("grid", "sets")}
        evaluation = _Evaluation(**check_fields(_Evaluation, plain, also=("grid", "sets")))
        for name in evaluation.references:
            check_known("variant", name, variants)
        own = {name: file.beside(value) for name, value in inner_table(chosen, "sets").items()}
        sets = _sets(head.env, variants, evaluation, inner_table(chosen, "grid"), own)
    contrasts = design.contrasts() if factors else []
    if not factors or "comparisons" in file.table:
        with located("[comparisons]"):
            contrasts += read_comparisons(file.inner("comparisons"), list(variants))
    study = Study(
        env=head.env,
        seeds=head.seeds,
        variants=variants,
        sets=sets,
        success=evaluation.success,
        contrasts=tuple(contrasts),
        unequal_budgets=head.unequal_budgets,
        references=tuple(dict.fromkeys(evaluation.references)),
    )
    if not (study.same_budget() or study.unequal_budgets):
        raise ConfigError(
            f"Expected equal budgets of environment steps, got {study.describe_budgets()}. Make them equal, or set "
            "unequal_budgets = true to allow and mark unequal ones."
        )
    return study


def _variants(file: VariantFile, combined: Mapping[str, Any], head: _Head) -> dict[str, Variant]:
    """The variants of the file, first those of its factors."""
    variants: dict[str, Variant] = {}
    known: dict[str, str] = {}
    for place, table in (("[factors]: {}", combined), ("[variants.{}]", file.inner("variants"))):
        for name in table:
            if not isinstance(name, str) or not FOLDER_NAME.fullmatch(name):  # a mapping in Python may have any key
                raise ConfigError(f"variants: expected a name of letters, digits and _.+- (at most 64), got {name!r}.")
            if other := known.get(name.casefold()):  # some file systems ignore case
                raise ConfigError(
                    f"variants: expected names that differ in more than case, got {other!r} and {name!r}."
                )
            known[name.casefold()] = name
            with located(place.format(name)):
                variants[name] = file.variant(name, inner_table(table, name), head)
                check_not_reserved("seeds", variants[name].seeds, variants[name].config.settings.reserved_seeds)
    if not variants:
        raise ConfigError("variants: expected at least one table, such as [variants.nominal]; got none.")
    return variants


def _sets(
    env: str, variants: Mapping[str, Variant], evaluation: _Evaluation, axes: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[CellSet, ...]:
    """Nominal values, training draws and the chosen sets, without training draws that a chosen set repeats."""
    check_success(evaluation.success)
    space = next(iter(variants.values())).config.space
    trained = _trained(variants, space)
    chosen = [grid(**axes)] if axes else []
    chosen += [] if evaluation.sobol is None else [sobol(evaluation.sobol)]
    chosen += [draws(value, name=name) for name, value in own.items()]
    found = sets_of(env, space, chosen, trained, evaluation.episodes)
    known = [cells.definition for cells in found if cells.kind == "distribution" and cells.name not in trained]
    return tuple(cells for cells in found if cells.name not in trained or cells.definition not in known)


def _trained(variants: Mapping[str, Variant], space: ParamSpace | None) -> dict[str, Randomization]:
    """Distinct training randomizations by the name of their set: the preset, or else the first variant."""
    known = {} if space is None else {resolve(name, space): name for name in presets(space.name)}
    found: dict[Randomization, str] = {}
    for variant in variants.values():
        if rule := variant.config.randomization:
            name = known.get(rule, variant.name)
            found.setdefault(rule, variant.name if name in found.values() else name)
    return {f"{TRAINING}: {name}": rule for rule, name in found.items()}
