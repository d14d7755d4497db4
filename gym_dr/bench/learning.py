"""Wall time until training passes a mean return, by number of sub-environments, and with default settings."""

from __future__ import annotations

import contextlib
import math
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

from gym_dr.bench.settings import BenchSettings
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import TrainingError
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import WINDOW, RunSession, UpdateCallback
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import find_algorithm
from gym_dr.wording import counted

_ENDLESS = {"updates": 10**9, "schedule": "constant"}  # only the clock ends training

S = TypeVar("S", bound=RunSession)


class _Over(Exception):  # noqa: N818  not an error: a progress callback raises it to end training
    """Training has passed the threshold, or its time is up."""


def measure_learning(settings: BenchSettings, algorithm: Algorithm, report: Callable[[str], None]) -> dict[str, Any]:
    """Trains with every number of sub-environments and every seed, all numbers in turn for each seed.

    Returns:
        ``rows``, one for each number of sub-environments, with the median over seeds (None if half of them or more
        did not pass), the number of seeds that passed, and all ``runs``.
    """
    runs: dict[int, list[dict[str, Any]]] = {num_envs: [] for num_envs in settings.learning_sizes}
    for seed in settings.seeds:
        for num_envs in settings.learning_sizes:
            report(f"learning with {counted(num_envs, 'environment')}, seed {seed}")
            config = training_config(settings.env, algorithm, num_envs, seed)
            runs[num_envs].append(time_to_threshold(config, algorithm, settings.threshold, settings.learning_limit))
    rows = [
        {
            "num_envs": num_envs,
            "median_seconds": median_time([run["seconds"] if run["passed"] else None for run in of_size]),
            "passed": sum(run["passed"] for run in of_size),
            "runs": of_size,
        }
        for num_envs, of_size in runs.items()
    ]
    return {"threshold": settings.threshold, "limit_seconds": settings.learning_limit, "rows": rows}


def measure_solving(settings: BenchSettings, report: Callable[[str], None]) -> dict[str, Any]:
    """Trains on nominal physics with all defaults, including schedule and length, until the environment's threshold.

    All algorithms take turns within a seed. A run that ends below the threshold counts as not solved.

    Returns:
        ``threshold``, ``limit_seconds`` and ``rows``, one for each algorithm, with medians over seeds (None as in
        ``measure_learning``), the number of seeds that solved it, and all ``runs``; no rows if the environment has no
        threshold.
    """
    threshold = _solved_from(settings.env)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in settings.solvers}
    for seed in range(1, 1 + (0 if threshold is None else settings.solving_seeds)):
        for name in found:
            report(f"solving with {name}, seed {seed}")
            algorithm = find_algorithm(name)
            given = {"env": settings.env, "seed": seed, "eval_episodes": 0}
            config = build_config(algorithm, given, randomization="none")
            if seed == 1:
                time_to_threshold(config, algorithm, math.inf, limit=0.0)  # loads or compiles code
            found[name].append(time_to_threshold(config, algorithm, cast(float, threshold), settings.solving_limit))
    rows = [
        {
            "algorithm": name,
            "median_seconds": median_time([run["seconds"] if run["passed"] else None for run in runs]),
            "median_steps": median_time([run["steps"] if run["passed"] else None for run in runs]),
            "passed": sum(run["passed"] for run in runs),
            "runs": runs,
        }
        for name, runs in found.items()
        if runs
    ]
    return {"threshold": threshold, "limit_seconds": settings.solving_limit, "rows": rows}


def solving_trainings(settings: BenchSettings) -> int:
    """Number of training runs in ``measure_solving``."""
    return 0 if _solved_from(settings.env) is None else len(settings.solvers) * settings.solving_seeds


def _solved_from(env_id: str) -> float | None:
    """The return from which a registered environment of gym_dr is solved; None if there is none."""
    return ENVIRONMENTS.get(env_id).reward_threshold if env_id in ENVIRONMENTS else None


def training_config(env_id: str, algorithm: Algorithm, num_envs: int | None, seed: int) -> RunConfig:
    """The algorithm's defaults with constant rates, for a run of unknown length.

    A ``num_envs`` of None is the algorithm's default.

    Raises:
        GymDrError: The environment is unknown, cannot be made, or does not fit the algorithm.
    """
    known = {field.name for field in fields(algorithm.config_class())}
    given: dict[str, Any] = {name: _ENDLESS[name] for name in _ENDLESS.keys() & known}
    given |= {"env": env_id, "seed": seed, "eval_episodes": 0}
    if num_envs is not None:
        given["num_envs"] = num_envs
    randomization = "none" if param_space_of(env_id) is None else "default"
    return build_config(algorithm, given, randomization=randomization)


@contextlib.contextmanager
def temporary_session(kind: type[S], config: RunConfig, report: UpdateCallback = lambda *_: None) -> Iterator[S]:
    """Makes a session like ``gymdr train``, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="gymdr-bench-") as place:
        folder = RunFolder.create(Path(place) / "run", config.to_json(), overwrite=False)
        with contextlib.closing(kind(folder, config, report, resume=False)) as session:
            yield session


def time_to_threshold(config: RunConfig, algorithm: Algorithm, threshold: float, limit: float) -> dict[str, Any]:
    """Trains for at least one update, until the threshold or for ``limit`` seconds.

    A run passes at the first update after which the mean return of the last 100 episodes is above the threshold. Fewer
    than 100 do not count, since the first episodes to end are the short ones.

    Returns:
        Seed, whether it passed, and seconds, steps and mean return at the end (None before the first episode ends);
        ``reason`` says why it did not pass, else None.

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

    reason = None
    with temporary_session(RunSession, config, watch) as session:
        try:
            algorithm.train_function()(session, config.options)
            reason = f"not within {last['steps']:g} steps"
        except _Over:
            reason = None if passed else f"not within {limit:g} s"
        except TrainingError as error:
            if not last:
                raise
            reason = str(error)
    mean = last.get("return_mean", math.nan)
    return {
        "seed": config.settings.seed,
        "passed": passed,
        "seconds": last["seconds"],
        "steps": last["steps"],
        "return_mean": None if math.isnan(mean) else mean,
        "reason": reason,
    }


def median_time(seconds: list[float | None]) -> float | None:
    """Median of times, where None is longer than all others; None if the median is not finite."""
    median = statistics.median(math.inf if value is None else value for value in seconds)
    return median if math.isfinite(median) else None
