"""Sensors: quantities and numbers of an observation, by name and by index, and the disturbances that each can have.

``obs_hide:theta_dot``, ``obs_drop:3`` and ``obs_offset:x`` are parameters like ``obs_delay``, one for each sensor. An
observation may have hundreds of numbers, so spaces know these parameters without listing them.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym

from gym_dr.envs.family import ENVIRONMENTS, interface_of
from gym_dr.envs.interface import Quantity
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.space import SENSOR_DISTURBANCES, Param
from gym_dr.randomization.spec import Randomization

HIDE, DROP, OFFSET = SENSOR_DISTURBANCES
_HIDDEN = "whether this sensor reads 0 for a whole episode; SENSOR is one of those below"
_LOST = "probability that this sensor's reading is lost, at each step; SENSOR likewise"
_WRONG = "error of this sensor for a whole episode, in its own unit; SENSOR likewise"
SENSOR_PARAMS = {  # as listings show them
    HIDE: Param(name=f"{HIDE}:SENSOR", nominal=0, low=0, high=1, kind="bool", doc=_HIDDEN),
    DROP: Param(name=f"{DROP}:SENSOR", nominal=0, low=0, high=1, doc=_LOST),
    OFFSET: Param(name=f"{OFFSET}:SENSOR", nominal=0, low=-math.inf, high=math.inf, doc=_WRONG),
}
_WILD = "*?["


def sensor_param(name: object) -> Param | None:
    """The disturbance of a sensor that a name such as ``obs_hide:theta`` stands for; None for all other names.

    It does not look up whether an environment has the sensor.
    """
    kind = str(name).partition(":")[0]
    return replace(SENSOR_PARAMS[kind], name=str(name)) if kind in SENSOR_PARAMS and name != DROP else None


def sensor_of(name: object) -> str:
    """The sensor in the name of a disturbance: "theta" of ``obs_hide:theta``."""
    return str(name).partition(":")[2]


@dataclass(frozen=True)
class SensorMap:
    """The sensors of an environment, each a name or an index and consecutive numbers of the flattened observation."""

    env: str  # for messages
    size: int  # numbers of an observation
    named: Mapping[str, tuple[int, int]]  # name -> index of its first number, and one after the last

    @property
    def text(self) -> str:
        """All sensors in words: "x, x_dot, or an index from 0 to 3"."""
        return ", ".join([*self.named, f"{'or ' if self.named else ''}an index from 0 to {self.size - 1}"])

    def __contains__(self, sensor: object) -> bool:
        return sensor in self.named or (str(sensor) in map(str, range(self.size)))

    def span(self, sensor: str) -> tuple[int, int]:
        """Index of a sensor's first number, and one after the last.

        Raises:
            UnknownNameError: There is no such sensor.
        """
        if sensor not in self:
            raise self._unknown(sensor)
        return self.named[sensor] if sensor in self.named else (int(sensor), int(sensor) + 1)

    def expand(self, randomization: Randomization) -> Randomization:
        """Replaces patterns such as ``obs_hide:*_dot`` by the sensors whose names match, or indices without names.

        Each draws on its own. An explicit sensor takes precedence over a pattern.

        Raises:
            UnknownNameError: There is no such sensor, or nothing matches a pattern.
            RandomizationError: Two rules are for the same sensor.
        """
        patterns = [name for name in randomization if sensor_param(name) and any(wild in name for wild in _WILD)]
        found = {name: rule for name, rule in randomization.items() if name not in patterns}
        explicit: dict[tuple[str, int, int], str] = {}
        for name in filter(sensor_param, found):
            place = name.partition(":")[0], *self.span(sensor_of(name))
            if place in explicit:
                raise RandomizationError(f"Expected each sensor once, got {explicit[place]} and {name}, the same one.")
            explicit[place] = name
        names = [*self.named] or [str(k) for k in range(self.size)]
        for pattern in patterns:
            kind, _, wanted = pattern.partition(":")
            matching = [name for name in names if fnmatch.fnmatchcase(name, wanted)]
            if not matching:
                raise self._unknown(wanted)
            for name in (f"{kind}:{sensor}" for sensor in matching if (kind, *self.span(sensor)) not in explicit):
                if name in found:
                    raise RandomizationError(f"Parameter {name!r}: two patterns match it. Name it explicitly.")
                found[name] = randomization[pattern]
        return Randomization(found, correlation=randomization.correlation)

    def _unknown(self, sensor: str) -> UnknownNameError:
        return UnknownNameError(f"Expected a sensor of {self.env}, {self.text}, got {sensor!r}.")


def sensors_of(env_id: str, space: gym.Space[Any] | None = None) -> SensorMap | None:
    """The sensors of an environment; those without a name in its family's ``Interface`` have only an index.

    Args:
        env_id: Its id; an unknown one, such as "", has no names.
        space: Its observation space, in which names apply only if it has the size of the family's; None for the
            family's.

    Returns:
        The sensors; None without a space if the family does not describe its observations.
    """
    quantities = _observed(env_id)
    size = sum(quantity.size for quantity in quantities)
    if space is not None:
        expected = math.prod(space.shape or ())
        quantities, size = quantities if size == expected else (), expected
    named, first = {}, 0
    for quantity in quantities:
        if quantity.name:
            named[quantity.name] = (first, first + quantity.size)
        first += quantity.size
    return SensorMap(env_id or "this environment", size, named) if size else None


def _observed(env_id: str) -> Sequence[Quantity]:
    """The quantities of an observation of a registered id or its reference."""
    name = env_id.rpartition(":")[2]
    ours = next((env.id for env in ENVIRONMENTS.values() if name and name in (env.id, env.reference)), "")
    found = interface_of(ours)
    return () if found is None else found.observation
