"""Options of ``reset`` that bound the initial states, as in Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gym_dr.envs.equations.equations import Bounds
from gym_dr.errors import RandomizationError
from gym_dr.randomization.space import Param, ParamSpace

_LARGEST = float(np.finfo(np.float32).max)  # of an observation


def low_and_high(options: Mapping[str, Any], bounds: Bounds) -> Bounds:
    """The bounds of an initial state, either of which ``reset(options={"low": ..., "high": ...})`` may set.

    Raises:
        RandomizationError: A bound is not a finite number, or low exceeds high.
    """
    given = {name: number_option(name, options[name]) for name in ("low", "high") if name in options}
    within = tuple((given.get("low", low), given.get("high", high)) for low, high in bounds)
    if any(low > high for low, high in within):
        raise RandomizationError(f"Expected options with low <= high, got {within[0][0]} and {within[0][1]}.")
    return within


def number_option(name: str, value: Any, low: float = -_LARGEST) -> float:
    """A number that observations can hold, in the options of ``reset``.

    Raises:
        RandomizationError: The value is something else, or below ``low``.
    """
    option = Param(name=f"options[{name!r}]", nominal=0.0, low=low, high=_LARGEST)
    return ParamSpace("the options of reset", [option]).check({option.name: value})[option.name]
