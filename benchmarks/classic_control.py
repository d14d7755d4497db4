"""Speed of the native classic control environments against EnvPool and Gymnasium's SyncVectorEnv.

Sides alternate, on one thread, with random actions and ``info["params"]``; each counts steps of sub-environments per
second, including resets.
Run it with: python -m benchmarks.classic_control [rounds]     (EnvPool is optional: pip install "gym-dr[bench]")
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import alternate, report, seconds

NAMES = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
MANY, FEW = 1024, 10
TARGETS = "targets: many are at least 8 times EnvPool's and 100 times SyncVectorEnv's speed, few 4 times the latter"


class Side:
    """A vector environment with precomputed actions, so only the environment is timed."""

    def __init__(self, envs: Any, num_envs: int, space: Any, steps: int) -> None:
        rng = np.random.default_rng(0)
        if isinstance(space, gym.spaces.Discrete):
            self.actions = list(rng.integers(0, space.n, (16, num_envs)))
        else:
            self.actions = list(rng.uniform(space.low, space.high, (16, num_envs, 1)).astype(np.float32))
        self.envs, self.num_envs, self.steps = envs, num_envs, steps
        envs.reset()

    def speed(self) -> float:
        """Steps of sub-environments per second; episodes continue between calls."""

        def play() -> None:
            for t in range(self.steps):
                self.envs.step(self.actions[t % 16])

        return self.num_envs * self.steps / seconds(play)


def native(name: str, num_envs: int, randomization: str) -> Side:
    env_id = f"gym_dr/{name.replace('-', 'DR-')}"
    envs = gym.make_vec(env_id, num_envs, randomization=randomization)
    return Side(envs, num_envs, envs.unwrapped.single_action_space, 400 * MANY // num_envs // 10)


def stock(name: str) -> Side:
    envs = gym.make_vec(name, FEW, vectorization_mode="sync")
    return Side(envs, FEW, envs.single_action_space, 500)


def pool(name: str) -> Side:
    import envpool

    envs = envpool.make(name, env_type="gymnasium", num_envs=MANY, num_threads=1, seed=0)
    side = Side(envs, MANY, envs.action_space, 40)
    if isinstance(envs.action_space, gym.spaces.Discrete):
        side.actions = [actions.astype(np.int32) for actions in side.actions]
    return side


def main() -> None:
    """Prints a table for each environment."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with_pool = importlib.util.find_spec("envpool") is not None
    print(TARGETS if with_pool else "EnvPool is not installed; its figures are left out.")
    for name in NAMES:
        many = {f"native, {MANY}, {preset}": native(name, MANY, preset) for preset in ("none", "default")}
        few = {f"native, {FEW}, {preset}": native(name, FEW, preset) for preset in ("none", "default")}
        if with_pool:
            sides = {f"EnvPool, {MANY}": pool(name), **many}
            measured = alternate({side: each.speed for side, each in sides.items()}, rounds)
            report(f"{name}, against EnvPool", measured, f"EnvPool, {MANY}", "steps/s")
        sides = {f"SyncVectorEnv, {FEW}": stock(name), **many, **few}
        measured = alternate({side: each.speed for side, each in sides.items()}, rounds)
        report(f"{name}, against SyncVectorEnv", measured, f"SyncVectorEnv, {FEW}", "steps/s")


if __name__ == "__main__":
    main()
