"""Independent Beta distributions of quantiles: entropy, divergence, importance weights, and constrained optimization.

A shape is ``(n, 2)``: a and b of each parameter. Beta(1, 1) is uniform, so the box itself has entropy 0, the maximum.
The formulas are standard (Johnson, Kotz and Balakrishnan 1995, chapter 25), with digamma and trigamma for the
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gym_dr.arrays import Array

LOWEST = 1.0  # of a and b: below it the density has peaks at the ends of the box
TOLERANCE = 1e-6  # how far a constraint may be missed
_GAIN = 1e-6  # how much the goal must improve for a new version
_ITERATIONS = 200

Function: TypeAlias = Callable[[Array], tuple[float, Array]]  # shape (n, 2) -> value and its gradient, (n, 2)


def fitted(ranges: Array) -> Array:
    """The Beta distributions with the same mean and variance as uniform ones.

    Args:
        ranges: Ends of the uniform distributions, shape ``(n, 2)``, in [0, 1].

    Returns:
        a and b, at least ``LOWEST``.
    """
    low, high = ranges[:, 0], ranges[:, 1]
    mean, variance = (low + high) / 2, np.maximum((high - low) ** 2 / 12, 1e-6)
    total = mean * (1.0 - mean) / variance - 1.0
    return np.maximum(np.stack([mean * total, (1.0 - mean) * total], axis=1), LOWEST)


def quantile(shape: Array, u: Array) -> Array:
    """Quantile functions at uniforms; argument and result have shape ``(n, K)``."""
    from scipy.special import betaincinv  # heavy

    return np.asarray(betaincinv(shape[:, :1], shape[:, 1:], u))


def entropy(shape: Array) -> tuple[float, Array]:
    """Differential entropy, at most 0, and its gradient."""
    from scipy.special import betaln, digamma, polygamma

    a, b = shape.T
    value = betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)
    both = (a + b - 2) * polygamma(1, a + b)
    return float(value.sum()), np.stack([both - (a - 1) * polygamma(1, a), both - (b - 1) * polygamma(1, b)], axis=1)


def divergence(old: Array, new: Array) -> tuple[float, Array]:
    """Kullback-Leibler divergence KL(old || new), and its gradient with respect to the new shape."""
    from scipy.special import betaln, digamma

    (a0, b0), (a, b) = old.T, new.T
    expected = np.stack([digamma(a0), digamma(b0)], axis=1) - digamma(a0 + b0)[:, None]  # of ln z, ln(1 - z)
    value = betaln(a, b) - betaln(a0, b0) + ((old - new) * expected).sum(axis=1)
    return float(value.sum()), np.stack([digamma(a), digamma(b)], axis=1) - digamma(a + b)[:, None] - expected


def weights(old: Array, new: Array, z: Array) -> Array:
    """Importance weights, new density over old, of quantiles ``(n, K)`` drawn from an old shape.

    Returns:
        Shape ``(K,)``; their expected value is 1.
    """
    from scipy.special import betaln

    change = new - old
    logs = change[:, :1] * np.log(z) + change[:, 1:] * np.log1p(-z)
    constant = (betaln(*old.T) - betaln(*new.T)).sum()
    return np.asarray(np.exp(logs.sum(axis=0) + constant))


def effective_sample_size(ratios: Array) -> float:
    """Number of unweighted samples that carry as much information: (sum w)^2 / sum w^2 (Kong 1992)."""
    return float(ratios.sum() ** 2 / (ratios**2).sum())


def expectation(old: Array, z: Array, outcomes: Array) -> Function:
    """The mean outcome under a new shape, estimated with importance weights from draws of an old shape.

    Args:
        old: The shape that drew them.
        z: Quantiles, shape ``(n, K)``.
        outcomes: Shape ``(K,)``.
    """
    from scipy.special import digamma

    logs = np.stack([np.log(z), np.log1p(-z)], axis=1)  # (n, 2, K)

    def estimate(new: Array) -> tuple[float, Array]:
        weighted = weights(old, new, z) * outcomes
        a, b = new.T
        mean_logs = np.stack([digamma(a), digamma(b)], axis=1) - digamma(a + b)[:, None]
        gradient = (weighted * logs).mean(axis=2) - weighted.mean() * mean_logs
        return float(weighted.mean()), gradient

    return estimate


@dataclass(frozen=True)
class AtLeast:
    """A constraint: the function's value is at least ``lowest``."""

    function: Function
    lowest: float

    def holds(self, shape: Array) -> bool:
        """Whether a shape satisfies it, up to rounding."""
        return self.function(shape)[0] >= self.lowest - TOLERANCE


def trust_region(old: Array, most: float) -> AtLeast:
    """The constraint KL(old || new) <= ``most``."""

    def slack(new: Array) -> tuple[float, Array]:
        value, gradient = divergence(old, new)
        return -value, -gradient

    return AtLeast(slack, -most)


def maximized(goal: Function, constraints: Sequence[AtLeast], start: Array, highest: float) -> Array | None:
    """The shape that maximizes a function under constraints, searched from a feasible start.

    Sequential quadratic programming (Kraft 1988, scipy's SLSQP) in ln a and ln b, where a step means the same for
    wide and narrow shapes. The result is checked and moved back towards the start until it satisfies the constraints.

    Args:
        goal: The function to maximize.
        constraints: The constraints; ``start`` satisfies all of them.
        start: Shape ``(n, 2)``.
        highest: Largest allowed a and b.

    Returns:
        The new shape; None if nothing better than the start was found.
    """
    from scipy.optimize import minimize

    def by_logarithm(function: Function) -> Function:
        @lru_cache(maxsize=1)  # the solver asks for value and gradient one after the other
        def both(x: bytes) -> tuple[float, Array]:
            shape = np.exp(np.frombuffer(x)).reshape(start.shape)
            value, gradient = function(shape)
            return value, (gradient * shape).ravel()

        return lambda x: both(x.tobytes())

    def slack(constraint: AtLeast) -> dict[str, Any]:
        function = by_logarithm(constraint.function)
        return {"type": "ineq", "fun": lambda x: function(x)[0] - constraint.lowest, "jac": lambda x: function(x)[1]}

    objective, first = by_logarithm(goal), np.log(start).ravel()
    limits = [(np.log(LOWEST), np.log(highest))] * first.size
    found = minimize(
        lambda x: -objective(x)[0],
        first,
        jac=lambda x: -objective(x)[1],
        method="SLSQP",
        bounds=limits,
        constraints=[slack(constraint) for constraint in constraints],
        options={"maxiter": _ITERATIONS, "ftol": 1e-9},
    ).x
    if not np.isfinite(found).all():
        return None
    found = np.clip(found, *limits[0])
    for share in (1.0, 0.999, 0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1):
        new: Array = np.exp(first + share * (found - first)).reshape(start.shape)
        if goal(new)[0] > goal(start)[0] + _GAIN and all(constraint.holds(new) for constraint in constraints):
            return new
    return None
