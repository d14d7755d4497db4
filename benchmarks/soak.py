"""Steps native environments for a long time with re-drawn parameters; reports speed, memory and observations.

    python -m benchmarks.soak            # 100 million LunarLander steps and 10 million Hopper steps
    python -m benchmarks.soak --part 20  # a twentieth of that

The slow test ``tests/envs/test_soak.py`` asserts limits of memory and observations; times are only reported.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr

NUM_ENVS = {"gym_dr/LunarLanderDR-v3": 1024, "gym_dr/HopperDR-v5": 64}
STEPS = {"gym_dr/LunarLanderDR-v3": 100_000_000, "gym_dr/HopperDR-v5": 10_000_000}
RANDOMIZATION: dict[str, Any] = {
    "gym_dr/LunarLanderDR-v3": "wide",
    "gym_dr/HopperDR-v5": {"body_mass:*": gym_dr.Scale((0.5, 2.0)), "geom_friction:floor.slide": (0.5, 2.5)},
}


@dataclass(frozen=True, kw_only=True)
class Soak:
    """The results of a long run, by tenths of it."""

    speeds: list[float]  # sub-environment steps per second
    memory: list[int]  # resident bytes at the end of each tenth
    low: np.ndarray[Any, Any]  # (obs,) smallest value of each component of observations
    high: np.ndarray[Any, Any]  # (obs,) largest
    finite: bool  # whether all observations and rewards were finite
    draws: int  # smallest number of draws of a sub-environment


def resident() -> int:
    """Resident memory of this process in bytes (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(env_id: str, steps: int) -> Soak:
    """Steps with random actions; re-draws all parameters every 512 vector steps.

    Args:
        env_id: One of ``NUM_ENVS``.
        steps: Total steps of sub-environments.
    """
    num_envs = NUM_ENVS[env_id]
    made = gym.make_vec(env_id, num_envs, randomization=RANDOMIZATION[env_id])
    envs = gym_dr.ResampleParams(made, rollout_steps=128, every=4)
    observations, _ = envs.reset(seed=1)
    envs.action_space.seed(1)
    actions = [envs.action_space.sample() for _ in range(997)]  # a prime, so that episodes differ
    low, high, finite = observations.min(axis=0), observations.max(axis=0), True
    speeds, memory, t = [], [], 0
    for _ in range(10):
        started = time.perf_counter()
        vector_steps = max(1, steps // 10 // num_envs)
        for _ in range(vector_steps):
            observations, rewards, *_ = envs.step(actions[t % len(actions)])
            low = np.minimum(low, observations.min(axis=0))
            high = np.maximum(high, observations.max(axis=0))
            finite = finite and bool(np.isfinite(rewards).all())
            t += 1
        speeds.append(vector_steps * num_envs / (time.perf_counter() - started))
        memory.append(resident())
    draws = int(envs.draw_index.min()) + 1
    envs.close()
    finite = finite and bool(np.isfinite(low).all() and np.isfinite(high).all())  # NaN stays in a minimum
    return Soak(speeds=speeds, memory=memory, low=low, high=high, finite=finite, draws=draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", type=int, default=1, help="make 1/PART of the steps")
    part = parser.parse_args().part
    for env_id, steps in STEPS.items():
        result = soak(env_id, steps // part)
        first, last = result.speeds[0], result.speeds[-1]
        after = result.memory[1:]  # the first tenth warms up
        print(f"{env_id}: {steps // part:,} steps, at least {result.draws} draws each")
        print(f"  steps/s: first tenth {first:,.0f}, last {last:,.0f}, ratio {last / first:.3f}")
        print(f"  resident MB after warm-up: {min(after) / 1e6:.1f} to {max(after) / 1e6:.1f}")
        print(f"  all finite: {result.finite}")
        print(f"  smallest: {np.array2string(result.low, precision=3)}")
        print(f"  largest:  {np.array2string(result.high, precision=3)}")


if __name__ == "__main__":
    main()
