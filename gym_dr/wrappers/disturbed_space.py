"""Joins disturbances and an environment's parameters in one space, for randomizing both in one table."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym

from gym_dr.arrays import Array
from gym_dr.envs.stack import floats, pushed_layer
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.disturbances import DISTURBANCES, FLOATING, PUSHES, SCALED, DisturbanceSpace, is_float_box
from gym_dr.wrappers.sensors import SensorMap, sensor_of, sensor_param


class DisturbedSpace(DisturbanceSpace):
    """An environment's parameters, followed by the disturbances that it supports.

    Presets, and everything about the environment's own names and values, come from the environment's space. It knows
    the disturbances of each sensor (``obs_hide:theta``) without listing them.
    """

    def __init__(
        self, own: ParamSpace, disturbances: Iterable[Param], find_sensors: Callable[[], SensorMap | None] | None = None
    ) -> None:
        """Joins both.

        Args:
            own: The environment's space.
            disturbances: Entries of ``DISTURBANCES``.
            find_sensors: Finds the environment's sensors, for disturbances that are not listed; called when needed,
                since it may make an environment. None if no sensor can fail.

        Raises:
            RandomizationError: A parameter of the environment has the name of a disturbance.
        """
        self.own, self.constants = own, own.constants
        added = {param.name: param for param in disturbances}
        self.disturbances = tuple(added)
        super().__init__(own.name, [*own.values(), *added.values()])
        self.nominal = {**own.nominal, **{name: param.nominal for name, param in added.items()}}
        self._find_sensors = find_sensors

    @functools.cached_property
    def sensors(self) -> SensorMap | None:
        """The sensors that can fail; None if there are none."""
        return None if self._find_sensors is None else self._find_sensors()

    def sensor_param(self, name: object) -> Param | None:
        """The disturbance of a sensor that the environment has; None for other names."""
        param = sensor_param(name)
        return param if param is not None and self.sensors is not None and sensor_of(name) in self.sensors else None

    def __getitem__(self, name: str) -> Param:
        if name in DISTURBANCES.nominal and name not in self:
            raise UnknownNameError(
                f"{name!r}: {self.name} does not take this disturbance. It takes {', '.join(self.disturbances)}; "
                f"robots with a floating base also take {', '.join(FLOATING)}."
            )
        if name in self or difflib.get_close_matches(str(name), self.disturbances, n=1):
            return super().__getitem__(name)
        if sensor_param(name) is not None and self.sensors is not None:
            self.sensors.span(sensor_of(name))  # raises: there is no such sensor
        return self.own[name]

    def expand(self, randomization: Randomization) -> Randomization:
        """Expands the names and patterns of the environment and of its sensors.

        Raises:
            UnknownNameError: A name or pattern matches nothing.
            RandomizationError: A rule is impossible, or a correlation mixes both kinds of parameters.
        """
        own, disturbances = split(randomization)
        if self.sensors is not None and any(map(sensor_param, disturbances)):
            disturbances = self.sensors.expand(disturbances)
        return Randomization({**self.own.expand(own), **disturbances}, correlation=randomization.correlation)

    def check_vector(self, values: Any, num_envs: int) -> dict[str, Array]:
        own, disturbances = _without(values), _without(values, own=True)
        return {**self.own.check_vector(own, num_envs), **super().check_vector(disturbances, num_envs)}


def possible_disturbances(env: gym.Env[Any, Any]) -> list[Param]:
    """The disturbances that ``Disturb`` accepts for an environment."""
    actions, layer = env.action_space, pushed_layer(env)
    if not isinstance(actions, gym.spaces.Box | gym.spaces.Discrete):
        return []
    noisy, discrete = is_float_box(env.observation_space), not is_float_box(actions)
    return supported(noisy=noisy, discrete=discrete, pushed=getattr(layer, "push_size", 0) > 0, floating=floats(layer))


def supported(*, noisy: bool, discrete: bool, pushed: bool, floating: bool) -> list[Param]:
    """The disturbances of an environment.

    Args:
        noisy: Whether observations are floats, to which noise can be added.
        discrete: Whether actions are discrete, so that they take no noise and no gain.
        pushed: Whether it can be pushed.
        floating: Whether it has a floating base.
    """
    left_out = {name for name in DISTURBANCES if name.startswith("obs_") and not noisy}
    left_out |= {*(SCALED if discrete else ()), *(() if pushed else PUSHES), *(() if floating else FLOATING)}
    params = [param for name, param in DISTURBANCES.items() if name not in left_out]
    return [replace(param, needs=tuple(name for name in param.needs if name not in left_out)) for param in params]


def undisturbed(names: Iterable[str]) -> dict[str, float]:
    """The disturbances among the names, with values that disturb nothing."""
    return {name: DISTURBANCES[name].nominal for name in names if name in DISTURBANCES}


def split(randomization: Randomization) -> tuple[Randomization, Randomization]:
    """The rules of the environment's parameters, and those of disturbances.

    Raises:
        RandomizationError: A correlation mixes both.
    """
    parts = []
    for wanted in (False, True):
        rules = {name: rule for name, rule in randomization.items() if (name in DISTURBANCES) == wanted}
        correlation = randomization.correlation
        inside = correlation is not None and set(correlation.names) <= rules.keys()
        if correlation is not None and not inside and set(correlation.names) & rules.keys():
            raise RandomizationError(
                "Correlation: expected only parameters of the environment or only disturbances, got "
                f"{', '.join(correlation.names)}."
            )
        parts.append(Randomization(rules, correlation=correlation if inside else None))
    return parts[0], parts[1]


def _without(values: Any, *, own: bool = False) -> Any:
    """A mapping without disturbances, or without the environment's own names."""
    if not isinstance(values, Mapping):
        return values  # the space that gets it reports the error
    return {name: value for name, value in values.items() if (name in DISTURBANCES) == own}
