"""The tables of a study as texts: results of each variant, differences, and what they say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gym_dr.evaluation.regret import REGRET
from gym_dr.evaluation.statistics import NO_SPREAD
from gym_dr.studies.plan import Study, describe_budget
from gym_dr.table import Cell, Row, Table
from gym_dr.wording import counted

if TYPE_CHECKING:
    import pandas as pd


MEAN, TAIL, WORST, SOLVED = "mean", "cvar_10", "worst_cell", "success_rate"
TITLES = {
    MEAN: "Mean return",
    TAIL: "Mean return of the worst 10 % of episodes",
    WORST: "Mean return in the worst cell",
    REGRET: "Regret: how much more the best known policy returns",
    SOLVED: "Episodes solved",
}

ALPHA = 0.05  # significance level of corrected p-values
SMALLEST = 0.001  # smaller p-values are not written out
UNEQUAL = "†"  # marks unequal budgets
METHOD = (
    "Means over seeds with 95 % intervals (Student's t). Differences are paired by seed, on the same draws and "
    "episodes; p-values are from paired t-tests, with Holm's correction for all differences of a statistic."
)
FACTORS = (
    "A level's difference from the baseline's is averaged over all pairs of variants that differ in it alone. Levels "
    "with other ones are compared with what both change alone, added up."
)


def study_tables(
    plan: Study, results: pd.DataFrame, comparisons: pd.DataFrame, missing: Mapping[str, str]
) -> list[Table]:
    """For each statistic the results of each variant and the differences, with notes below the last table.

    Args:
        plan: The study.
        results: See ``StudyResult``, as for the others.
        comparisons: See ``StudyResult``.
        missing: See ``StudyResult``.
    """
    pairs = comparisons.assign(pair=comparisons["variant"] + " minus " + comparisons["other"])
    tables = []
    for statistic, title in TITLES.items():
        for caption, table, key in ((title, results, "variant"), (f"{title}: differences", pairs, "pair")):
            chosen = table[table["statistic"] == statistic]
            if len(chosen):
                tables.append(_table(plan, caption, chosen, key, percent=statistic == SOLVED))
    return [*tables[:-1], dataclasses.replace(tables[-1], notes=_notes(plan, missing))]


def _table(plan: Study, caption: str, table: pd.DataFrame, key: str, *, percent: bool) -> Table:
    """A row for each variant or pair, a column for each set; marks fewer seeds than others, and unequal budgets."""
    sets = list(dict.fromkeys(table["set"]))
    rows: list[Row] = []
    for name, group in table.groupby(key, sort=False):
        cells = {row["set"]: _cell(row, percent=percent) for row in group.to_dict("records")}
        unequal = f" {UNEQUAL}" if "unequal" in set(group["budgets"]) else ""
        seeds, planned = min(group["seeds"]), max(group["seeds"] + group["seeds_missing"])
        few = f" ({counted(seeds, 'seed')})" if seeds < len(plan.seeds) else ""
        few = f" ({seeds} of {planned} seeds)" if seeds < planned else few
        rows.append([f"{name}{unequal}{few}", *(cells[one] for one in sets)])
    return Table(caption=caption, columns=[key.capitalize(), *sets], rows=rows)


def _notes(plan: Study, missing: Mapping[str, str]) -> list[str]:
    """The method, budgets if they are unequal, and missing runs."""
    steps = ", ".join(f"{name} {describe_budget(budget)}" for name, budget in plan.budgets.items())
    unequal = [] if plan.same_budget() else [f"{UNEQUAL} Budgets are unequal, in environment steps: {steps}."]
    factors = [FACTORS] if any(contrast.variant not in plan.budgets for contrast in plan.contrasts) else []
    return [METHOD, *factors, *unequal, *(f"Missing: {run} ({reason})" for run, reason in missing.items())]


def _cell(row: Mapping[Any, Any], *, percent: bool) -> Cell:
    """A number with its interval, and with its p-value if it is a difference."""
    scale, digits = (100.0, 0) if percent else (1.0, 0 if abs(row["value"]) >= 100 else 1)
    value, low, high = (f"{scale * float(row[name]):z.{digits}f}" for name in ("value", "low", "high"))  # z: no -0
    p = row.get("p_holm", math.nan)
    known = [] if low == "nan" else [f"{low} to {high}"]
    known += [] if math.isnan(p) else [_p_value(row)]
    return Cell(f"{value} %" if percent else value, ", ".join(known))


def _p_value(row: Mapping[Any, Any]) -> str:
    """A corrected p-value, as a relation."""
    return f"p < {SMALLEST}" if row["p_holm"] < SMALLEST else f"p = {row['p_holm']:.3f}"


def difference_findings(comparisons: pd.DataFrame, first: str) -> list[str]:
    """States each difference in mean return on one set, and the significant ones on the others.

    Args:
        comparisons: See ``StudyResult``; on the other sets, shares of solved episodes are stated too.
        first: Name of the one set.
    """
    stated = comparisons[comparisons["statistic"].isin([MEAN, SOLVED])]
    own = (stated["set"] == first) & (stated["statistic"] == MEAN)
    significant = ~own & (stated["p_holm"] < ALPHA)
    sentences = [_finding(row) for row in stated[own | significant].to_dict("records")]
    if stated.loc[~own, "p_holm"].notna().any() and not significant.any():
        sentences.append("No other difference in mean return or in solved episodes is significant.")
    return sentences


def _finding(row: Mapping[Any, Any]) -> str:
    solved = row["statistic"] == SOLVED
    scale, did, unit = (100.0, "solves", " percentage points") if solved else (1.0, "returns", "")
    more = "more" if row["value"] >= 0 else "less"
    what = f"{did} {scale * abs(row['value']):.1f}{unit} {more}"
    text = f"On {row['set']}, {row['variant']} {what} than {row['other']}"
    if math.isnan(row["p_holm"]):
        text += f"; {'there are too few seeds for an interval' if row['seeds'] < 2 else NO_SPREAD}"
    else:
        low, high = scale * row["low"], scale * row["high"]
        text += f" (95 % interval of the difference {low:.1f} to {high:.1f}, corrected {_p_value(row)}"
        text += ")" if row["p_holm"] < ALPHA else "), which is not significant"
    return f"{text}{f' {UNEQUAL}' if row['budgets'] == 'unequal' else ''}."
