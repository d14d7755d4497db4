"""The equations of one environment, as plain functions of numbers; ``kernels.py`` compiles them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Bounds = tuple[tuple[float, float], ...]  # lowest and highest value of each number that an episode begins with


@dataclass(frozen=True, kw_only=True, eq=False)
class Equations:
    """Physics of an environment.

    They are plain functions of numbers and named tuples of numbers. ``kernels.py`` compiles them together with
    those functions of the same file that they call, so they keep to what both Python and numba understand.
    """

    name: str  # for messages
    params: type  # a named tuple: what an episode is made with
    physics: type  # a named tuple: what the steps of an episode read
    state: type  # a named tuple: positions and velocities, then what else is remembered
    start: Bounds  # of the uniform numbers that an episode begins with, as drawn
    pushed: tuple[str, ...]  # fields of the state: the velocities that a push changes
    derive: Callable[[Any], Any]  # params -> physics, once an episode
    begin: Callable[..., Any]  # those uniform numbers -> the first state
    step: Callable[[Any, Any, float], tuple[Any, float, bool]]  # physics, state, action -> state, reward, terminated
    observe: Callable[[Any], tuple[float, ...]]  # state -> observation, before it is rounded to the space's dtype


def single(value: float) -> float:
    """Rounded to float32."""
    return np.float64(np.float32(value))


def square(value: float) -> float:
    """As Python and numpy square: by the C library's ``pow``, whose result is not always the nearest number."""
    return value**2
