"""What ``gymdr bench`` measures: steps per second, by environments and by threads, and the time to learn."""

from __future__ import annotations

import contextlib
import itertools
import math
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from gym_dr.compiled.processors import usable_threads, using_threads
from gym_dr.errors import ConfigError, GymDrError, TrainingError, counted
from gym_dr.randomization.presets import resolve
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import make_vector_env, param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import WINDOW, RunSession, UpdateCallback
from gym_dr.training.api import Algorithm
from gym_dr.version import __version__

_ENDLESS = {"updates": 10**9, "schedule": "constant"}  # only the clock ends training
# names -> mode, and number of threads if not all
Sides = Mapping[Any, tuple[str, int | None]]
MODES: Sides = {mode: (mode, None) for mode in ("native", "sync", "async")}
_ACTION_BATCHES = 64  # drawn beforehand and reused
_MOST_PROCESSES = 32  # of async environments on machines with few cores: more fill the memory and are no faster
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to measure."""

    sizes: Sequence[int]  # numbers of sub-environments
    threads: Sequence[int] = (1,)  # numbers of threads, ...
    scaled: int = 1024  # ... and of the sub-environments that they step
    seeds: Sequence[int]  # of training; all sizes take turns within a seed
    limit: float  # s of a training
    rounds: int  # of stepping, after one to warm up
    seconds: float  # of stepping in a round
    training: float  # s of a training in a round


FULL = Plan(
    sizes=(1, 2, 4, 10, 32, 64, 256, 1024), seeds=(1, 2, 3, 4, 5), limit=30.0, rounds=5, seconds=0.5, training=3.0
)
QUICK = Plan(sizes=(1, 4, 32, 256), seeds=(1,), limit=5.0, rounds=2, seconds=0.1, training=1.0)


def measure(env_id: str, algorithm: Algorithm, plan: Plan, threshold: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measures steps per second by sub-environments and by threads, then the time to a threshold.

    Args:
        env_id: Id of the environment.
        algorithm: What to train.
        plan: How much to measure.
        threshold: Mean return of the last 100 episodes to pass.

    Yields:
        A text about the next measurement, and the content of ``bench.json`` so far.

    Raises:
        GymDrError: The environment is unknown, cannot be made, or cannot be trained on.
    """
    import torch  # heavy

    torch.set_num_threads(1)  # as in training: the networks are small
    result: dict[str, Any] = {
        "machine": describe(),
        "env": env_id,
        "algorithm": algorithm.name,
        "sizes": list(plan.sizes),
        "threshold": threshold,
        "limit_seconds": plan.limit,
        "throughput": [],
        "left_out": {},
        "scaling": [],
        "learning": [],
    }
    yield "compiling", result
    time_to_threshold(training_config(env_id, algorithm, 1, 0), algorithm, threshold, limit=0.0)
    for num_envs in plan.sizes:
        yield f"stepping {counted(num_envs, 'environment')}", result
        rates, left_out = measure_throughput(env_id, num_envs, plan.rounds, plan.seconds)
        rows = [{"num_envs": num_envs, "mode": mode, "steps_per_second": own} for mode, own in rates.items()]
        result["throughput"] += rows
        for mode, reason in left_out.items():
            result["left_out"].setdefault(mode, f"from N = {num_envs}: {reason}")
    yield f"stepping {counted(plan.scaled, 'environment')} by threads", result
    which: Sides = {count: ("native", count) for count in plan.threads}
    rates, _ = measure_throughput(env_id, plan.scaled, plan.rounds, plan.seconds, which)
    result["scaling"] += _by_threads("native", plan.scaled, rates)
    default = training_config(env_id, algorithm, None, 1)
    yield f"training with {counted(default.settings.num_envs, 'environment')} by threads", result
    sides = {count: partial(training_rate, default, algorithm, count, plan.training) for count in plan.threads}
    result["scaling"] += _by_threads(algorithm.name, default.settings.num_envs, alternate(sides, plan.rounds))
    for seed in plan.seeds:
        for num_envs in plan.sizes:
            yield f"training with {counted(num_envs, 'environment')}, seed {seed}", result
            config = training_config(env_id, algorithm, num_envs, seed)
            run = {"num_envs": num_envs, "seed": seed, **time_to_threshold(config, algorithm, threshold, plan.limit)}
            result["learning"].append(run)
    yield "done", result


def _by_threads(what: str, num_envs: int, rates: dict[int, list[float]]) -> list[dict[str, Any]]:
    """The rows of ``bench.json`` for the steps per second of ``what`` by number of threads."""
    return [{"what": what, "num_envs": num_envs, "threads": n, "steps_per_second": own} for n, own in rates.items()]


def describe() -> str:
    """The machine and what runs on it, in a line."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, IndexError):
        processor = (
            Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("model name")[2].split("\n")[0].strip(" \t:")
        )
    versions = f"gym-dr {__version__}, gymnasium {gym.__version__}, Python {platform.python_version()}"
    return f"{processor}, {counted(usable_threads(), 'core')}; {versions}"


# ---- learning --------------------------------------------------------------------------------------------------------


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


# ---- stepping --------------------------------------------------------------------------------------------------------


class Stepper:
    """Steps a vector environment with random actions; episodes continue between calls."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        """Resets the environments (NEXT_STEP autoreset)."""
        self._envs = envs
        envs.action_space.seed(0)
        self._actions = itertools.cycle([envs.action_space.sample() for _ in range(_ACTION_BATCHES)])
        self._done = np.zeros(envs.num_envs, np.bool_)
        envs.reset()

    def rate(self, seconds: float) -> float:
        """Steps of sub-environments per second, without steps that only reset.

        Args:
            seconds: How long to step; makes at least one step that counts.
        """
        spent, counted = 0.0, 0
        while spent < seconds or not counted:
            actions = next(self._actions)
            begin = time.perf_counter()
            _, _, terminated, truncated, _ = self._envs.step(actions)
            spent += time.perf_counter() - begin
            counted += int((~self._done).sum())
            self._done = terminated | truncated
        return counted / spent


def measure_throughput(
    env_id: str, num_envs: int, rounds: int, seconds: float, which: Sides = MODES
) -> tuple[dict[Any, list[float]], dict[Any, str]]:
    """Steps vector environments in turn, with nominal physics.

    Args:
        env_id: Id of the environment.
        num_envs: Number of sub-environments.
        rounds: Each mode steps once a round; one more round warms up.
        seconds: Of stepping in a round.
        which: The environments to step.

    Returns:
        Name -> steps per second of each round, and name -> why it could not take part.
    """
    sides: dict[Any, Callable[[], float]] = {}
    left_out = {}
    with contextlib.ExitStack() as closing:
        for name, (mode, num_threads) in which.items():
            try:
                with using_threads(num_threads):
                    stepper = closing.enter_context(_opened(mode, env_id, num_envs))
                sides[name] = partial(stepper.rate, seconds)
            except GymDrError as error:  # not for this environment
                left_out[name] = str(error)
        return alternate(sides, rounds), left_out


@contextlib.contextmanager
def _opened(mode: str, env_id: str, num_envs: int) -> Iterator[Stepper]:
    """A vector environment, ready to step.

    Raises:
        GymDrError: It cannot take part.
    """
    most = max(_MOST_PROCESSES, 2 * usable_threads())
    if mode == "async" and num_envs > most:
        raise ConfigError(f"a process for each environment, of at most {most} here.")
    space = param_space_of(env_id)
    envs: Any = make_vector_env(env_id, num_envs, mode, None if space is None else resolve("none", space))
    try:
        yield Stepper(envs)
    finally:  # a process that Ctrl-C has interrupted in a step would never answer a request to close
        envs.close(**({"terminate": True} if mode == "async" else {}))


def alternate(sides: Mapping[Name, Callable[[], float]], rounds: int) -> dict[Name, list[float]]:
    """Runs every side once per round, in turn, so that slow moments of the machine affect all of them.

    Args:
        sides: name -> function that does the work and returns a measurement, for example steps per second.
        rounds: Number of rounds, after one to warm up.

    Returns:
        name -> measurements, one per round.
    """
    measured: dict[Name, list[float]] = {name: [] for name in sides}
    for round_number in range(rounds + 1):
        for name, side in sides.items():
            value = side()
            if round_number:
                measured[name].append(value)
    return measured
