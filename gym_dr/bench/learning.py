"""Wall time until training passes a mean return."""

from __future__ import annotations

import contextlib
import math
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from gym_dr.compiled.processors import using_threads
from gym_dr.errors import TrainingError
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import WINDOW, RunSession, UpdateCallback
from gym_dr.training.api import Algorithm

_ENDLESS = {"updates": 10**9, "schedule": "constant"}  # only the clock ends training


class _Over(Exception):  # noqa: N818  not an error: a progress callback raises it to end training
    """Training has passed the threshold, or its time is up."""


def training_config(env_id: str, algorithm: Algorithm, num_envs: int | None, seed: int) -> RunConfig:
    """The algorithm's defaults with constant rates, for a run of unknown length; None is its default too.

    Raises:
        GymDrError: The environment is unknown, cannot be made, or does not fit the algorithm.
    """
    known = {field.name for field in fields(algorithm.config_class())}
    given: dict[str, Any] = {name: _ENDLESS[name] for name in _ENDLESS.keys() & known}
    given |= {"env": env_id, "seed": seed, "eval_episodes": 0} | ({"num_envs": num_envs} if num_envs else {})
    randomization = "none" if param_space_of(env_id) is None else "default"
    return build_config(algorithm, given, randomization=randomization)


@contextlib.contextmanager
def temporary_session(config: RunConfig, report: UpdateCallback = lambda *_: None) -> Iterator[RunSession]:
    """Makes a session like ``gymdr train``, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="gymdr-bench-") as place:
        folder = RunFolder.create(Path(place) / "run", config.to_json(), overwrite=False)
        with contextlib.closing(RunSession(folder, config, report, resume=False)) as session:
            yield session


def time_to_threshold(config: RunConfig, algorithm: Algorithm, threshold: float, limit: float) -> dict[str, Any]:
    """Trains until the threshold or for ``limit`` seconds, but for at least one update.

    A run passes at the first update after which the mean return of the last 100 episodes is above the threshold. Fewer
    than 100 do not count, since the first episodes to end are the short ones.

    Returns:
        Whether it passed, and seconds, steps and mean return at the end (None before the first episode ends).

    Raises:
        GymDrError: The environment cannot be trained on.
    """
    last: dict[str, float] = {}
    passed = False

    def watch(_: int, row: Mapping[str, float]) -> None:
        nonlocal passed
        last.update(row)
        passed = row["episodes"] >= WINDOW and row["return_mean"] > threshold
        if passed or row["seconds"] >= limit:
            raise _Over

    with temporary_session(config, watch) as session, contextlib.suppress(_Over):
        try:
            algorithm.train_function()(session, config.options)
        except TrainingError:  # diverged: did not pass
            if not last:
                raise
    mean = last.get("return_mean", math.nan)
    return {
        "passed": passed,
        "seconds": last["seconds"],
        "steps": last["steps"],
        "return_mean": None if math.isnan(mean) else mean,
    }


def training_rate(config: RunConfig, algorithm: Algorithm, num_threads: int, seconds: float) -> float:
    """Steps per second of a new training on a number of threads, which lasts about so many seconds."""
    with using_threads(num_threads):
        run = time_to_threshold(config, algorithm, math.inf, seconds)
    return float(run["steps"] / run["seconds"])


def learning_medians(result: Mapping[str, Any]) -> dict[int, float]:
    """Number of environments -> median seconds to the threshold; infinite if half of the seeds did not pass.

    Args:
        result: The content of ``bench.json``.
    """
    times: dict[int, list[float]] = {}
    for run in result["learning"]:
        times.setdefault(run["num_envs"], []).append(run["seconds"] if run["passed"] else math.inf)
    return {size: statistics.median(times[size]) for size in sorted(times)}
