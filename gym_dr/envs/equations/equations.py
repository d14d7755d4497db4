"""The equations of one environment, as plain functions of numbers; ``kernels.py`` compiles them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from gym_dr.randomization.distributions import Distribution, Normal

# for each random number that begins an episode: low and high if uniform, mean and standard deviation if normal
Bounds = tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Equations:
    """Physics of an environment.

    They are plain functions of numbers and named tuples of numbers. ``kernels.py`` compiles them together with the
    functions that they call by name; they must be valid in both Python and numba.
    """

    name: str  # for messages
    observation_space: Box  # one row of numbers
    action_space: Box | Discrete  # continuous, or discrete
    params: type  # a named tuple: parameters of an episode
    physics: type  # a named tuple: constants of an episode's steps
    state: type  # a named tuple: positions and velocities, then other state
    # name -> Uniform or Normal: random numbers that begin an episode, in the order in which they are drawn, and those
    # that every step takes
    start: Mapping[str, Distribution]
    process_noise: Mapping[str, Distribution] = field(default_factory=dict)
    pushed: tuple[str, ...] = ()  # fields of the state: the velocities that a push changes
    clip_actions: bool = True  # whether actions are clipped to the bounds of the space
    derive: Callable[[Any], Any]  # params -> physics, once per episode
    begin: Callable[[Any, Any], Any]  # physics, those random numbers -> the first state
    # physics, state, action and, if there is any, process noise -> next state, reward, terminated; the action is a
    # number, or a tuple of the numbers of a Box that has several
    step: Callable[..., Any]
    rewarded: bool = True  # False if ``step`` returns the next state alone
    observe: Callable[[Any, Any], tuple[float, ...]]  # physics, state -> observation, not yet in the space's dtype


def spread_of(distribution: Distribution) -> tuple[float, float]:
    """The two numbers that define a uniform or a normal distribution."""
    if isinstance(distribution, Normal):
        return distribution.mu, distribution.sigma
    return distribution.support


def fields_of(named_tuple: Any) -> tuple[str, ...]:
    """The names of a named tuple's fields."""
    return tuple(named_tuple._fields)


def single(value: float) -> float:
    """Rounded to float32."""
    return np.float64(np.float32(value))
