"""The box that contains all draws: a randomization seen as the unit cube of its quantiles.

A method learns a distribution of quantiles, one in (0, 1) for each varying parameter, and the randomization's quantile
functions turn them into values. Uniform ranges are thus learned linearly, LogUniform ones on a logarithmic scale, whole
numbers and switches as ranges of their ordered values, and "uniform on the cube" always means the randomization itself.
Entropies and divergences refer to the quantiles: the whole box has entropy 0, and anything narrower has less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.errors import RandomizationError, RandomizationWarning, unknown_name, warn
from gym_dr.randomization.presets import presets, resolve
from gym_dr.randomization.sampler import values_at
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization, Rule

NOMINAL = "nominal"  # start around nominal values
EDGE = 2.0**-53  # quantiles are at least this far from 0 and 1, where a value may be infinite
_GRID = np.linspace(0.0, 1.0, 1001)[1:-1]  # quantiles at which values must be monotonic
_BISECTIONS = 60
_SHARES = (np.arange(200) + 0.5) / 200  # quantiles that stand for the draws of a start


class QuantileBox:
    """A randomization whose varying parameters are learned.

    Parameters with a single value (``Constant``, or equal ends) keep it and are not learned.

    Attributes:
        names: The n learned parameters, in order.
    """

    def __init__(self, space: ParamSpace, support: Randomization) -> None:
        """Checks that the randomization can be learned.

        Raises:
            RandomizationError: Nothing varies, parameters are correlated, or a parameter's values are not ordered.
        """
        self.space, self.support = space, support
        self.names = varying(space, support)
        if support.correlation is not None:
            raise RandomizationError(
                f"Expected independent parameters, since each range is learned separately, got a correlation of "
                f"{', '.join(support.correlation.names)}. Leave the correlation out, or use the sampler uniform."
            )
        for name in self.names:
            values = self._value(name, _GRID)
            if (np.diff(values) * np.sign(values[-1] - values[0]) < 0).any():
                raise RandomizationError(
                    f"Parameter {name!r}: expected values that rise or fall with their quantile, so that a range can "
                    f"be learned, got {support[name]!r}. List them in order, or use the sampler uniform."
                )

    def values(self, quantiles: Array) -> dict[str, Array]:
        """The values at these quantiles.

        Args:
            quantiles: Shape ``(n, K)``, from 0 to 1.

        Returns:
            name -> values of shape ``(K,)``, of every parameter of the randomization.
        """
        inside = np.clip(quantiles, EDGE, 1.0 - EDGE)
        middle = np.full(quantiles.shape[1], 0.5)  # of parameters with one value
        u = {**dict.fromkeys(self.support, middle), **dict(zip(self.names, inside, strict=True))}
        return values_at(self.support, self.space, u)

    def start(self, start: Any, width: float) -> Array:
        """The first ranges of quantiles.

        Args:
            start: ``"nominal"``, a preset, a mapping or a ``Randomization``. Its draws must lie inside the box, except
                for a twentieth of them at each end. The ranges have the mean and variance of its draws. Parameters that
                it does not name start at nominal.
            width: Width of the ranges around nominal values, as a share of the box.

        Returns:
            Lower and upper ends, shape ``(n, 2)``.

        Raises:
            UnknownNameError: There is no such preset.
            RandomizationError: The start extends beyond the box, or a table names a parameter that is not in it.

        Warns:
            RandomizationWarning: A nominal value lies outside the box.
        """
        given: Mapping[str, Rule] = {}
        if isinstance(start, str) and start not in (NOMINAL, *presets(self.space.name)):
            raise unknown_name("start", start, [NOMINAL, *presets(self.space.name)])
        if start != NOMINAL:
            given = resolve(start, self.space)
        if not isinstance(start, str) and (absent := [name for name in given if name not in self.support]):
            raise RandomizationError(
                f"Expected a start with parameters of the box, {', '.join(self.support)}, got also "
                f"{', '.join(absent)}. Leave them out, or add them to the randomization."
            )
        return np.array([self._range(name, given.get(name), width) for name in self.names])

    def _range(self, name: str, rule: Rule | None, width: float) -> tuple[float, float]:
        nominal = self.space[name].nominal
        low, high = self.support[name].support(nominal)
        if rule is not None:
            draws = np.sort(rule.apply(nominal, rule.distribution.ppf(_SHARES)))
            slack, tail = 1e-9 * (high - low), len(draws) // 20
            if not (low - slack <= draws[tail] and draws[-1 - tail] <= high + slack):
                first, last = rule.support(nominal)
                raise RandomizationError(
                    f"Parameter {name!r}: expected a start inside the box, from {low:g} to {high:g}, got one from "
                    f"{first:g} to {last:g}. Narrow the start, or widen the box."
                )
            return _as_varied(*self._quantiles(name, np.clip(draws, low, high)))
        if not low <= nominal <= high:
            warn(
                f"Parameter {name!r}: the nominal value {nominal:g} is outside the box, {low:g} to {high:g}, so draws "
                "start at the nearest end. Choose another start, or widen the box.",
                RandomizationWarning,
            )
        center = float(np.mean(self._quantiles(name, np.array([nominal]))))
        first = min(max(0.0, center - width / 2), 1.0 - width)
        return first, first + width

    def _value(self, name: str, quantiles: Array) -> Array:
        rule = self.support[name]
        return rule.apply(self.space[name].nominal, rule.distribution.ppf(quantiles))

    def _quantiles(self, name: str, values: Array) -> tuple[Array, Array]:
        """The quantiles between which a parameter has values ``(K,)``; equal for a continuous parameter."""
        ends = self._value(name, np.array([EDGE, 1.0 - EDGE]))
        sign = 1.0 if ends[1] >= ends[0] else -1.0  # a negative nominal value times a draw falls as the draw rises

        def first(reached: Callable[[Array, Array], Mask]) -> Array:
            low, high = np.zeros(len(values)), np.ones(len(values))
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                hit = reached(sign * self._value(name, np.clip(middle, EDGE, 1.0 - EDGE)), sign * values)
                low, high = np.where(hit, low, middle), np.where(hit, middle, high)
            return np.where(high > 0.5, high, low)  # exactly 0 or 1 at an end of the box

        return first(np.greater_equal), first(np.greater)


def _as_varied(first: Array, last: Array) -> tuple[float, float]:
    """The ends of a uniform distribution with the mean and variance of equally likely draws, clipped to [0, 1].

    Args:
        first: Shape ``(K,)``, the lowest quantile at which each draw has its value.
        last: Shape ``(K,)``, the highest such quantile.
    """
    middle, count = (first + last) / 2, len(first)
    # the centers of K equal parts of a uniform distribution have (K^2 - 1) / K^2 of its variance
    variance = middle.var() * count**2 / (count**2 - 1) + ((last - first) ** 2).mean() / 12
    half = float(np.sqrt(3.0 * variance))
    return max(0.0, float(middle.mean()) - half), min(1.0, float(middle.mean()) + half)


def varying(space: ParamSpace, support: Randomization) -> list[str]:
    """The parameters with more than one value.

    Raises:
        RandomizationError: No parameter varies.
    """
    ends = {name: rule.support(space[name].nominal) for name, rule in support.rules}
    if names := [name for name, (low, high) in ends.items() if low < high]:
        return names
    raise RandomizationError(
        f"Expected a randomization with a parameter that varies, got {support!r}. Give at least one parameter a range."
    )
