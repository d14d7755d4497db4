"""What defines a classic control environment: its file makes ``ClassicEquations``, and everything else is shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

from gym_dr.envs.equations.equations import Bounds, Equations
from gym_dr.envs.interface import Interface
from gym_dr.envs.vector_arguments import check_keywords
from gym_dr.errors import RandomizationError
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization


def low_and_high(options: Mapping[str, Any], bounds: Bounds) -> Bounds:
    """The bounds of an initial state, either of which ``reset(options={"low": ..., "high": ...})`` may set.

    Raises:
        RandomizationError: One is not a finite number, or they are in the wrong order.
    """
    given = {name: number_option(name, options[name]) for name in ("low", "high") if name in options}
    within = tuple((given.get("low", low), given.get("high", high)) for low, high in bounds)
    if any(low > high for low, high in within):
        raise RandomizationError(f"Expected options with low <= high, got {within[0][0]} and {within[0][1]}.")
    return within


def number_option(name: str, value: Any) -> float:
    """A finite number in the options of ``reset``.

    Raises:
        RandomizationError: The value is something else.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise RandomizationError(f"Expected options[{name!r}] to be a finite number, got {value!r}.")
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassicEquations(Equations):
    """Parameters and physics of one of Gymnasium's environments; ``params`` has those of the space, then the options.

    The state starts with the numbers of Gymnasium's ``env.state``.
    """

    space: ParamSpace
    keywords: tuple[str, ...] = ()  # Gymnasium's keywords that are parameters
    options: Mapping[str, float] = field(default_factory=dict)  # its other keywords -> default
    presets: Mapping[str, Randomization]
    interface: Interface  # what its observations, actions and rewards are
    attributes: tuple[str, ...] = ()  # fields of the state that Gymnasium keeps outside ``env.state``; nan for its None
    # options of ``reset``, ``start`` -> bounds of this episode's initial numbers
    bounds: Callable[[Mapping[str, Any], Bounds], Bounds] = low_and_high

    def with_keywords(self, keywords: Mapping[str, Any]) -> tuple[ParamSpace, tuple[float, ...]]:
        """The space and the options of an environment made with some of Gymnasium's keywords.

        A keyword that is a parameter sets its nominal value, which presets do not vary.

        Raises:
            TypeError: There is no such keyword.
            RandomizationError: The value is impossible.
        """
        check_keywords(self.space, keywords, (*self.keywords, *self.options))
        options = {name: float(keywords.get(name, default)) for name, default in self.options.items()}
        return self.space.with_constants(keywords), tuple(options.values())
