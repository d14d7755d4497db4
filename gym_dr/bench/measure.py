"""What ``gymdr bench`` measures, part by part, so that a stop loses only the part in progress."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

import gym_dr
from gym_dr.bench.learning import time_to_threshold, training_config, training_rate
from gym_dr.bench.throughput import Sides, alternate, measure_throughput
from gym_dr.compiled.processors import usable_threads
from gym_dr.training.api import Algorithm
from gym_dr.wording import counted


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
    versions = f"gym-dr {gym_dr.__version__}, gymnasium {gym.__version__}, Python {platform.python_version()}"
    return f"{processor}, {counted(usable_threads(), 'core')}; {versions}"
