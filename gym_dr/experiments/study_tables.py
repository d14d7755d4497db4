"""The tables of a study: results of each variant, and differences between variants, over seeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gym_dr.evaluation.paired import holm, mean_over_seeds
from gym_dr.evaluation.regret import REGRET
from gym_dr.evaluation.statistics import NO_SPREAD, Interval, point_statistics, statistic_names
from gym_dr.experiments.factor_tables import (
    EFFECTS,
    EFFECTS_METHOD,
    SHARES,
    SHARES_METHOD,
    TIMES,
    as_comparisons,
    effect_tables,
    effects_on,
    share_findings,
    shares_on,
    undetermined,
)
from gym_dr.experiments.gap_tables import COLUMNS, gap_findings, gap_numbers, gap_table
from gym_dr.experiments.study_file import Study, describe_budget
from gym_dr.experiments.study_gap import judged_on
from gym_dr.experiments.table_cells import SMALLEST, UNEQUAL, cell, p_value
from gym_dr.reports.table import Row, Table
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
ByVariant: TypeAlias = Mapping[str, Mapping[int, float]]  # variant -> seed -> value

ALPHA = 0.05  # significance level of corrected p-values
MOST_APART = 3  # more findings of the same kind share a sentence
METHOD = (
    "Means over seeds with 95 % intervals (Student's t). Differences are paired by seed, on the same draws and "
    "episodes; p-values are from paired t-tests, with Holm's correction for all comparisons of a statistic."
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
    def values(self) -> dict[tuple[str, str, str], dict[int, float]]:
        """(statistic, set, variant) -> seed -> value."""
        found: dict[tuple[str, str, str], dict[int, float]] = {}
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
                for statistic in TITLES:
                    if statistic in numbers:
                        found.setdefault((statistic, cells.name, variant), {})[seed] = float(numbers[statistic])
        return found

    @cached_property
    def results(self) -> pd.DataFrame:
        """See ``results_of``."""
        return results_of(self.study, self._on_sets)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """A row for each pair of variants, set and statistic: the mean difference over seeds, interval and p-values."""
        import pandas as pd  # heavy

        rows: list[dict[str, Any]] = []
        for statistic in TITLES:
            if statistic == REGRET:  # its differences are those of mean returns, the other way around
                continue
            family: list[dict[str, Any]] = []
            for one, other in self.study.pairs:
                for cells in self.study.sets:
                    a, b = (self.values.get((statistic, cells.name, variant), {}) for variant in (one, other))
                    both = [seed for seed in a if seed in b]
                    if not both:
                        continue
                    interval, p = mean_over_seeds(np.array([a[seed] - b[seed] for seed in both]))
                    if statistic == SOLVED:
                        interval = _within(interval, -1.0, 1.0)
                    head = {"variant": one, "other": other, "set": cells.name, "statistic": statistic}
                    planned = {*self.study.seeds_of[one]} & {*self.study.seeds_of[other]}
                    seeds = {"seeds": len(both), "seeds_missing": len(planned) - len(both)}
                    budget = "equal" if self.study.same_budget(one, other) else "unequal"
                    family.append({**head, **seeds, **interval, "p": p, "budgets": budget})
            rows += _corrected(family)
        columns = ["variant", "other", "set", "statistic", "seeds", "seeds_missing"]
        columns += ["value", "low", "high", "p", "p_holm", "budgets"]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(["low", "high", "p", "p_holm"], "float64"))

    @cached_property
    def gap(self) -> pd.DataFrame:
        """A row for each set and policy of the gap, see ``gap_numbers``; none if the study states no gap."""
        import pandas as pd  # heavy

        plan = self.study
        if plan.gap is None:
            return pd.DataFrame(columns=list(COLUMNS))
        means = {(cells, v): by_seed for (statistic, cells, v), by_seed in self.values.items() if statistic == MEAN}
        return gap_numbers(plan.gap, judged_on(plan.gap, plan.variants, plan.sets), means, plan.seeds_of)

    @cached_property
    def effects(self) -> pd.DataFrame:
        """A row for each effect of the factors, set and statistic, see ``effects_on``; none without factors."""
        return effects_of(self.study, self._of_factors)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """A row for each term, set and statistic, see ``shares_on``; none without factors."""
        return shares_of(self.study, self._of_factors)

    @property
    def effects_on_means(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Effects and shares of mean returns, which pictures and findings are about."""
        effects, shares = (table[table["statistic"] == MEAN] for table in (self.effects, self.shares))
        return effects, shares

    def _on_sets(self, statistic: str) -> Mapping[str, ByVariant]:
        """Each set with values of a statistic, and these."""
        found: dict[str, dict[str, dict[int, float]]] = {}
        for (known, cells, variant), by_seed in self.values.items():
            if known == statistic:
                found.setdefault(cells, {})[variant] = by_seed
        return found

    def _of_factors(self, statistic: str) -> dict[str, ByVariant]:
        """As ``_on_sets``, of the variants that the factors define."""
        names = self.study.design.combinations if self.study.design is not None else ()
        found = {
            cells: {v: by_variant.get(v, {}) for v in names} for cells, by_variant in self._on_sets(statistic).items()
        }
        return {cells: known for cells, known in found.items() if any(known.values())}

    @cached_property
    def tables(self) -> list[Table]:
        """The gap; for each statistic, tables of effects and shares, results of each variant, and differences."""
        pairs = self.comparisons.assign(pair=self.comparisons["variant"] + " minus " + self.comparisons["other"])
        tables, gap = [], self.study.gap
        if gap is not None and len(self.gap):
            tables.append(gap_table(gap, self.gap, describe_budget(self.study.budgets[gap.oracle])))
        for statistic, title in TITLES.items():
            effects, shares = (table[table["statistic"] == statistic] for table in (self.effects, self.shares))
            tables += effect_tables(effects, shares, title, percent=statistic == SOLVED)
            for caption, table, key in ((title, self.results, "variant"), (f"{title}: differences", pairs, "pair")):
                chosen = table[table["statistic"] == statistic]
                if len(chosen):
                    tables.append(results_table(self.study, caption, chosen, key, percent=statistic == SOLVED))
        return [dataclasses.replace(table, notes=self.notes) if table is tables[-1] else table for table in tables]

    @property
    def notes(self) -> list[str]:
        """Notes on all tables: the method, budgets, and missing runs."""
        steps = ", ".join(f"{name} {describe_budget(budget)}" for name, budget in self.study.budgets.items())
        unequal = [] if self.study.same_budget() else [f"{UNEQUAL} Budgets are unequal, in environment steps: {steps}."]
        design, known = self.study.design, list(self._of_factors(MEAN).values())
        lost = undetermined(design, known[0]) if design is not None and known else []
        of_effects = [] if self.study.design is None else [EFFECTS_METHOD, SHARES_METHOD, *lost]
        return [METHOD, *of_effects, *unequal, *(f"Missing: {run} ({reason})" for run, reason in self.missing.items())]

    @property
    def findings(self) -> list[str]:
        """States the gap, shares of variance, effects and comparisons: all on nominal values, else the significant."""
        first = self.study.sets[0].name
        _, shares = self.effects_on_means
        differences = findings(as_comparisons(self.effects), first, "levels")
        return [
            *gap_findings(self.gap),
            *share_findings(shares),
            *differences,
            *findings(self.comparisons, first),
        ]

    def markdown(self) -> str:
        """All tables in Markdown."""
        seeds = ", ".join(map(str, self.study.seeds))
        text = [f"# {self.study.env}", f"{counted(len(self.study.variants), 'variant')}, seeds {seeds}."]
        if self.study.same_budget():
            budget = next(iter(self.study.budgets.values()))
            unit = "" if budget is None else " environment steps"
            text.append(f"Budget of each run: {describe_budget(budget)}{unit}.")
        text += [*gap_findings(self.gap), *share_findings(self.effects_on_means[1])]
        for table in self.tables:
            text += [f"## {table.caption}", table.markdown(), *table.notes]
        return "\n\n".join(text) + "\n"


def results_of(study: Study, values: Callable[[str], Mapping[str, ByVariant]]) -> pd.DataFrame:
    """A row for each variant, set and statistic: its mean over seeds with interval, and the budget.

    Args:
        study: The study.
        values: A statistic -> set -> variant -> seed -> value.
    """
    import pandas as pd  # heavy

    rows: list[dict[str, Any]] = []
    budgets = "equal" if study.same_budget() else "unequal"
    for statistic in TITLES:
        for name, by_variant in values(statistic).items():
            for variant, by_seed in by_variant.items():
                interval, _ = mean_over_seeds(np.array(list(by_seed.values())))
                if statistic == SOLVED:
                    interval = _within(interval, 0.0, 1.0)
                head = {"variant": variant, "set": name, "statistic": statistic, "seeds": len(by_seed)}
                head["seeds_missing"] = len(study.seeds_of[variant]) - len(by_seed)
                rows.append({**head, **interval, "steps": study.budgets[variant], "budgets": budgets})
    return pd.DataFrame(rows).astype({"low": "float64", "high": "float64"})


def results_table(study: Study, caption: str, table: pd.DataFrame, key: str, *, percent: bool) -> Table:
    """A row for each variant or pair, a column for each set; marks fewer seeds than others have, and unequal budgets.

    Args:
        study: The study.
        caption: Of the table.
        table: Rows of ``results_of``, or of ``StudyTables.comparisons``, with one statistic.
        key: The column of the table that names its rows.
        percent: Whether the numbers are shares.
    """
    sets = list(dict.fromkeys(table["set"]))
    rows: list[Row] = []
    for name, group in table.groupby(key, sort=False):
        cells = {row["set"]: cell(row, percent=percent) for row in group.to_dict("records")}
        unequal = f" {UNEQUAL}" if "unequal" in set(group["budgets"]) else ""
        rows.append([f"{name}{unequal}{_few(group, len(study.seeds))}", *(cells[one] for one in sets)])
    return Table(caption=caption, columns=[key.capitalize(), *sets], rows=rows)


def _few(group: pd.DataFrame, total: int) -> str:
    """Marks a variant or a pair with fewer seeds than the study has, because of its plan or since runs are missing."""
    seeds = min(group["seeds"])
    planned = max(group["seeds"] + group["seeds_missing"])
    if seeds < planned:
        return f" ({seeds} of {planned} seeds)"
    return f" ({counted(seeds, 'seed')})" if seeds < total else ""


def effects_of(study: Study, values: Callable[[str], Mapping[str, ByVariant]]) -> pd.DataFrame:
    """The effects of a study's factors, a row for each with its set and statistic; none without factors.

    Args:
        study: The study.
        values: As ``results_of``, of the variants that the factors define.
    """
    import pandas as pd  # heavy

    rows: list[dict[str, Any]] = []
    design = study.design
    for statistic in TITLES:
        family: list[dict[str, Any]] = []
        for name, by_variant in values(statistic).items():
            for row in effects_on(design, by_variant) if design is not None else ():
                compared = row.pop("compared")
                budgets = "equal" if all(study.same_budget(*group) for group in compared) else "unequal"
                if statistic == SOLVED:
                    most = 2.0 if TIMES in row["term"] else 1.0
                    row |= _within({end: row[end] for end in ("value", "low", "high")}, -most, most)
                family.append({**row, "set": name, "statistic": statistic, "budgets": budgets})
        rows += _corrected(family)
    frame = pd.DataFrame(rows, columns=list(EFFECTS))
    return frame.astype(dict.fromkeys(["value", "low", "high", "p", "p_holm"], "float64"))


def shares_of(study: Study, values: Callable[[str], Mapping[str, ByVariant]]) -> pd.DataFrame:
    """The shares of variance, a row for each term, set and statistic; for the arguments see ``effects_of``."""
    import pandas as pd  # heavy

    design = study.design
    rows = [
        {**row, "set": name, "statistic": statistic}
        for statistic in TITLES
        for name, by_variant in values(statistic).items()
        for row in (shares_on(design, by_variant) if design is not None else ())
    ]
    return pd.DataFrame(rows, columns=list(SHARES)).astype({"share": "float64"})


def findings(comparisons: pd.DataFrame, first: str, noun: str = "variants") -> list[str]:
    """States each comparison's result on one set, and the significant differences on the others.

    Many results of the same kind share a sentence.

    Args:
        comparisons: See ``StudyTables.comparisons``; the mean returns and shares of solved episodes are stated.
        first: The set to state every result of.
        noun: What is compared, in the plural.
    """
    stated = comparisons[comparisons["statistic"].isin([MEAN, SOLVED])]
    own = (stated["set"] == first) & (stated["statistic"] == MEAN)
    significant = ~own & (stated["p_holm"] < ALPHA)
    chosen = stated[own | significant]
    alike = [chosen["statistic"], chosen["set"], chosen["other"], chosen["value"] >= 0, chosen["p_holm"] < ALPHA]
    sentences = []
    for _, group in chosen.groupby(alike, sort=False):
        rows = group.to_dict("records")
        many = len(rows) > MOST_APART and group["p_holm"].notna().all()
        sentences += [_summary(rows, noun)] if many else [_finding(row) for row in rows]
    if stated.loc[~own, "p_holm"].notna().any() and not significant.any():
        sentences.append("No other difference in mean return or in solved episodes is significant.")
    return sentences


def _summary(rows: Sequence[Mapping[Any, Any]], noun: str) -> str:
    """One sentence on results that all are significant and have the same sign, or that all are not significant."""
    one, solved = rows[0], rows[0]["statistic"] == SOLVED
    scale, do, unit = (100.0, "solve", " percentage points") if solved else (1.0, "return", "")
    sizes = sorted(scale * abs(row["value"]) for row in rows)
    what = f"{do} {sizes[0]:.1f} to {sizes[-1]:.1f}{unit} {'more' if one['value'] >= 0 else 'less'} than {one['other']}"
    ps = sorted(row["p_holm"] for row in rows)
    if ps[-1] < ALPHA:
        p = f"corrected p < {SMALLEST}" if ps[-1] < SMALLEST else f"corrected p at most {ps[-1]:.3f}"
    else:
        p = f"corrected p at least {ps[0]:.3f}, not significant"
    names = ", ".join(str(row["variant"]) for row in rows)
    mark = f" {UNEQUAL}" if any(row["budgets"] == "unequal" for row in rows) else ""
    return f"On {one['set']}, {len(rows)} {noun} {what}: {names} ({p}){mark}."


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


def _corrected(family: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with Holm's correction of their p-values."""
    p_holm = holm([row["p"] for row in family])
    return [{**row, "p_holm": p} for row, p in zip(family, p_holm, strict=True)]


def _within(interval: Interval, lowest: float, highest: float) -> Interval:
    """Clips an interval of shares, or of their differences, to possible values."""
    low, high = interval["low"], interval["high"]
    if low is None or high is None:
        return interval
    return {**interval, "low": max(low, lowest), "high": min(high, highest)}
