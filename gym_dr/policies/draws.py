"""What the episodes of a policy are played with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gym_dr.arrays import Array
from gym_dr.randomization.spec import Randomization


@dataclass(frozen=True, kw_only=True)
class Draws:
    """What episodes draw, and the values that they set instead."""

    randomization: Randomization = field(default_factory=Randomization)  # empty for nominal values
    values: Mapping[str, Array] = field(default_factory=dict)  # name -> value of each episode, shape (episodes,)
    episodes: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are set or drawn."""
        return tuple(dict.fromkeys((*self.values, *self.randomization)))
