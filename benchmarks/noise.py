"""Cost of noise, delays, failing sensors and pushes: speed of vector environments with and without DisturbVector.

Run it with: python -m benchmarks.noise
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr
from benchmarks.timing import alternate, report
from gym_dr import Bernoulli, DisturbVector, Integer

ROUNDS = 9
SECONDS = 0.5
EVERYTHING: dict[str, Any] = {
    "obs_noise": (0.0, 0.05),
    "obs_bias": (0.0, 0.02),
    "obs_delay": Integer(0, 2),
    "obs_drop": (0.0, 0.1),
    "obs_drop:0": (0.0, 0.1),
    "obs_hide:*": Bernoulli(0.1),
    "obs_offset:*": (-0.01, 0.01),
    "action_noise": (0.0, 0.1),
    "action_delay": Integer(0, 3),
    "action_drop": (0.0, 0.1),
    "action_gain": (0.0, 0.1),
    "action_gain_interval": 50,
    "push_speed": (0.0, 0.01),
    "push_probability": 0.01,
    "push_interval": Integer(50, 100),
}


def microseconds_per_step(envs: Any, actions: Any) -> float:
    """Mean time of a step of all sub-environments, including autoresets."""
    steps = 0
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        for row in actions:
            envs.step(row)
        steps += len(actions)
    return 1e6 * (time.perf_counter() - start) / steps


def compare(env_id: str, num_envs: int) -> None:
    """Prints a table: bare, with observation noise only, with everything."""
    sides = {
        "bare": gym.make_vec(env_id, num_envs, num_threads=1),
        "obs_noise": DisturbVector(gym.make_vec(env_id, num_envs, num_threads=1), {"obs_noise": (0.0, 0.05)}),
        "everything": DisturbVector(gym.make_vec(env_id, num_envs, num_threads=1), EVERYTHING),
    }
    space = sides["bare"].single_action_space
    actions = np.random.default_rng(0).uniform(-1, 1, (50, num_envs, *space.shape)).astype(space.dtype)
    for envs in sides.values():
        envs.reset(seed=0)
    work = {name: partial(microseconds_per_step, envs, actions) for name, envs in sides.items()}
    report(f"{env_id}, {num_envs:,} sub-environments, native, one thread", alternate(work, ROUNDS), "bare", "us/step")
    for envs in sides.values():
        envs.close()


def main() -> None:
    """Prints the tables."""
    for num_envs in (1, 16, 1024):
        compare("gym_dr/LunarLanderContinuousDR-v3", num_envs)
    compare("gym_dr/HopperDR-v5", 16)
    print(f"\ngym_dr {gym_dr.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
