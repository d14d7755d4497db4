"""The least that ``gymdr bench`` can measure."""

from __future__ import annotations

from gym_dr.bench.settings import BenchSettings

TINY = BenchSettings(
    sizes=(1, 2),
    learning_sizes=(2,),
    seeds=(1,),
    rounds=1,
    seconds=0.001,
    learning_limit=0.001,
    solving_seeds=1,
    solving_limit=0.0,
    profile_updates=1,
    max_processes=1,
)
