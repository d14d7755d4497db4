"""Draws and values to play a policy's episodes with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gym_dr.arrays import Array
from gym_dr.randomization.spec import Randomization


@dataclass(frozen=True, kw_only=True)
class Draws:
    """The distribution of draws, and values that replace them."""

    randomization: Randomization = field(default_factory=Randomization)  # empty for nominal values
    values: Mapping[str, Array] = field(default_factory=dict)  # name -> value of each episode, shape (episodes,)
    episodes: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are set or drawn."""
        return tuple(dict.fromkeys((*self.values, *self.randomization)))
