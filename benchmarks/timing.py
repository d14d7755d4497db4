"""Timing for all benchmarks: sides alternate, and results are medians and their ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gym_dr
from gym_dr.bench import alternate

__all__ = ["NO_RENDERING", "alternate", "ppo_side", "report", "seconds"]

# Stable-Baselines3's make_vec_env sets "rgb_array", with which Box2D also simulates the particles of the engines
NO_RENDERING = {"render_mode": None}


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ppo_side(folder: Path, *, updates: int, num_envs: int, rollout_steps: int, **settings: Any) -> Callable[[], float]:
    """A function that trains PPO from new networks, with all files that a run writes; returns steps per second."""
    train = partial(
        gym_dr.train,
        "ppo",
        run_dir=folder,
        overwrite=True,
        num_envs=num_envs,
        rollout_steps=rollout_steps,
        eval_episodes=0,
        progress=False,
        **settings,
    )
    train(updates=1)  # compiles
    return lambda: updates * num_envs * rollout_steps / seconds(lambda: train(updates=updates))


def report(title: str, measured: dict[str, list[float]], reference: str, unit: str) -> None:
    """Prints median and range of each side, and the median over rounds of its ratio to the reference."""
    print(f"\n{title}")
    for name, values in measured.items():
        ratios = [value / base for value, base in zip(values, measured[reference], strict=True)]
        print(
            f"  {name:28} {statistics.median(values):12,.2f} {unit:8} ({min(values):,.2f} to {max(values):,.2f})"
            f"   x {statistics.median(ratios):.2f}"
        )
