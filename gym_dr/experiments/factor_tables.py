"""The effects of a study's factors: the numbers, the sentences and the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gym_dr.experiments.factor_effects import (
    RESIDUAL,
    blocks_of,
    contrast_over_seeds,
    effect_contrasts,
    shares_of_variance,
)
from gym_dr.experiments.study_factors import Design
from gym_dr.experiments.table_cells import UNEQUAL, cell
from gym_dr.reports.table import Cell, Table
from gym_dr.wording import listed

if TYPE_CHECKING:
    import pandas as pd

TIMES = " x "  # between crossed factors, in a term
EFFECTS = ("term", "level", "other", "set", "statistic", "seeds", "value", "low", "high", "p", "p_holm", "budgets")
SHARES = ("term", "set", "statistic", "share")
EFFECTS_METHOD = (
    "Main effects are differences from the baseline's level, averaged over all pairs of variants that differ in it "
    "alone; interactions are how much more a difference is at another level of the other factor than at the "
    "baseline's. Factors that are not crossed are at the baseline's level. Least squares on one number per run, with "
    "seeds as blocks; 95 % intervals and p-values over seeds (cluster-robust, CR2), with Holm's correction for all "
    "effects of a statistic."
)
SHARES_METHOD = (
    "Shares of the variance of runs (omega squared) if all levels were equally frequent. Seed blocks are what seeds "
    "change in all combinations alike, and residual variance is what is left between runs with different seeds."
)


def effects_on(design: Design, by_variant: Mapping[str, Mapping[int, float]]) -> list[dict[str, Any]]:
    """The effects on one set, in one statistic: main effects, then interactions.

    Args:
        design: The factors.
        by_variant: Variant -> seed -> value.

    Returns:
        A row for each effect that the runs determine: ``term``, ``level``, ``other`` (the baseline's level), ``seeds``
        (of the combination with the fewest), the number with its interval, its p-value ``p``, and groups of variants
        that it compares, ``compared``: the pairs of a main effect, and all of an interaction.
    """
    names = list(design.combinations)
    blocks, values = blocks_of(names, by_variant)
    rows = []
    for chosen, contrast in effect_contrasts(design).items():
        found = contrast_over_seeds(blocks, values, contrast)
        if found is not None:
            involved = [name for name, weight in zip(names, contrast, strict=True) if weight]
            head = {
                "term": TIMES.join(factor for factor, _ in chosen),
                "level": TIMES.join(level for _, level in chosen),
                "other": TIMES.join(design.levels[factor][0] for factor, _ in chosen),
                "seeds": min(len(by_variant[name]) for name in involved),
            }
            compared = design.pairs(*chosen[0]) if len(chosen) == 1 else [tuple(involved)]
            rows.append({**head, **found[0], "p": found[1], "compared": compared})
    return rows


def shares_on(design: Design, by_variant: Mapping[str, Mapping[int, float]]) -> list[dict[str, Any]]:
    """The shares of variance on one set, in one statistic, a row for each ``term``; none if the runs do not tell."""
    found = shares_of_variance(design, *blocks_of(list(design.combinations), by_variant)) or {}
    return [{"term": TIMES.join(term), "share": share} for term, share in found.items()]


def effect_tables(effects: pd.DataFrame, shares: pd.DataFrame, title: str, *, percent: bool) -> list[Table]:
    """The effects and the shares of one statistic, with a column for each set.

    Args:
        effects: See ``StudyTables.effects``.
        shares: See ``StudyTables.shares``.
        title: Of the statistic.
        percent: Whether it is a share of episodes.
    """
    tables = []
    if len(effects):
        named = effects.assign(row=[effect_name(row) for row in effects.to_dict("records")])
        tables.append(_table(f"{title}: effects", "Effect", named, lambda row: cell(row, percent=percent)))
    if len(shares):
        named = shares.assign(row=shares["term"])
        caption = f"{title}: shares of variance"
        tables.append(_table(caption, "Term", named, lambda row: Cell(percentage(row))))
    return tables


def _table(caption: str, first: str, table: pd.DataFrame, shown: Callable[[Mapping[Any, Any]], Cell]) -> Table:
    """A row for each value of the column ``row``, a column for each set; empty where a set has no such row."""
    sets = list(dict.fromkeys(table["set"]))
    rows = []
    for name, group in table.groupby("row", sort=False):
        cells = {row["set"]: shown(row) for row in group.to_dict("records")}
        rows.append([str(name), *(cells.get(one, "") for one in sets)])
    return Table(caption=caption, columns=[first, *sets], rows=rows)


def effect_name(row: Mapping[Any, Any]) -> str:
    """An effect in words, from a row of ``StudyTables.effects``."""
    than = "" if TIMES in row["term"] else f" minus {row['other']}"
    mark = f" {UNEQUAL}" if row["budgets"] == "unequal" else ""
    return f"{row['term']}: {row['level']}{than}{mark}"


def percentage(row: Mapping[Any, Any]) -> str:
    """A share of variance as text."""
    return f"{100 * row['share']:.0f} %"


def share_findings(shares: pd.DataFrame) -> list[str]:
    """States the shares on each set, the largest first; those below 1 % share a phrase.

    Args:
        shares: See ``StudyTables.shares``; those of one statistic.
    """
    sentences = []
    for name, group in shares.groupby("set", sort=False):
        rows = group.sort_values("share", ascending=False, kind="stable").to_dict("records")
        left = next(percentage(row) for row in rows if row["term"] == RESIDUAL)
        stated = [(row["term"], percentage(row)) for row in rows if row["term"] != RESIDUAL and row["share"] >= 0.01]
        parts = ["no factor explains 1 % of the variance of mean returns"]
        if stated:
            (first, most), *others = stated
            rest = ["all others less than 1 %"] if len(stated) < len(rows) - 1 else []
            parts = [f"{first} explains {most} of the variance of mean returns", *map(" ".join, others), *rest]
        sentences.append(f"On {name}, {', '.join(parts)}; {left} is left between seeds.")
    return sentences


def as_comparisons(effects: pd.DataFrame) -> pd.DataFrame:
    """Main effects as rows of ``StudyTables.comparisons``: each level is compared with the baseline's."""
    main = effects[~effects["term"].str.contains(TIMES, regex=False)]
    return main.assign(variant=main["term"] + " " + main["level"], other=main["term"] + " " + main["other"])


def undetermined(design: Design, by_variant: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Says which effects the runs do not determine, if any, and why."""
    known = {(row["term"], row["level"]) for row in effects_on(design, by_variant)}
    all_effects = [(TIMES.join(f for f, _ in one), TIMES.join(x for _, x in one)) for one in effect_contrasts(design)]
    lost = [" ".join(one) for one in all_effects if one not in known]
    none = [name for name in design.combinations if not by_variant.get(name)]
    why = f"there is no run of {listed(none)}" if none else "runs have too few seeds in common"
    return [f"Effects of {listed(lost)} are not known, since {why}."] if lost else []
