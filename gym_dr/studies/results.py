"""The results of a study: its runs evaluated on the same draws, and what each variant and contrast gives over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.paired import holm, mean_over_seeds
from gym_dr.evaluation.regret import REGRET
from gym_dr.evaluation.statistics import Interval, point_statistics, statistic_names
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.metrics import last_row
from gym_dr.studies.folder import StudyRun
from gym_dr.studies.plan import Study, describe_budget
from gym_dr.studies.tables import SOLVED, TITLES, WORST, difference_findings, study_tables
from gym_dr.table import Table
from gym_dr.wording import counted, listed

if TYPE_CHECKING:
    import pandas as pd

    from gym_dr.evaluation.evaluate import ProgressCallback
    from gym_dr.evaluation.results import Evaluation
    from gym_dr.policies.frozen import FrozenPolicy


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StudyResult:
    """A study that has been evaluated.

    Attributes:
        folder: Folder of the study.
        plan: What was to be trained, evaluated and compared.
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
        missing = f", {len(self.missing)} runs missing" if self.missing else ""
        names = listed([variant.name for variant in self.plan.variants])
        return f"StudyResult({str(self.folder)!r}: {names} on {self.plan.env}, {self.plan.counts} each{missing})"

    def _repr_html_(self) -> str:
        """All tables, for notebooks."""
        return "\n".join(table.__html__() for table in self.tables)

    @cached_property
    def values(self) -> dict[tuple[str, str], dict[str, dict[int, float]]]:
        """(statistic, set) -> variant -> seed -> value, in the order of the tables."""
        found: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        success = self.evaluation.document["success"]
        owners = [(variant, seed) for variant, by_seed in self.policies.items() for seed in by_seed]
        rows = {(row["policy"], row["set"]): row for row in self.evaluation.document["results"]}
        for cells in self.plan.sets:
            owned = zip(owners, self.evaluation.policies, self.evaluation.returns(cells.name), strict=True)
            for (variant, seed), policy, returns in owned:
                numbers = dict(zip(statistic_names(success), point_statistics(returns.ravel(), success), strict=True))
                if cells.num_cells > 1:
                    numbers[WORST] = rows[policy, cells.name]["worst_cell"]["mean"]["value"]
                regret = rows[policy, cells.name]["statistics"].get(REGRET)  # none without references
                if regret is not None and regret["value"] is not None:
                    numbers[REGRET] = regret["value"]
                for statistic in TITLES.keys() & numbers.keys():
                    by_variant = found.setdefault((statistic, cells.name), {})
                    by_variant.setdefault(variant, {})[seed] = float(numbers[statistic])
        order = list(TITLES)
        return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row for each variant, set and statistic, as in ``results.csv``: its mean over seeds, interval and budget."""
        import pandas as pd  # heavy

        rows: list[dict[str, Any]] = []
        budgets = "equal" if self.plan.same_budget() else "unequal"
        for (statistic, name), by_variant in self.values.items():
            for variant, by_seed in by_variant.items():
                interval, _ = mean_over_seeds(np.array(list(by_seed.values())))
                if statistic == SOLVED:
                    interval = _within(interval, 0.0, 1.0)
                head = {"variant": variant, "set": name, "statistic": statistic, "seeds": len(by_seed)}
                head["seeds_missing"] = len(self.plan.seeds_of[variant]) - len(by_seed)
                rows.append({**head, **interval, "steps": self.plan.budgets[variant], "budgets": budgets})
        return pd.DataFrame(rows).astype({"low": "float64", "high": "float64"})

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """A row for each contrast, set and statistic, as in ``comparisons.csv``: its mean, interval and p-values."""
        import pandas as pd  # heavy

        rows: list[dict[str, Any]] = []
        for (statistic, name), by_variant in self.values.items():
            if statistic == REGRET:  # its differences are those of mean returns, with the other sign
                continue
            for contrast in self.plan.contrasts:
                differences = contrast.over_seeds(by_variant)
                if not len(differences):
                    continue
                interval, p = mean_over_seeds(differences)
                if statistic == SOLVED:
                    most = sum(abs(weight) for weight in contrast.weights.values()) / 2
                    interval = _within(interval, -most, most)
                planned = set.intersection(*(set(self.plan.seeds_of[variant]) for variant in contrast.weights))
                head = {"variant": contrast.variant, "other": contrast.other, "set": name, "statistic": statistic}
                seeds = {"seeds": len(differences), "seeds_missing": len(planned) - len(differences)}
                budgets = "equal" if contrast.same_budget(self.plan.budgets) else "unequal"
                rows.append({**head, **seeds, **interval, "p": p, "budgets": budgets})
        columns = ["variant", "other", "set", "statistic", "seeds", "seeds_missing"]
        columns += ["value", "low", "high", "p", "p_holm", "budgets"]
        table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(["low", "high", "p", "p_holm"], "float64"))
        for _, family in table.groupby("statistic"):
            known = family["p"].dropna()
            table.loc[known.index, "p_holm"] = holm(known.tolist())
        return table

    @property
    def times(self) -> pd.DataFrame:
        """A row for each run, as in ``times.csv``: its environment steps, without reset steps, and its training time."""
        import pandas as pd  # heavy

        rows = []
        for variant, by_seed in self.policies.items():
            for seed, policy in by_seed.items():
                assert policy.run is not None  # a study trains its own
                last = last_row(policy.run.folder.metrics)
                head = {"variant": variant, "seed": seed, "budget": self.plan.budgets[variant]}
                rows.append({**head, "steps": int(last["steps"]), "seconds": last["seconds"]})
        return pd.DataFrame(rows)

    @cached_property
    def tables(self) -> list[Table]:
        """For each statistic the results of each variant, and differences."""
        return study_tables(self.plan, self.results, self.comparisons, self.missing)

    @property
    def findings(self) -> list[str]:
        """States each difference on nominal values, and the significant ones on the other sets."""
        return difference_findings(self.comparisons, self.plan.sets[0].name)

    def markdown(self) -> str:
        """All tables in Markdown, as in ``tables.md``."""
        seeds = ", ".join(map(str, self.plan.seeds))
        text = [f"# {self.plan.env}", f"{counted(len(self.plan.variants), 'variant')}, seeds {seeds}."]
        if self.plan.same_budget():
            budget = next(iter(self.plan.budgets.values()))
            unit = "" if budget is None else " environment steps"
            text.append(f"Budget of each run: {describe_budget(budget)}{unit}.")
        for table in self.tables:
            text += [f"## {table.caption}", table.markdown(), *table.notes]
        return "\n\n".join(text) + "\n"


def evaluate_runs(
    plan: Study,
    folder: Path,
    runs: Sequence[StudyRun],
    missing: Mapping[str, str],
    *,
    command: str,
    progress: ProgressCallback,
) -> StudyResult:
    """Plays missing episodes of trained runs, and writes the CSV files and ``tables.md`` into the study's folder.

    Args:
        plan: The study.
        folder: Its folder.
        runs: The trained runs.
        missing: The others: their names, and why they are missing.
        command: The command line, recorded in the evaluation.
        progress: Called as episodes end.
    """
    from gym_dr.evaluation.evaluate import evaluate_policies  # heavy, as the next one
    from gym_dr.policies.open import open_runs

    trained = [run for variant in plan.variants for run in runs if run.variant is variant]
    opened = open_runs([(run.folder, run.config, run.variant.algorithm) for run in trained])
    policies: dict[str, dict[int, FrozenPolicy]] = {}
    for policy, run in zip(opened, trained, strict=True):
        named = dataclasses.replace(policy, name=run.name, reference=run.variant.name in plan.references)
        policies.setdefault(run.variant.name, {})[run.seed] = named
    evaluation = evaluate_policies(
        [policy for by_seed in policies.values() for policy in by_seed.values()],
        plan.sets,
        folder / "evaluation",
        success=plan.success,
        only=True,
        command=command,
        progress=progress,
    )
    found = StudyResult(folder=folder, plan=plan, evaluation=evaluation, policies=policies, missing=missing)
    for name, table in {"results": found.results, "comparisons": found.comparisons, "times": found.times}.items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False).encode())
    write_atomically(folder / "tables.md", found.markdown().encode())
    return found


def _within(interval: Interval, lowest: float, highest: float) -> Interval:
    """Clips an interval of shares, or of their differences, to possible values."""
    low, high = interval["low"], interval["high"]
    if low is None or high is None:
        return interval
    return {**interval, "low": max(low, lowest), "high": min(high, highest)}
