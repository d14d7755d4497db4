"""The tables of a study: results of each variant, and differences between variants, over seeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.paired import holm, mean_over_seeds
from gym_dr.evaluation.regret import REGRET
from gym_dr.evaluation.statistics import NO_SPREAD, Interval, point_statistics, statistic_names
from gym_dr.studies.plan import Study, describe_budget
from gym_dr.table import Cell, Row, Table
from gym_dr.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from gym_dr.evaluation.results import Evaluation


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
UNEQUAL = "†"  # marks what has unequal budgets
METHOD = (
    "Means over seeds with 95 % intervals (Student's t). Differences are paired by seed, on the same draws and "
    "episodes; p-values are from paired t-tests, with Holm's correction for all differences of a statistic."
)
FACTORS = (
    "A level's difference from the baseline's is averaged over all pairs of variants that differ in it alone. Levels "
    "with other ones are compared with what both change alone, added up."
)


@dataclass(frozen=True, kw_only=True, repr=False)
class StudyTables:
    """The numbers of a study whose runs have been evaluated."""

    study: Study
    evaluation: Evaluation
    runs: Mapping[str, Sequence[int]]  # variant -> seeds of the evaluated runs, in the evaluation's order
    missing: Mapping[str, str]  # "VARIANT/seed-N" -> why the run is missing

    def __repr__(self) -> str:
        return f"StudyTables({self.study!r})"

    @cached_property
    def values(self) -> dict[tuple[str, str], dict[str, dict[int, float]]]:
        """(statistic, set) -> variant -> seed -> value, in the order of the tables."""
        found: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        success = self.evaluation.document["success"]
        owners = [(variant, seed) for variant, seeds in self.runs.items() for seed in seeds]
        results = {(row["policy"], row["set"]): row for row in self.evaluation.document["results"]}
        for cells in self.study.sets:
            owned = zip(owners, self.evaluation.policies, self.evaluation.returns(cells.name), strict=True)
            for (variant, seed), policy, returns in owned:
                numbers = dict(zip(statistic_names(success), point_statistics(returns.ravel(), success), strict=True))
                if cells.num_cells > 1:
                    numbers[WORST] = results[policy, cells.name]["worst_cell"]["mean"]["value"]
                regret = results[policy, cells.name]["statistics"].get(REGRET)  # none without references
                if regret is not None and regret["value"] is not None:
                    numbers[REGRET] = regret["value"]
                for statistic in TITLES.keys() & numbers.keys():
                    by_variant = found.setdefault((statistic, cells.name), {})
                    by_variant.setdefault(variant, {})[seed] = float(numbers[statistic])
        order = list(TITLES)
        return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row for each variant, set and statistic: its mean over seeds with interval, and the budget."""
        import pandas as pd  # heavy

        rows: list[dict[str, Any]] = []
        budgets = "equal" if self.study.same_budget() else "unequal"
        for (statistic, name), by_variant in self.values.items():
            for variant, by_seed in by_variant.items():
                interval, _ = mean_over_seeds(np.array(list(by_seed.values())))
                if statistic == SOLVED:
                    interval = _within(interval, 0.0, 1.0)
                head = {"variant": variant, "set": name, "statistic": statistic, "seeds": len(by_seed)}
                head["seeds_missing"] = len(self.study.seeds_of[variant]) - len(by_seed)
                rows.append({**head, **interval, "steps": self.study.budgets[variant], "budgets": budgets})
        return pd.DataFrame(rows).astype({"low": "float64", "high": "float64"})

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """A row for each contrast, set and statistic: the mean difference over seeds, interval and p-values."""
        import pandas as pd  # heavy

        rows: list[dict[str, Any]] = []
        for (statistic, name), by_variant in self.values.items():
            if statistic == REGRET:  # its differences are those of mean returns, the other way around
                continue
            for contrast in self.study.contrasts:
                differences = contrast.over_seeds(by_variant)
                if not len(differences):
                    continue
                interval, p = mean_over_seeds(differences)
                if statistic == SOLVED:
                    most = sum(abs(weight) for weight in contrast.weights.values()) / 2
                    interval = _within(interval, -most, most)
                planned = set.intersection(*(set(self.study.seeds_of[variant]) for variant in contrast.weights))
                head = {"variant": contrast.variant, "other": contrast.other, "set": name, "statistic": statistic}
                seeds = {"seeds": len(differences), "seeds_missing": len(planned) - len(differences)}
                budgets = "equal" if self.study.same_steps(contrast) else "unequal"
                rows.append({**head, **seeds, **interval, "p": p, "budgets": budgets})
        columns = ["variant", "other", "set", "statistic", "seeds", "seeds_missing"]
        columns += ["value", "low", "high", "p", "p_holm", "budgets"]
        table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(["low", "high", "p", "p_holm"], "float64"))
        for _, family in table.groupby("statistic"):
            known = family["p"].dropna()
            table.loc[known.index, "p_holm"] = holm(known.tolist())
        return table

    @cached_property
    def tables(self) -> list[Table]:
        """For each statistic, results of each variant, and differences."""
        pairs = self.comparisons.assign(pair=self.comparisons["variant"] + " minus " + self.comparisons["other"])
        tables = []
        for statistic, title in TITLES.items():
            for caption, table, key in ((title, self.results, "variant"), (f"{title}: differences", pairs, "pair")):
                chosen = table[table["statistic"] == statistic]
                if len(chosen):
                    tables.append(self._table(caption, chosen, key, percent=statistic == SOLVED))
        return [dataclasses.replace(table, notes=self.notes) if table is tables[-1] else table for table in tables]

    def _table(self, caption: str, table: pd.DataFrame, key: str, *, percent: bool) -> Table:
        """A row for each variant or pair, a column for each set; marks fewer seeds than others, and unequal budgets."""
        sets = list(dict.fromkeys(table["set"]))
        rows: list[Row] = []
        for name, group in table.groupby(key, sort=False):
            cells = {row["set"]: cell(row, percent=percent) for row in group.to_dict("records")}
            unequal = f" {UNEQUAL}" if "unequal" in set(group["budgets"]) else ""
            seeds, planned = min(group["seeds"]), max(group["seeds"] + group["seeds_missing"])
            few = f" ({counted(seeds, 'seed')})" if seeds < len(self.study.seeds) else ""
            few = f" ({seeds} of {planned} seeds)" if seeds < planned else few
            rows.append([f"{name}{unequal}{few}", *(cells[one] for one in sets)])
        return Table(caption=caption, columns=[key.capitalize(), *sets], rows=rows)

    @property
    def notes(self) -> list[str]:
        """Notes on all tables: the method, budgets, and missing runs."""
        steps = ", ".join(f"{name} {describe_budget(budget)}" for name, budget in self.study.budgets.items())
        unequal = [] if self.study.same_budget() else [f"{UNEQUAL} Budgets are unequal, in environment steps: {steps}."]
        names = self.study.budgets.keys()
        factors = [FACTORS] if any(contrast.variant not in names for contrast in self.study.contrasts) else []
        return [METHOD, *factors, *unequal, *(f"Missing: {run} ({reason})" for run, reason in self.missing.items())]

    @property
    def findings(self) -> list[str]:
        """States each difference on nominal values, and the significant ones on the other sets."""
        return findings(self.comparisons, self.study.sets[0].name)

    def markdown(self) -> str:
        """All tables in Markdown."""
        seeds = ", ".join(map(str, self.study.seeds))
        text = [f"# {self.study.env}", f"{counted(len(self.study.variants), 'variant')}, seeds {seeds}."]
        if self.study.same_budget():
            budget = next(iter(self.study.budgets.values()))
            unit = "" if budget is None else " environment steps"
            text.append(f"Budget of each run: {describe_budget(budget)}{unit}.")
        for table in self.tables:
            text += [f"## {table.caption}", table.markdown(), *table.notes]
        return "\n\n".join(text) + "\n"


def cell(row: Mapping[Any, Any], *, percent: bool) -> Cell:
    """A number with its interval, and with its p-value if it is a difference."""
    scale, digits = (100.0, 0) if percent else (1.0, 0 if abs(row["value"]) >= 100 else 1)
    value, low, high = (f"{scale * float(row[name]):z.{digits}f}" for name in ("value", "low", "high"))  # z: no -0
    p = row.get("p_holm", math.nan)
    known = [] if low == "nan" else [f"{low} to {high}"]
    known += [] if math.isnan(p) else [p_value(row)]
    return Cell(f"{value} %" if percent else value, ", ".join(known))


def p_value(row: Mapping[Any, Any]) -> str:
    """A corrected p-value, as a relation."""
    return f"p < {SMALLEST}" if row["p_holm"] < SMALLEST else f"p = {row['p_holm']:.3f}"


def findings(comparisons: pd.DataFrame, first: str) -> list[str]:
    """States each difference on one set, and the significant ones on the others.

    Args:
        comparisons: See ``StudyTables.comparisons``; mean returns and shares of solved episodes are stated.
        first: The set to state every result of.
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
        text += f" (95 % interval of the difference {low:.1f} to {high:.1f}, corrected {p_value(row)}"
        text += ")" if row["p_holm"] < ALPHA else "), which is not significant"
    return f"{text}{f' {UNEQUAL}' if row['budgets'] == 'unequal' else ''}."


def _within(interval: Interval, lowest: float, highest: float) -> Interval:
    """Clips an interval of shares, or of their differences, to possible values."""
    low, high = interval["low"], interval["high"]
    if low is None or high is None:
        return interval
    return {**interval, "low": max(low, lowest), "high": min(high, highest)}
