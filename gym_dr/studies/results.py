"""The results of a study: evaluations of its runs on the same draws, and variants and contrasts over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gym_dr.envs.family import return_limits
from gym_dr.errors import counted, listed
from gym_dr.evaluation.evaluate import ProgressCallback, evaluate_policies
from gym_dr.evaluation.failures import REGRET
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.statistics import NO_SPREAD, holm, mean_over_seeds
from gym_dr.evaluation.tables import interval_cell
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.open import open_runs
from gym_dr.runs.folder import write_atomically
from gym_dr.runs.metrics import last_row
from gym_dr.studies.contrasts import APART
from gym_dr.studies.folder import StudyRun
from gym_dr.studies.plan import Study
from gym_dr.table import Cell, Row, Table

MEAN, TAIL, WORST, SOLVED = "mean", "cvar_10", "worst_cell", "success_rate"
TITLES = {
    MEAN: "Mean return",
    TAIL: "Mean return of the worst 10 % of episodes",
    WORST: "Mean return in the worst cell",
    REGRET: "Regret: how much more the best known policy returns",
    SOLVED: "Episodes solved",
}

MOST = 3  # contrasts in the first sentence
ALPHA = 0.05  # significance level of corrected p-values
SMALLEST = 0.001  # smaller p-values are shown as below this
UNEQUAL = "†"  # marks unequal budgets
METHOD = (
    "Means over seeds with 95 % intervals (Student's t). Differences are paired by seed, on the same draws and "
    "episodes; p-values are from paired t-tests, with Holm's correction for all differences of a statistic."
)
FACTORS = (
    "A level's difference from the baseline's level is averaged over all pairs of variants that differ only in it. Two "
    "levels together are compared with the sum of what each changes alone."
)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StudyResult:
    """A study that has been evaluated.

    Attributes:
        folder: Folder of the study.
        plan: The plan of training, evaluation and comparisons.
        evaluation: The evaluation, with all episodes.
        policies: Variant -> seed -> policy, in the order of the evaluation.
        missing: Runs that are not in the results: "VARIANT/seed-N" -> reason.
    """

    folder: Path
    plan: Study
    evaluation: Evaluation
    policies: Mapping[str, Mapping[int, FrozenPolicy]]
    missing: Mapping[str, str]

    def __repr__(self) -> str:
        names, missing = listed(list(self.plan.variants)), counted(len(self.missing), "run")
        return f"StudyResult({str(self.folder)!r}: {names} on {self.plan.env}, {missing} missing)"

    def _repr_html_(self) -> str:
        """All tables, for notebooks."""
        return "\n".join(table.__html__() for table in self.tables)

    @cached_property
    def values(self) -> dict[tuple[str, str], dict[str, dict[int, float]]]:
        """(statistic, set) -> variant -> seed -> value, in the order of the tables."""
        found: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        owners = {policy.name: (variant, seed) for variant, of in self.policies.items() for seed, policy in of.items()}
        for statistic in TITLES:
            for row in self.evaluation.document["results"]:
                numbers = {**row["statistics"], WORST: (row["worst_cell"] or {}).get("mean")}
                if (number := numbers.get(statistic)) is not None and number["value"] is not None:
                    variant, seed = owners[row["policy"]]
                    found.setdefault((statistic, row["set"]), {}).setdefault(variant, {})[seed] = number["value"]
        return found

    def _limits(self, statistic: str) -> tuple[float, float]:
        """The lowest and highest possible value."""
        return {SOLVED: (0.0, 1.0), REGRET: (-math.inf, math.inf)}.get(statistic, return_limits(self.plan.env))

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row for each variant, set and statistic: mean over seeds, interval and budget."""
        rows: list[dict[str, Any]] = []
        for (statistic, name), by_variant in self.values.items():
            for variant, by_seed in by_variant.items():
                interval, _ = mean_over_seeds(np.array(list(by_seed.values())), self._limits(statistic))
                rows.append(
                    {
                        **{"variant": variant, "set": name, "statistic": statistic, "seeds": len(by_seed)},
                        "seeds_missing": len(self.plan.variants[variant].seeds) - len(by_seed),
                        **interval,
                        "steps": self.plan.variants[variant].budget,
                        "budgets": "equal" if self.plan.same_budget() else "unequal",
                    }
                )
        return pd.DataFrame(rows).astype({"low": "float64", "high": "float64"})

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """A row for each contrast, set and statistic: mean over seeds, interval and p-values."""
        rows: list[dict[str, Any]] = []
        for (statistic, name), by_variant in self.values.items():
            for contrast in self.plan.contrasts:
                differences = contrast.over_seeds(by_variant)
                if statistic == REGRET or not len(differences):  # regret differs as returns do, negated
                    continue
                low, high = self._limits(statistic)
                most = (high - low) * sum(abs(weight) for weight in contrast.weights.values()) / 2
                interval, p = mean_over_seeds(differences, (-most, most))
                planned = set.intersection(*(set(self.plan.variants[variant].seeds) for variant in contrast.weights))
                rows.append(
                    {
                        **{"variant": contrast.variant, "other": contrast.other, "set": name, "statistic": statistic},
                        "seeds": len(differences),
                        "seeds_missing": len(planned) - len(differences),
                        **interval,
                        "p": p,
                        "budgets": "equal" if contrast.same_budget(self.plan.variants) else "unequal",
                    }
                )
        columns = ["variant", "other", "set", "statistic", "seeds", "seeds_missing"]
        columns += ["value", "low", "high", "p", "p_holm", "budgets"]
        table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(["low", "high", "p", "p_holm"], "float64"))
        for _, family in table.groupby("statistic"):
            known = family["p"].dropna()
            table.loc[known.index, "p_holm"] = holm(known)
        return table

    @cached_property
    def tables(self) -> list[Table]:
        """For each statistic, variants and differences; notes are below the last table."""
        pairs = self.comparisons.assign(pair=self.comparisons["variant"] + " minus " + self.comparisons["other"])
        tables = []
        for statistic, title in TITLES.items():
            for caption, table, key in ((title, self.results, "variant"), (f"{title}: differences", pairs, "pair")):
                chosen = table[table["statistic"] == statistic]
                if len(chosen):
                    tables.append(_table(self.plan, caption, chosen, key, percent=statistic == SOLVED))
        return [*tables[:-1], replace(tables[-1], notes=self.notes)]

    @property
    def notes(self) -> list[str]:
        """Notes on all tables: the method, unequal budgets, and missing runs."""
        text = f"{UNEQUAL} Budgets are unequal, in environment steps: {self.plan.describe_budgets()}."
        unequal = [] if self.plan.same_budget() else [text]
        of_factors = any(contrast.variant not in self.plan.variants for contrast in self.plan.contrasts)
        missing = [f"Missing: {run} ({reason})" for run, reason in self.missing.items()]
        return [METHOD, *([FACTORS] if of_factors else []), *unequal, *missing]

    @property
    def findings(self) -> list[str]:
        """Sentences on all differences on nominal values, and on significant ones on the other sets."""
        return difference_findings(self.comparisons, self.plan.sets[0].name)

    @property
    def text(self) -> str:
        """The findings, the verdict first, and all tables, as the command prints them."""
        return "\n\n".join(["\n".join(self.findings), *map(str, self.tables)])


def evaluate_runs(
    plan: Study,
    folder: Path,
    runs: Sequence[StudyRun],
    missing: Mapping[str, str],
    *,
    command: str,
    progress: ProgressCallback,
) -> StudyResult:
    """Plays missing episodes of a study's runs, and writes its CSV files and ``tables.txt``.

    Args:
        plan: The study.
        folder: Its folder.
        runs: All of its runs.
        missing: Names of untrained runs -> reason.
        command: The command line, recorded in the evaluation.
        progress: Called as episodes end.
    """
    trained = [run for run in runs if run.name not in missing]
    done = [run for variant in plan.variants.values() for run in trained if run.variant is variant]
    policies: dict[str, dict[int, FrozenPolicy]] = {}
    for policy, run in zip(open_runs(done), done, strict=True):
        named = replace(policy, name=run.name, reference=run.variant.name in plan.references)
        policies.setdefault(run.variant.name, {})[run.config.settings.seed] = named
    evaluation = evaluate_policies(
        [policy for of in policies.values() for policy in of.values()],
        plan.sets,
        folder / "evaluation",
        success=plan.success,
        only=True,
        command=command,
        progress=progress,
    )
    found = StudyResult(folder=folder, plan=plan, evaluation=evaluation, policies=policies, missing=missing)
    times = pd.DataFrame(map(_time, done))
    for name, table in {"results": found.results, "comparisons": found.comparisons, "times": times}.items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False, float_format=float.__repr__).encode())
    write_atomically(folder / "tables.txt", f"{found.text}\n".encode())
    return found


def _time(run: StudyRun) -> dict[str, Any]:
    """A row of ``times.csv``: a run's environment steps, without reset steps, and its training time."""
    last, variant = last_row(run.folder.metrics), run.variant
    head = {"variant": variant.name, "seed": run.config.settings.seed, "budget": variant.budget}
    return {**head, "steps": int(last["steps"]), "seconds": last["seconds"]}


def _table(plan: Study, caption: str, table: pd.DataFrame, key: str, *, percent: bool) -> Table:
    """A row for each variant or pair, a column for each set; marks missing seeds and unequal budgets."""
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


def _cell(row: Mapping[Any, Any], *, percent: bool) -> Cell:
    """A number with its interval and, for a difference, its p-value."""
    unknown = math.isnan(row["low"])
    ends = {name: None if unknown else row[name] for name in ("low", "high")}
    found = interval_cell({"value": row["value"], **ends}, percent=percent)
    return Cell(
        found.value, found.detail if math.isnan(row.get("p_holm", math.nan)) else f"{found.detail}, {_p_value(row)}"
    )


def _p_value(row: Mapping[Any, Any]) -> str:
    """A corrected p-value, as a relation."""
    return f"p < {SMALLEST}" if row["p_holm"] < SMALLEST else f"p = {row['p_holm']:.3f}"


def difference_findings(comparisons: pd.DataFrame, first: str) -> list[str]:
    """The verdict, then sentences on all differences of mean return on one set, and on significant ones on the others.

    Args:
        comparisons: See ``StudyResult``; on the other sets, sentences also tell shares of solved episodes.
        first: Name of the one set.
    """
    stated = comparisons[comparisons["statistic"].isin([MEAN, SOLVED])]
    own = (stated["set"] == first) & (stated["statistic"] == MEAN)
    significant = stated["p_holm"] < ALPHA
    clear = [_change(row) for row in stated[significant].to_dict("records")]
    unclear = counted(int((stated["p_holm"] >= ALPHA).sum()), "other difference")
    if stated["p_holm"].isna().all():
        verdict = ["Seeds cannot tell whether another training would show these differences."]
    elif clear:
        verdict = [f"{'; '.join(clear[:MOST])}; {unclear} may be chance."]
    else:
        verdict = ["No difference in mean return or in solved episodes is significant."]
    return [*(verdict if len(stated) else []), *map(_finding, stated[own | significant].to_dict("records"))]


def _change(row: Mapping[Any, Any]) -> str:
    """What differs how much; names in quotes may read like words of a sentence."""
    solved = row["statistic"] == SOLVED
    scale, did, unit = (100.0, "solves", " percentage points") if solved else (1.0, "achieves", "")
    names = {name: APART if name == APART else f"'{name}'" for name in (row["variant"], row["other"])}
    what = f"{did} {scale * abs(row['value']):.1f}{unit} {'more' if row['value'] >= 0 else 'less'}"
    return f"On {row['set']}, {names[row['variant']]} {what} than {names[row['other']]}"


def _finding(row: Mapping[Any, Any]) -> str:
    scale, text = 100.0 if row["statistic"] == SOLVED else 1.0, _change(row)
    if math.isnan(row["p_holm"]):
        text += f"; {'there are too few seeds for an interval' if row['seeds'] < 2 else NO_SPREAD}"
    else:
        low, high = scale * row["low"], scale * row["high"]
        text += f" (95 % interval of the difference {low:.1f} to {high:.1f}, corrected {_p_value(row)}"
        text += ")" if row["p_holm"] < ALPHA else "), which is not significant"
    return f"{text}{f' {UNEQUAL}' if row['budgets'] == 'unequal' else ''}."
