"""Speed of the native LunarLander against Gymnasium's SyncVectorEnv (and EnvPool, if it is installed).

    python benchmarks/native_lander.py                # everything, a few minutes
    python benchmarks/native_lander.py --only small

Contenders run in turn, on one core unless stated, after compilation; steps that only reset do not count. The ratio is
that of the medians over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import gym_dr
from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderVectorEnv

Policy = Callable[[Any], Any]
ROUNDS = 5


class Contender:
    """A vector environment with a policy."""

    def __init__(self, name: str, envs: Any, policy: str) -> None:
        self.name, self.envs, self.policy = name, envs, policy
        self.rng = np.random.default_rng(0)
        self.observations = envs.reset(seed=0)[0]
        self.done = np.zeros(envs.num_envs, bool)
        self.rates: list[float] = []

    def actions(self) -> Any:
        if self.policy == "random":
            return self.rng.integers(0, 4, self.envs.num_envs)
        return heuristic(self.observations)

    def run(self, seconds: float, record: bool = True) -> None:
        """Steps for about ``seconds``; records steps per second."""
        spent, counted = 0.0, 0
        while spent < seconds:
            actions = self.actions()
            begin = time.perf_counter()
            self.observations, _, terminated, truncated, _ = self.envs.step(actions)
            spent += time.perf_counter() - begin
            counted += int((~self.done).sum())
            self.done = terminated | truncated
        if record:
            self.rates.append(counted / spent)


def heuristic(o: Any) -> Any:
    """Gymnasium's heuristic policy for a batch of observations."""
    target = np.clip(o[:, 0] * 0.5 + o[:, 2], -0.4, 0.4)
    hover = 0.55 * np.abs(o[:, 0])
    turn = (target - o[:, 4]) * 0.5 - o[:, 5]
    lift = (hover - o[:, 1]) * 0.5 - o[:, 3] * 0.5
    legs = (o[:, 6] > 0) | (o[:, 7] > 0)
    turn, lift = np.where(legs, 0.0, turn), np.where(legs, -o[:, 3] * 0.5, lift)
    side = np.where(turn < -0.05, 3, np.where(turn > 0.05, 1, 0))
    return np.where((lift > np.abs(turn)) & (lift > 0.05), 2, side)


def stock(num_envs: int) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make("LunarLander-v3") for _ in range(num_envs)])


def native(num_envs: int, *, threads: int = 1, randomization: Any = "none") -> LunarLanderVectorEnv:
    return LunarLanderVectorEnv(num_envs, num_threads=threads, randomization=randomization)


def compare(title: str, ours: Contender, theirs: Contender, seconds: float) -> float:
    """Runs both in turn and prints ``ours / theirs``."""
    for contender in (ours, theirs):
        contender.run(seconds, record=False)
    for _ in range(ROUNDS):
        ours.run(seconds)
        theirs.run(seconds)
    ratio = statistics.median(ours.rates) / statistics.median(theirs.rates)
    for contender in (ours, theirs):
        print(f"  {contender.name:40s} {statistics.median(contender.rates):12,.0f} steps/s")
    print(f"{title}: {ratio:.2f}x\n", flush=True)
    return ratio


def throughput(seconds: float) -> None:
    for policy in ("random", "heuristic"):
        title = f"N = 1024, {policy}, against SyncVectorEnv"
        pair = Contender("native", native(1024), policy), Contender("SyncVectorEnv, stock", stock(64), policy)
        compare(title, *pair, seconds)


def small(seconds: float) -> None:
    pair = Contender("native", native(10), "random"), Contender("SyncVectorEnv, stock", stock(10), "random")
    compare("N = 10, random, against SyncVectorEnv", *pair, seconds)


def threads(seconds: float) -> None:
    for num_envs in (256, 1024):
        for policy in ("random", "heuristic"):
            two = Contender("2 threads", native(num_envs, threads=2), policy)
            one = Contender("1 thread", native(num_envs, threads=1), policy)
            compare(f"N = {num_envs}, {policy}, 2 threads against 1", two, one, seconds)


def randomized(seconds: float) -> None:
    spread = {"gravity": (-10.0001, -9.9999), "main_engine_power": (12.9999, 13.0001)}  # the same flights, nearly
    drawn = Contender("drawn anew each episode", native(1024, randomization=spread), "random")
    nominal = Contender("all nominal", native(1024), "random")
    compare("own parameters against nominal", drawn, nominal, seconds)


def wrapped(seconds: float) -> None:
    envs: Any = gym_dr.ResampleParams(native(1024, randomization="default"), rollout_steps=128, every=4)
    full = Contender("info, statistics and ResampleParams", RecordEpisodeStatistics(envs), "random")
    compare("wrapped against bare", full, Contender("bare", native(1024, randomization="default"), "random"), seconds)


class EnvPool:
    """EnvPool's LunarLander behind the interface that ``Contender`` uses."""

    def __init__(self, num_envs: int) -> None:
        import envpool

        self.num_envs = num_envs
        self.pool = envpool.make("LunarLander-v3", env_type="gymnasium", num_envs=num_envs, num_threads=1)

    def reset(self, *, seed: int) -> Any:
        return self.pool.reset()

    def step(self, actions: Any) -> Any:
        return self.pool.step(actions.astype(np.int32))


def envpool(seconds: float) -> None:
    try:
        pool = EnvPool(1024)
    except ImportError:
        print("EnvPool is not installed: skipped.\n")
        return
    pair = Contender("native, 1 thread", native(1024), "random"), Contender("EnvPool, 1 thread", pool, "random")
    compare("N = 1024, random, against EnvPool", *pair, seconds)


ALL = {f.__name__: f for f in (throughput, small, threads, randomized, wrapped, envpool)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(ALL), action="append", help="run only these")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds per contender in each of five rounds")
    arguments = parser.parse_args()
    for name in arguments.only or ALL:
        ALL[name](arguments.seconds)


if __name__ == "__main__":
    main()
