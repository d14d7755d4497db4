"""Speed of the native BipedalWalker against EnvPool and Gymnasium's SyncVectorEnv.

Sides alternate, on one thread; each counts steps of sub-environments per second, including resets. The walking policy
is Gymnasium's heuristic, whose time does not count.
Run it with: python -m benchmarks.bipedal_walker [rounds]     (EnvPool is optional: pip install "gym-dr[bench]")
"""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import alternate, report
from gym_dr.envs.box2d.bipedal_walker.backend import BipedalWalkerBackend

MANY, FEW, POOL = 256, 10, 64
TARGETS = (
    "targets: 256 are at least 20 times SyncVectorEnv's and 6 times EnvPool's speed with random actions, 12 times "
    "SyncVectorEnv's when they walk; 10 are 6 times as fast as SyncVectorEnv"
)


class Side:
    """A vector environment and its policy; only the environment is timed."""

    def __init__(self, envs: Any, num_envs: int, steps: int, *, walking: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.random = rng.uniform(-1, 1, (16, num_envs, 4)).astype(np.float32)
        self.walkers = [BipedalWalkerHeuristics() for _ in range(num_envs)] if walking else []
        self.envs, self.num_envs, self.steps = envs, num_envs, steps
        self.observations = np.array(envs.reset()[0])
        self.done = np.zeros(num_envs, bool)

    def actions(self, t: int) -> Any:
        for i in np.flatnonzero(self.done) if self.walkers else ():
            self.walkers[i] = BipedalWalkerHeuristics()
        if not self.walkers:
            return self.random[t % 16]
        pairs = zip(self.walkers, self.observations, strict=True)
        return np.array([walker.step_heuristic(observation) for walker, observation in pairs], np.float32)

    def speed(self) -> float:
        """Steps of sub-environments per second; episodes continue between calls."""
        spent = 0.0
        for t in range(self.steps):
            actions = self.actions(t)
            begin = time.perf_counter()
            self.observations, _, terminated, truncated, _ = self.envs.step(actions)
            spent += time.perf_counter() - begin
            self.done = terminated | truncated
        return self.num_envs * self.steps / spent


def native(name: str, num_envs: int, *, walking: bool = False) -> Side:
    envs = gym.make_vec(f"gym_dr/{name.replace('-', 'DR-')}", num_envs, randomization="none", num_threads=1)
    return Side(envs, num_envs, 40_000 // num_envs, walking=walking)


def stock(name: str, *, walking: bool = False) -> Side:
    return Side(gym.make_vec(name, FEW, vectorization_mode="sync"), FEW, 300, walking=walking)


def pool(name: str) -> Side:
    import envpool

    return Side(envpool.make(name, env_type="gymnasium", num_envs=POOL, num_threads=1, seed=0), POOL, 150)


def main() -> None:
    """Prints a table for each variant and policy, and the memory of a sub-environment."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with_pool = importlib.util.find_spec("envpool") is not None
    print(TARGETS if with_pool else f"{TARGETS}\nEnvPool is not installed; its figures are left out.")
    for name, hardcore in (("BipedalWalker-v3", False), ("BipedalWalkerHardcore-v3", True)):
        size = BipedalWalkerBackend(hardcore=hardcore).bytes_each
        print(f"\n{name}: a native sub-environment takes {size / 1024:.1f} KiB")
        if with_pool:
            sides = {f"EnvPool, {POOL}": pool(name), f"native, {MANY}": native(name, MANY)}
            measured = alternate({side: each.speed for side, each in sides.items()}, rounds)
            report(f"{name}, random, against EnvPool", measured, f"EnvPool, {POOL}", "steps/s")
        for walking in (False, True):
            sides = {
                f"SyncVectorEnv, {FEW}": stock(name, walking=walking),
                f"native, {MANY}": native(name, MANY, walking=walking),
                f"native, {FEW}": native(name, FEW, walking=walking),
            }
            measured = alternate({side: each.speed for side, each in sides.items()}, rounds)
            policy = "walking" if walking else "random"
            report(f"{name}, {policy}, against SyncVectorEnv", measured, f"SyncVectorEnv, {FEW}", "steps/s")


if __name__ == "__main__":
    main()
