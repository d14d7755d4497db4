"""Sensors whose readings are not the coordinates themselves: gain, offset and delay of each, as parameters of a fit.

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

GAIN, OFFSET, DELAY = "obs_gain", "obs_offset", "obs_delay"
_LONGEST = 1000  # steps of delay


def sensor_params(coordinates: Sequence[Coordinate]) -> list[Param]:
    """``obs_gain:NAME``, ``obs_offset:NAME`` and ``obs_delay:NAME`` of each coordinate."""
    found = []
    for one in coordinates:
        kinds = {
            GAIN: (1.0, 1e-6, math.inf, "", "float", f"what is read per {one.name}"),
            OFFSET: (0.0, -math.inf, math.inf, one.unit, "float", f"what is read where {one.name} is 0"),
            DELAY: (0, 0, _LONGEST, "steps", "int", f"age of what is read of {one.name}"),
        }
        found += [
            Param(name=f"{kind}:{one.name}", nominal=nominal, low=low, high=high, unit=unit, kind=whole, doc=doc)
            for kind, (nominal, low, high, unit, whole, doc) in kinds.items()
        ]
    return found


def is_of_sensor(name: str) -> bool:
    """Whether a parameter is one of a sensor, not of the environment."""
    return name.startswith((f"{GAIN}:", f"{OFFSET}:", f"{DELAY}:"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensors:
    """What is read of the numbers of a state: ``gain * number + offset``."""

    gain: Array  # (size,), or (n, size) for n states
    offset: Array  # the same

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
    shape = *np.broadcast_shapes(*(np.shape(params[name]) for name in params if name not in own)), replay.size
    gain, offset = np.ones(shape), np.zeros(shape)
    for coordinate, place in zip(replay.coordinates, replay.places.tolist(), strict=True):
        gain[..., place] = params.get(f"{GAIN}:{coordinate.name}", 1.0)
        offset[..., place] = params.get(f"{OFFSET}:{coordinate.name}", 0.0)
    return own, Sensors(gain=gain, offset=offset)
