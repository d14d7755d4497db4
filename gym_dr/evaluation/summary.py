"""The content of ``evaluation.json``: what was evaluated, and a summary of the episodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.regret import best_on, describe_best, regret_statistics
from gym_dr.evaluation.results import FORMAT, Evaluation, nominal_values
from gym_dr.evaluation.sensitivity import failing, least_perturbation, sensitivity
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import CONFIDENCE, policy_statistics
from gym_dr.evaluation.worst_cells import worst_cell
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.space import ParamSpace
from gym_dr.training.api import seed_for
from gym_dr.version import WRITTEN_BY, __version__

if TYPE_CHECKING:
    import pandas as pd

EVALUATION_SEED = seed_for(0, stream=1)  # of the first episode; the same for every policy, so that all play the same


def initial_document(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    success: float | None,
    command: str,
) -> dict[str, Any]:
    """The document of an evaluation before its first episode."""
    space = policies[0].space or ParamSpace("", [])
    varied = {name for cells in sets for name in cells.parameters}
    described = ("nominal", "low", "high", "unit", "kind", "doc")
    return {
        "format": FORMAT,
        WRITTEN_BY: __version__,
        "complete": False,
        "command": command,
        "env": policies[0].env,
        "seed": EVALUATION_SEED,
        "success": success,
        "confidence": CONFIDENCE,
        "parameters": {n: {key: getattr(space[n], key) for key in described} for n in space.in_order(varied)},
        "policies": [_policy(policy, folder) for policy in policies],
        "references": [policy.name for policy in policies if policy.reference],
        "sets": [cells.to_dict() for cells in sets],
        "results": [],
        "differences": [],
        "best_known": [],
    }


def _policy(policy: FrozenPolicy, folder: Path) -> dict[str, Any]:
    randomization, space, path = policy.randomization, policy.space, policy.record["path"]
    ranges = {} if space is None else {n: r.support(space[n].nominal) for n, r in (randomization or {}).items()}
    return {
        "name": policy.name,
        **policy.record,
        "path": None if path is None else _path_from(folder, Path(path)),
        "trained_on": policy.trained_on,
        "ranges": {name: [float(low), float(high)] for name, (low, high) in ranges.items()},
        "randomization": None if randomization is None else randomization.to_dict(),
        "digest": policy.digest,
    }


def _path_from(folder: Path, path: Path) -> str:
    """A relative path, so that both can move together; absolute if there is none, as on another drive."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return str(path.absolute())


def summarize(evaluation: Evaluation, fresh: pd.DataFrame) -> dict[str, Any]:
    """The entries of the document that summarize finished episodes.

    Args:
        evaluation: All sets are complete.
        fresh: Episodes of the worst cells, which were played again.
    """
    document, policies = evaluation.document, evaluation.policies
    results: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    success = document["success"]
    nominal = nominal_values(document)
    fails = np.zeros(len(policies), np.bool_)
    if success is not None and any(cells.kind == "nominal" for cells in evaluation.sets):
        fails = failing(evaluation.returns("nominal")[:, 0], success)
    for cells in evaluation.sets:
        returns = evaluation.returns(cells.name)
        statistics, pairs = policy_statistics(returns.reshape(len(returns), -1), cells, success)
        known = best_on(cells, returns) if document["references"] else None
        if known is not None:
            statistics = [own | regret for own, regret in zip(statistics, regret_statistics(known, cells), strict=True)]
            best.append(describe_best(known, cells, success))
        lengths = evaluation.episodes[evaluation.episodes["set"] == cells.name].groupby("policy")["steps"].mean()
        for k, name in enumerate(policies):
            worst = least = None
            if cells.num_cells > 1:
                rows = fresh[(fresh["policy"] == name) & (fresh["set"] == cells.name)]
                worst = worst_cell(returns[k], rows["return"].to_numpy(np.float64), cells)
                least = least_perturbation(returns[k], cells, nominal, success, fails_at_nominal=bool(fails[k]))
            results.append(
                {
                    "policy": name,
                    "set": cells.name,
                    "episodes": cells.num_episodes,
                    "statistics": statistics[k],
                    "min": float(returns[k].min()),
                    "max": float(returns[k].max()),
                    "length_mean": float(lengths[name]),
                    "worst_cell": worst,
                    "least_perturbation": least,
                    "sensitivity": sensitivity(returns[k], cells) if cells.points else None,
                }
            )
        for (one, other), difference in pairs.items():
            names = {"policy": policies[one], "other": policies[other]}
            differences.append({**names, "set": cells.name, "statistics": difference})
    return {"complete": True, "results": results, "differences": differences, "best_known": best}
