"""The equations of one environment, as plain functions of numbers; ``kernels.py`` compiles them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

Bounds = tuple[tuple[float, float], ...]  # lowest and highest value of each initial number of an episode


@dataclass(frozen=True, kw_only=True, eq=False)
class Equations:
    """Physics of an environment.

    They are plain functions of numbers and named tuples of numbers. ``kernels.py`` compiles them together with the
    functions of the same file that they call, so they must be valid in both Python and numba.
    """

    name: str  # for messages
    observation_space: Box
    action_space: Box | Discrete  # one number, or choices from 0
    params: type  # a named tuple: parameters of an episode
    physics: type  # a named tuple: constants of an episode's steps
    state: type  # a named tuple: positions and velocities, then other state
    start: Bounds  # of the uniform numbers that begin an episode, in the order in which they are drawn
    pushed: tuple[str, ...]  # fields of the state: the velocities that a push changes
    derive: Callable[[Any], Any]  # params -> physics, once per episode
    begin: Callable[..., Any]  # those uniform numbers -> the first state
    step: Callable[[Any, Any, float], tuple[Any, float, bool]]  # physics, state, action -> state, reward, terminated
    observe: Callable[[Any], tuple[float, ...]]  # state -> observation, before it is rounded to the space's dtype


def single(value: float) -> float:
    """Rounded to float32."""
    return np.float64(np.float32(value))


def square(value: float) -> float:
    """Squares as Python and numpy do: with the C library's ``pow``, which does not always round to nearest."""
    return value**2
