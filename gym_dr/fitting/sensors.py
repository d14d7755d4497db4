"""Sensors whose readings are not the coordinates themselves: a gain and an offset of each, as parameters of a fit.

All states of a fit are as sensors read them, and so are the measured ones. Only the simulator knows the true ones. So
noise has the unit of the reading, and a gain changes no density that a likelihood would have to account for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.replay import Coordinate, LogReplay
from gym_dr.randomization.space import Param

GAIN, OFFSET = "obs_gain", "obs_offset"


def sensor_params(coordinates: Sequence[Coordinate]) -> list[Param]:
    """The parameters of all sensors: ``obs_gain:NAME`` and ``obs_offset:NAME`` of each coordinate."""
    gains = [
        Param(name=f"{GAIN}:{one.name}", nominal=1, low=1e-6, high=math.inf, doc=f"what is read per {one.name}")
        for one in coordinates
    ]
    return gains + [
        Param(
            name=f"{OFFSET}:{one.name}",
            nominal=0,
            low=-math.inf,
            high=math.inf,
            unit=one.unit,
            doc=f"what is read where {one.name} is 0",
        )
        for one in coordinates
    ]


def is_of_sensor(name: str) -> bool:
    """Whether a parameter is one of a sensor, not of the environment."""
    return name.startswith((f"{GAIN}:", f"{OFFSET}:"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensors:
    """What is read of the numbers of a state: ``gain * number + offset``."""

    gain: Array  # (size,)
    offset: Array  # (size,)

    def read(self, states: Array) -> Array:
        """Readings of true states ``(..., size)``."""
        return self.gain * states + self.offset

    def true(self, readings: Array) -> Array:
        """The states behind readings ``(..., size)``."""
        return np.asarray((readings - self.offset) / self.gain)


def split(params: Mapping[str, Any], replay: LogReplay) -> tuple[dict[str, Any], Sensors | None]:
    """The environment's own parameters, and the sensors; None if all read the coordinates themselves."""
    own = {name: value for name, value in params.items() if not is_of_sensor(name)}
    if len(own) == len(params):
        return own, None
    gain, offset = np.ones(replay.size), np.zeros(replay.size)
    for coordinate, place in zip(replay.coordinates, replay.places.tolist(), strict=True):
        gain[place] = params.get(f"{GAIN}:{coordinate.name}", 1.0)
        offset[place] = params.get(f"{OFFSET}:{coordinate.name}", 0.0)
    return own, Sensors(gain=gain, offset=offset)
