"""Summaries of the episodes of an evaluation, in ``evaluation.json``, and of runs of several seeds, in their folder."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Mask
from gym_dr.envs.family import difference_limits, return_limits
from gym_dr.envs.played import TERM
from gym_dr.evaluation.failures import (
    best_on,
    describe_best,
    failing,
    nearest_failure,
    regret_statistics,
    worst_cell,
    worst_of,
)
from gym_dr.evaluation.results import Evaluation, read_document
from gym_dr.evaluation.sensitivity import sensitivity
from gym_dr.evaluation.statistics import (
    mean_over_seeds,
    means_with_intervals,
    point_statistics,
    policy_statistics,
    statistic_names,
)
from gym_dr.runs.folder import AGGREGATE, RunFolder, write_atomically
from gym_dr.runs.metrics import read_metrics

if TYPE_CHECKING:
    import pandas as pd

METRICS, SUMMARY, _ = AGGREGATE  # the metrics of all runs have a column ``seed``


def summarize(evaluation: Evaluation, fresh: pd.DataFrame) -> dict[str, Any]:
    """The entries of ``evaluation.json`` that summarize finished episodes.

    Args:
        evaluation: All sets are complete.
        fresh: Episodes of the worst and suspect cells, which were played again.
    """
    question, policies = evaluation.question, evaluation.policies
    results: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    success, within, apart = question.success, return_limits(question.env), difference_limits(question.env)
    fails = fails_at_nominal(evaluation)
    for cells in evaluation.sets:
        returns = evaluation.returns(cells.name)
        flat = returns.reshape(len(returns), -1)
        statistics = policy_statistics(flat, cells, success, within)
        for other, mean in zip(policies[1:], means_with_intervals(flat[0] - flat[1:], cells, apart), strict=True):
            differences.append({"policy": policies[0], "other": other, "set": cells.name, "statistics": {"mean": mean}})
        known = best_on(cells, returns) if question.references else None
        if known is not None:
            statistics = [own | regret for own, regret in zip(statistics, regret_statistics(known, cells), strict=True)]
            best.append(describe_best(known, cells, success, within))
        rows = evaluation.episodes_of(cells.name)
        lengths = rows.groupby("policy")["steps"].mean()
        terms = {
            name: means_with_intervals(rows[name].to_numpy(np.float64).reshape(flat.shape), cells)
            for name in map(str, rows)
            if name.startswith(TERM) and name not in question.parameters
        }
        for k, name in enumerate(policies):
            worst = nearest = None
            if cells.num_cells > 1:
                own = fresh[(fresh["policy"] == name) & (fresh["set"] == cells.name)]
                again = {
                    int(cell): own.loc[own["cell"] == cell, "return"].to_numpy(np.float64) for cell in set(own["cell"])
                }
                worst = worst_cell(returns[k], again[worst_of(returns[k])], cells, within, question.needs)
                nearest = nearest_failure(
                    returns[k],
                    again,
                    cells,
                    question.nominal,
                    success,
                    needs=question.needs,
                    fails_at_nominal=bool(fails[k]),
                )
            results.append(
                {
                    "policy": name,
                    "set": cells.name,
                    "episodes": cells.num_episodes,
                    "statistics": statistics[k],
                    "min": float(returns[k].min()),
                    "max": float(returns[k].max()),
                    "length_mean": float(lengths[name]),
                    "reward_terms": {term: found[k] for term, found in terms.items()},
                    "worst_cell": worst,
                    "least_perturbation": nearest,
                    "sensitivity": sensitivity(returns[k], cells, question.needs) if cells.points else None,
                }
            )
    return {"complete": True, "results": results, "differences": differences, "best_known": best}


def fails_at_nominal(evaluation: Evaluation) -> Mask:
    """Whether each policy fails at nominal values, shape ``(policies,)``; False where nobody knows."""
    success = evaluation.question.success
    if success is None or not any(cells.kind == "nominal" for cells in evaluation.sets):
        return np.zeros(len(evaluation.policies), np.bool_)
    return failing(evaluation.returns("nominal")[:, 0], success)


def aggregate(folders: Sequence[RunFolder], root: Path) -> None:
    """Writes the aggregate of finished runs, one per seed, into their common folder.

    ``summary.json`` has each seed's training return and evaluations, and their statistics over seeds: ``mean`` with
    Student's t interval at 95 % (``mean_low``, ``mean_high``), ``std``, and the interquartile mean (``iqm``). A single
    seed has no standard deviation or interval, and equal values have no interval.

    Raises:
        RunFolderError: A run has no metrics, or a file is damaged or cannot be written.
        ConfigError: A configuration or evaluation cannot be read.
    """
    import pandas as pd  # heavy

    seeds = [int(folder.read_config()["seed"]) for folder in folders]
    tables = dict(zip(seeds, map(read_metrics, folders), strict=True))
    metrics = pd.concat([table.assign(seed=seed) for seed, table in tables.items()], ignore_index=True)
    write_atomically(root / METRICS, metrics.to_csv(index=False, float_format=float.__repr__).encode())
    values = defaultdict[str, dict[int, float]](dict)
    values["final training return"] = {seed: float(table["return_mean"].iloc[-1]) for seed, table in tables.items()}
    for seed, folder in zip(seeds, folders, strict=True):
        document = read_document(folder.evaluation)
        for row in document["results"] if document else []:  # none if the run was not evaluated
            values[f"evaluation on {row['set']}"][seed] = row["statistics"]["mean"]["value"]
    summary, within = {}, return_limits(str(folders[0].read_config().get("env", "")))
    for name, by_seed in values.items():
        known = {seed: value for seed, value in by_seed.items() if math.isfinite(value)}  # NaN before the first episode
        if known:
            sample = np.array(list(known.values()), np.float64)
            mean, _ = mean_over_seeds(sample, within)
            around = {"mean": mean["value"], "mean_low": mean["low"], "mean_high": mean["high"]}
            found = dict(zip(statistic_names(None), point_statistics(sample, None).tolist(), strict=True))
            std = found["std"] if len(sample) > 1 else None
            summary[name] = {"seeds": known, **around, "std": std, "iqm": found["iqm"]}
    write_atomically(root / SUMMARY, (json.dumps(summary, indent=2) + "\n").encode())
