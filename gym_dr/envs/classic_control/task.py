"""What one classic control environment is made of: its file defines a ``Task``, and everything else is shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any

import numpy as np

from gym_dr.errors import RandomizationError
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

Bounds = tuple[tuple[float, float], ...]  # lowest and highest value of each number that an episode begins with


def low_and_high(options: Mapping[str, Any], bounds: Bounds) -> Bounds:
    """The bounds of an episode's first numbers, of which ``reset(options={"low": ..., "high": ...})`` may set either.

    Raises:
        RandomizationError: One is no finite number, or they are in the wrong order.
    """
    given = {name: number_option(name, options[name]) for name in ("low", "high") if name in options}
    within = tuple((given.get("low", low), given.get("high", high)) for low, high in bounds)
    if any(low > high for low, high in within):
        raise RandomizationError(f"Expected options with low <= high, got {within[0][0]} and {within[0][1]}.")
    return within


def number_option(name: str, value: Any) -> float:
    """A finite number in the options of ``reset``.

    Raises:
        RandomizationError: It is none.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise RandomizationError(f"Expected options[{name!r}] to be a finite number, got {value!r}.")
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """Parameters and physics of an environment.

    The physics are plain functions of numbers and named tuples of numbers. ``kernels.py`` compiles them together with
    those functions of the same file that they call, so they keep to what both Python and numba understand.
    """

    space: ParamSpace
    options: Mapping[str, float] = field(default_factory=dict)  # keywords of Gymnasium's that are no physics -> default
    presets: Mapping[str, Randomization]
    params: type  # a named tuple: the parameters of the space, then the options
    physics: type  # a named tuple: what the steps of an episode read
    state: type  # a named tuple: the numbers of Gymnasium's ``env.state``, then what else is remembered
    start: Bounds  # of the uniform numbers that an episode begins with, as drawn
    pushed: tuple[str, ...]  # fields of the state: the velocities that a push changes
    attributes: tuple[str, ...] = ()  # fields of the state that Gymnasium has beside ``env.state``; nan is its None
    derive: Callable[[Any], Any]  # params -> physics, once an episode
    begin: Callable[..., Any]  # those uniform numbers -> the first state
    step: Callable[[Any, Any, float], tuple[Any, float, bool]]  # physics, state, action -> state, reward, terminated
    observe: Callable[[Any], tuple[float, ...]]  # state -> observation, before it is rounded to float32
    # options of ``reset``, ``start`` -> bounds of this episode's numbers
    bounds: Callable[[Mapping[str, Any], Bounds], Bounds] = low_and_high

    def with_keywords(self, keywords: Mapping[str, Any]) -> tuple[ParamSpace, tuple[float, ...]]:
        """The space and the options of an environment that was made with some of Gymnasium's keywords.

        A keyword that is a parameter sets its nominal value.

        Raises:
            TypeError: There is no such keyword.
            RandomizationError: The value is impossible.
        """
        for name in keywords:
            if name not in self.space and name not in self.options:
                raise TypeError(f"{self.space.name} has no keyword {name!r}.")
        params = [replace(p, nominal=keywords[p.name]) if p.name in keywords else p for p in self.space.values()]
        options = {name: float(keywords.get(name, default)) for name, default in self.options.items()}
        return ParamSpace(self.space.name, params), tuple(options.values())


def single(value: float) -> float:
    """Rounded to float32."""
    return np.float64(np.float32(value))


def square(value: float) -> float:
    """As Python and numpy square: by the C library's ``pow``, whose result is not always the nearest number."""
    return value**2
