"""Settings of ``gymdr bench``. Nothing heavy is imported: the command line checks its options with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gym_dr.envs.families import BUILTIN, DEFAULT_ENV
from gym_dr.errors import ConfigError

LARGEST = 10_000  # sub-environments; more single ones do not fit into most memories, and show nothing new


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """What to measure, and for how long."""

    env: str = DEFAULT_ENV  # id
    sizes: tuple[int, ...]  # numbers of sub-environments to step
    learning_sizes: tuple[int, ...]  # numbers of sub-environments to learn with
    seeds: tuple[int, ...]  # of training
    threshold: float = BUILTIN[0].bench_threshold or 0.0  # mean training return to pass
    rounds: int  # every contender steps once in each; an additional first round does not count
    seconds: float  # of stepping of a contender in a round
    learning_limit: float  # seconds to pass the threshold
    solvers: tuple[str, ...] = ("a2c", "ppo")  # algorithms to time until they solve the nominal environment
    solving_seeds: int  # number of seeds 1, 2, ... of each
    solving_limit: float  # seconds to solve it
    profile_updates: int  # updates to take the medians of
    max_processes: int  # of a contender that needs one for each sub-environment; memory may allow fewer

    def __post_init__(self) -> None:
        for name, low, high in (("sizes", 1, LARGEST), ("learning_sizes", 1, LARGEST), ("seeds", 0, 2**63 - 1)):
            values = getattr(self, name)
            if not values or min(values) < low or max(values) > high or len(set(values)) != len(values):
                got = ",".join(map(str, values))
                raise ConfigError(f"{name}: expected distinct whole numbers from {low} to {high}, got {got}.")
        if not math.isfinite(self.threshold):
            raise ConfigError(f"threshold: expected a finite number, got {self.threshold}.")


FULL = BenchSettings(
    sizes=(1, 2, 4, 10, 32, 64, 256, 1024),
    learning_sizes=(1, 2, 4, 10, 32, 64, 256, 1024),
    seeds=(1, 2, 3, 4, 5),
    rounds=5,
    seconds=0.5,
    learning_limit=30.0,
    solving_seeds=10,
    solving_limit=300.0,
    profile_updates=50,
    max_processes=1024,
)

QUICK = BenchSettings(
    sizes=(1, 4, 32, 256),
    learning_sizes=(4, 32),
    seeds=(1,),
    rounds=2,
    seconds=0.1,
    learning_limit=5.0,
    solving_seeds=0,
    solving_limit=0.0,
    profile_updates=10,
    max_processes=32,
)
