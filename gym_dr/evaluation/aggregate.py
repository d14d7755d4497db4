"""Aggregates runs of several seeds: all metrics in one file, and a summary with intervals."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gym_dr.envs.family import return_limits
from gym_dr.evaluation.results import read_document
from gym_dr.evaluation.statistics import mean_over_seeds, point_statistics, statistic_names
from gym_dr.runs.folder import AGGREGATE, RunFolder, write_atomically
from gym_dr.runs.metrics import read_metrics

METRICS, SUMMARY, _ = AGGREGATE  # the metrics of all runs have a column ``seed``


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
