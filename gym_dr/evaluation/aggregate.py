"""Aggregates runs of several seeds: all metrics in one file, mean learning curves, and a summary with intervals."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.errors import RunFolderError, shortened
from gym_dr.evaluation.plots import plot_training, read_metrics
from gym_dr.evaluation.results import read_document
from gym_dr.evaluation.statistics import iqm_with_interval
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder

METRICS = "metrics.csv"  # of all runs, with a column ``seed``
CURVE = "training.png"
SUMMARY = "summary.json"


def aggregate(folders: Sequence[RunFolder], root: Path) -> dict[str, Any]:
    """Writes the aggregate of finished runs, one per seed, into the folder that holds them.

    Returns:
        The content of ``summary.json``: for the training return and each evaluation, each seed's value and their mean,
        standard deviation, and interquartile mean with its 95 % bootstrap interval over seeds. A single seed has
        neither deviation nor interval.

    Raises:
        RunFolderError: A run has no metrics, or a file is damaged or cannot be written.
        ConfigError: A configuration or evaluation cannot be read.
    """
    import pandas as pd  # heavy

    tables = {_seed(folder): read_metrics(folder) for folder in folders}
    metrics = pd.concat([table.assign(seed=seed) for seed, table in tables.items()], ignore_index=True)
    write_atomically(root / METRICS, metrics.to_csv(index=False).encode())
    plot_training(folders, root / CURVE)

    values = defaultdict[str, dict[int, float]](dict)
    values["final training return"] = {seed: float(table["return_mean"].iloc[-1]) for seed, table in tables.items()}
    for folder in folders:
        document = read_document(folder.evaluation)
        for row in document["results"] if document else []:  # none if the run was not evaluated
            values[f"evaluation on {row['set']}"][_seed(folder)] = row["statistics"]["mean"]["value"]
    summary = {}
    for name, by_seed in values.items():
        known = {seed: value for seed, value in by_seed.items() if math.isfinite(value)}  # NaN before the first episode
        if numbers := list(known.values()):
            spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None
            iqm = dict(zip(("iqm", "iqm_low", "iqm_high"), iqm_with_interval(numbers), strict=True))
            summary[name] = {"seeds": known, "mean": float(np.mean(numbers)), "std": spread, **iqm}
    write_atomically(root / SUMMARY, (json.dumps(summary, indent=2) + "\n").encode())
    return summary


def _seed(folder: RunFolder) -> int:
    seed = folder.read_config().get("seed")
    if not isinstance(seed, int):
        raise RunFolderError(f"{folder.config}: expected a whole number 'seed', got {shortened(seed)}.")
    return seed
