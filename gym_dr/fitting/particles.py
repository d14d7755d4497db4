"""Samples of a posterior: a tempered particle method.

Particles start as draws of the prior, uniform in the unit cube. The likelihood enters gradually, with powers from 0 to
1, each as large as keeps half of the particles effective. At each power, particles are resampled and moved by a random
walk with their own covariance, in coordinates in which valleys of the likelihood are straight (Del Moral, Doucet and
Jasra 2006, "Sequential Monte Carlo samplers"; Jasra et al. 2011 for the choice of the powers).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gym_dr.arrays import Array
from gym_dr.fitting.unconstrained import UnconstrainedTransform

_EFFECTIVE = 0.5  # share of particles to keep effective in a stage
_ACCEPTED = 0.25  # target acceptance rate of the random walk
_MAX_STAGES = 500


def tempered_particles(
    log_likelihood: Callable[[Array], Array],
    transform: UnconstrainedTransform,
    rng: np.random.Generator,
    *,
    count: int = 4000,
    moves: int = 8,
) -> Array:
    """Draws from a prior that is uniform in the unit cube, times a likelihood.

    Args:
        log_likelihood: Points ``(count, p)`` of the cube -> ``(count,)``.
        transform: Into the coordinates of the random walk.
        rng: Source of randomness.
        count: Particles.
        moves: Moves of each particle in each stage.

    Returns:
        Points ``(count, dimensions)``, equally likely.
    """
    dimensions = len(transform.images)
    points = rng.uniform(size=(count, dimensions))
    if not dimensions:
        return points
    values, power, size = log_likelihood(points), 0.0, 2.38 / np.sqrt(dimensions)
    for _ in range(_MAX_STAGES):
        step = next_step(values, 1.0 - power)
        power = min(1.0, power + step)
        chosen = resampled(step * (values - values.max()), rng, count)
        points, values = points[chosen], values[chosen]
        places = transform.forward(points)
        root = root_of(np.atleast_2d(np.cov(places.T)))
        for _ in range(moves):
            proposed = places + size * rng.standard_normal(places.shape) @ root.T
            inside = transform.inside(proposed)
            moved = np.where(inside[:, None], transform.inverse(proposed), points)
            found = log_likelihood(moved)
            change = power * (found - values)
            change += np.log(transform.slope(moved)).sum(axis=1) - np.log(transform.slope(points)).sum(axis=1)
            accepted = inside & (np.log(rng.uniform(size=len(points))) < change)
            points[accepted], places[accepted] = moved[accepted], proposed[accepted]
            values[accepted] = found[accepted]
            size = float(np.clip(size * np.exp(accepted.mean() - _ACCEPTED), 1e-3, 3.0))
        if power >= 1.0:
            break
    return points


def next_step(values: Array, left: float) -> float:
    """The largest increase of the power that keeps the particles effective, by bisection."""

    def effective(step: float) -> float:
        return effective_number(step * values) / len(values)

    if effective(left) >= _EFFECTIVE:
        return left
    low, high = 0.0, left
    for _ in range(200):
        middle = 0.5 * (low + high) if low else high * 0.1
        low, high = (middle, high) if effective(middle) >= _EFFECTIVE else (low, middle)
        if low and high - low < 1e-3 * high:
            break
    return max(low, 1e-300)


def effective_number(log_weights: Array) -> float:
    """How many equally weighted points weighted ones are worth (Kish 1965)."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / np.square(weights).sum())


def resampled(log_weights: Array, rng: np.random.Generator, count: int) -> Array:
    """``count`` indices drawn in proportion to weights, with one random number for all (systematic resampling)."""
    weights = np.exp(log_weights)
    ends = np.cumsum(weights) / weights.sum()
    places = (np.arange(count) + rng.uniform()) / count
    return np.asarray(np.minimum(np.searchsorted(ends, places), len(weights) - 1))


def root_of(covariance: Array) -> Array:
    """A root of a covariance, which rounding may have made singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
