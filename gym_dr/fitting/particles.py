"""Samples of a posterior: a tempered particle method.

Particles start as draws of the prior, uniform in the unit cube. The likelihood enters gradually, with powers from 0 to
1, each as large as keeps half of the particles effective. At each power, particles are resampled and moved by a random
walk with their own covariance, in coordinates in which valleys of the likelihood are straight (Del Moral, Doucet and
Jasra 2006, "Sequential Monte Carlo samplers"; Jasra et al. 2011 for the choice of the powers).

Physics often determines ratios and products, such as thrust over mass. In logarithms these are straight lines, which a
quadratic likelihood and a random walk of particles can follow. A coefficient near 0, such as friction, is better as it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.prior import Prior

PARTICLES = 4000  # draws of a posterior
_EFFECTIVE = 0.5  # share of particles to keep effective in a stage
_ACCEPTED = 0.25  # target acceptance rate of the random walk
_MAX_STAGES = 500
_POINTS = 4001  # of a transform's table


@dataclass(frozen=True, kw_only=True, eq=False)
class UnconstrainedTransform:
    """A monotone map of each of p numbers in (0, 1), by linear interpolation in a table."""

    uniforms: Array  # (points,)
    images: Array  # (p, points), rising

    def forward(self, u: Array) -> Array:
        """Coordinates of points ``(count, p)``."""
        columns = [np.interp(u[:, k], self.uniforms, images) for k, images in enumerate(self.images)]
        return np.stack(columns, axis=1) if columns else u

    def inverse(self, coordinates: Array) -> Array:
        """Points at coordinates ``(count, p)``."""
        columns = [np.interp(coordinates[:, k], images, self.uniforms) for k, images in enumerate(self.images)]
        return np.stack(columns, axis=1) if columns else coordinates

    def slope(self, u: Array) -> Array:
        """Derivatives of points by coordinates, ``(count, p)``."""
        slopes = np.empty_like(u)
        for k, images in enumerate(self.images):
            place = np.clip(np.searchsorted(self.uniforms, u[:, k]) - 1, 0, len(self.uniforms) - 2)
            rise = images[place + 1] - images[place]
            slopes[:, k] = (self.uniforms[place + 1] - self.uniforms[place]) / np.maximum(rise, 1e-300)
        return slopes

    def inside(self, coordinates: Array) -> Mask:
        """Which of the coordinates ``(count, p)`` belong to points."""
        return np.asarray(np.all((coordinates > self.images[:, 0]) & (coordinates < self.images[:, -1]), axis=1))


def unconstrained(prior: Prior, logarithms: bool = True) -> UnconstrainedTransform:
    """The logarithm of each parameter of one sign, and other parameters as they are; u itself for correlated priors.

    Falling logarithms change their sign, so all rise with u.

    Args:
        prior: Of the parameters.
        logarithms: False for parameters as they are, also those of one sign.
    """
    uniforms = np.linspace(0.0, 1.0, _POINTS)
    size = len(prior.names)
    if prior.randomization.correlation is not None:
        return UnconstrainedTransform(uniforms=uniforms, images=np.repeat(uniforms[None], size, axis=0))
    table = prior.values(np.repeat(uniforms[:, None], size, axis=1))
    images = np.empty((size, _POINTS))
    for k, values in enumerate(table.values()):
        one_sign = logarithms and bool((values > 0).all() or (values < 0).all())
        image = np.log(np.abs(values)) if one_sign else values
        image = image if image[-1] >= image[0] else -image
        rising = bool((np.diff(image) > 0).all())
        images[k] = image if rising else uniforms
    return UnconstrainedTransform(uniforms=uniforms, images=images)


def tempered_particles(
    log_likelihood: Callable[[Array], Array],
    transform: UnconstrainedTransform,
    rng: np.random.Generator,
    *,
    count: int = PARTICLES,
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
