"""How much ``gymdr bench`` measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to measure."""

    sizes: Sequence[int]  # numbers of sub-environments, of which the first is 1
    seeds: Sequence[int]  # of training; all sizes take turns within a seed
    limit: float  # s of a training
    rounds: int  # of stepping, after one to warm up
    seconds: float  # of stepping in a round
