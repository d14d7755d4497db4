"""Disturbances as parameters beside those of an environment, for whoever randomizes both in one table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.disturbances import DISTURBANCES, PUSHES, check_pushes, is_float_box

_SENSED = ("obs_noise", "obs_bias", "obs_delay")


class DisturbedSpace(ParamSpace):
    """An environment's parameters, and after them the disturbances that it can take.

    Presets are the environment's; so is all that it knows of its own names and values.
    """

    def __init__(self, own: ParamSpace, disturbances: Iterable[Param]) -> None:
        """Joins both.

        Args:
            own: The environment's.
            disturbances: Of ``DISTURBANCES``.

        Raises:
            RandomizationError: The environment has a parameter with the name of a disturbance.
        """
        self.own = own
        self.disturbances = tuple(param.name for param in disturbances)
        super().__init__(own.name, [*own.values(), *(DISTURBANCES[name] for name in self.disturbances)])
        self.nominal = {**own.nominal, **{name: DISTURBANCES[name].nominal for name in self.disturbances}}

    def __getitem__(self, name: str) -> Param:
        meant = name in self or difflib.get_close_matches(str(name), self.disturbances, n=1)
        return super().__getitem__(name) if meant else self.own[name]

    def expand(self, randomization: Randomization) -> Randomization:
        """Has the environment's names expanded.

        Raises:
            UnknownNameError: A name or pattern stands for nothing.
            RandomizationError: A rule is impossible, or a correlation goes across both kinds of parameters.
        """
        own, disturbances = split(randomization)
        check_pushes(disturbances)
        return Randomization({**self.own.expand(own), **disturbances}, correlation=randomization.correlation)

    def check(self, values: Any) -> dict[str, float]:
        return {**self.own.check(_without(values)), **super().check(_without(values, own=True))}

    def check_vector(self, values: Any, num_envs: int) -> dict[str, Array]:
        check_pushes(values)
        own, disturbances = _without(values), _without(values, own=True)
        return {**self.own.check_vector(own, num_envs), **super().check_vector(disturbances, num_envs)}


def possible_disturbances(env: gym.Env[Any, Any]) -> list[Param]:
    """Those that ``Disturb`` around an environment would take."""
    observations, actions = env.observation_space, env.action_space
    flat = (gym.spaces.Box, gym.spaces.Discrete)
    if not (isinstance(observations, flat) and isinstance(actions, flat)):
        return []
    left_out: set[str] = set() if is_float_box(observations) else set(_SENSED)
    left_out |= set() if is_float_box(actions) else {"action_noise"}
    left_out |= set() if getattr(env.unwrapped, "push_size", 0) > 0 else set(PUSHES)
    return [param for name, param in DISTURBANCES.items() if name not in left_out]


def undisturbed(names: Iterable[str]) -> dict[str, float]:
    """Those among the names that are disturbances, with values at which nothing is disturbed."""
    wanted = set(names)
    return {name: param.nominal for name, param in DISTURBANCES.items() if name in wanted}


def split(randomization: Randomization) -> tuple[Randomization, Randomization]:
    """The rules of the environment's parameters, and those of disturbances.

    Raises:
        RandomizationError: A correlation goes across both.
    """
    parts = []
    for wanted in (False, True):
        rules = {name: rule for name, rule in randomization.items() if (name in DISTURBANCES) == wanted}
        correlation = randomization.correlation
        inside = correlation is not None and set(correlation.names) <= rules.keys()
        if correlation is not None and not inside and set(correlation.names) & rules.keys():
            raise RandomizationError(
                "Correlation: expected parameters of the environment alone or disturbances alone, got "
                f"{', '.join(correlation.names)}."
            )
        parts.append(Randomization(rules, correlation=correlation if inside else None))
    return parts[0], parts[1]


def _without(values: Any, *, own: bool = False) -> Any:
    """A mapping without disturbances, or without the environment's own names."""
    if not isinstance(values, Mapping):
        return values  # the space that is given it says what is wrong
    return {name: value for name, value in values.items() if (name in DISTURBANCES) == own}
