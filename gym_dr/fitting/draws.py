"""Draws of the posterior: of a quadratic likelihood, in coordinates that suit it, weighted by the simulated likelihood.

Near its maximum a likelihood is about quadratic, in some coordinates more than in others. Where its simulated values at
a few draws differ from the quadratic ones, many draws are simulated and weighted by the ratio (importance sampling). If
few of them then count, the next ones are drawn from a normal likelihood with the weighted mean and covariance (Cappe,
Douc, Guillin, Marin and Robert 2008, "Adaptive importance sampling in general mixture classes").
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.particles import (
    PARTICLES,
    UnconstrainedTransform,
    effective_number,
    next_step,
    resampled,
    root_of,
    tempered_particles,
    unconstrained,
)

_CHECKED = 24  # draws at which the quadratic likelihood is compared with the simulated one
_NOT_QUADRATIC = 0.5  # standard deviation of that difference from which draws are weighted
_FAR = 10.0  # a larger difference says no more
_WEIGHTED = 1000  # draws to weight in a turn, at most
_FEWEST = 100  # effective ones, in a posterior that is not called approximate
_ENOUGH = 0.3  # share of effective ones after which no turn follows
_TURNS = 6
_TRIES = 100  # of a draw to stay inside the prior
_WIDE = 0.75  # power of the likelihood that they come from, whose tails are longer
_STEPS = 16_000_000  # simulated steps for all weights, divided by the number of coordinates


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Draws of a posterior, and how they were made."""

    points: Array  # (count, parameters) of the prior, equally likely
    method: str
    warning: str = ""  # a sentence if they are not to be trusted


def posterior_draws(
    likelihood: Likelihood, estimate: Estimate, rng: np.random.Generator, tell: Callable[[str], None]
) -> Draws:
    """Draws of the posterior of one system.

    Args:
        likelihood: Of the logged steps.
        estimate: Its maximum.
        rng: Source of randomness.
        tell: Called with what is done.
    """
    transform = unconstrained(likelihood.prior)
    if not len(estimate.u) or likelihood.replicates > 1 or estimate.unsettled:
        points = tempered_particles(lambda u: estimate.quadratic(u, transform), transform, rng, count=PARTICLES)
        return Draws(points=points, method="least squares")
    exact, begun = _exact(likelihood, estimate), likelihood.simulator.steps
    transform = _straightest(likelihood, estimate, exact, rng)
    points = tempered_particles(lambda u: estimate.quadratic(u, transform), transform, rng, count=PARTICLES)
    chosen = points[rng.integers(len(points), size=_CHECKED)]
    difference = float(np.std(exact(chosen) - estimate.quadratic(chosen, transform)))
    if difference < _NOT_QUADRATIC:
        return Draws(points=points, method="least squares")
    each = (likelihood.simulator.steps - begun) / (2 * _CHECKED)
    count = int(min(_WEIGHTED, _STEPS / len(likelihood.motion.coordinates) / _TURNS / each))
    if count < _FEWEST:
        why = f"{_FEWEST} of its draws would take {_TURNS * _FEWEST * each:,.0f} simulated steps to weight"
        return Draws(points=points, method="least squares", warning=_warning(why))
    return _weighted(exact, estimate, transform, rng, count, tell)


def widened(points: Array, excess: Array, rng: np.random.Generator) -> Array:
    """Draws ``(count, parameters)`` with more covariance, ``excess``, inside the prior."""
    if not excess.any():
        return points
    root, moved = root_of(excess), points.copy()
    outside: Mask = np.ones(len(points), np.bool_)
    for _ in range(_TRIES):
        moved[outside] = points[outside] + rng.standard_normal((int(outside.sum()), len(root))) @ root.T
        outside[:] = ((moved <= 0.0) | (moved >= 1.0)).any(axis=1)
    return np.where(outside[:, None], points, moved)


def _warning(why: str) -> str:
    return f"The ranges are approximate: the likelihood is not quadratic, and {why}. Log more, or narrow the prior."


def _exact(likelihood: Likelihood, estimate: Estimate) -> Callable[[Array], Array]:
    """The simulated log-likelihood of points ``(count, parameters)``, relative to that of the estimate."""
    kalman, best = estimate.filter, float(np.square(estimate.innovations).sum())

    def log_likelihood(points: Array) -> Array:
        relative = np.empty(len(points))
        for k, u in enumerate(points):
            white = kalman.innovations(replace(estimate.deltas, drift=likelihood.drift(u, estimate.path)))
            relative[k] = -0.5 * (float(np.square(white).sum()) - best)
        return relative

    return log_likelihood


def _straightest(
    likelihood: Likelihood, estimate: Estimate, exact: Callable[[Array], Array], rng: np.random.Generator
) -> UnconstrainedTransform:
    """The coordinates, logarithms or parameters as they are, in which the likelihood is most quadratic."""
    logs, plain = (unconstrained(likelihood.prior, logarithms) for logarithms in (True, False))
    tried = []
    for transform in (logs, plain):
        rough = functools.partial(estimate.quadratic, transform=transform)
        drawn = tempered_particles(rough, transform, rng, count=400, moves=4)
        tried.append(drawn[rng.integers(len(drawn), size=_CHECKED // 2)])
    points = np.concatenate(tried)
    values = exact(points)

    def bent(straight: Mask) -> float:
        transform = replace(logs, images=np.where(straight[:, None], logs.images, plain.images))
        return float(np.minimum(np.abs(values - estimate.quadratic(points, transform)), _FAR).mean())

    count = len(estimate.u)
    chosen: Mask = min((np.ones(count, np.bool_), np.zeros(count, np.bool_)), key=bent)
    for k in itertools.chain(range(count), range(count)):
        other: Mask = chosen.copy()
        other[k] = not other[k]
        chosen = min(chosen, other, key=bent)
    return replace(logs, images=np.where(chosen[:, None], logs.images, plain.images))


def _weighted(
    exact: Callable[[Array], Array],
    estimate: Estimate,
    transform: UnconstrainedTransform,
    rng: np.random.Generator,
    count: int,
    tell: Callable[[str], None],
) -> Draws:
    """Draws weighted by the simulated likelihood, in turns that come closer to it."""

    def normal(center: Array, precision: Array) -> Callable[[Array], Array]:
        def log_likelihood(u: Array) -> Array:
            away = transform.forward(u) - center
            return np.asarray(-0.5 * _WIDE * np.einsum("ci,ij,cj->c", away, precision, away))

        return log_likelihood

    def first(u: Array) -> Array:
        return _WIDE * estimate.quadratic(u, transform)

    proposed: Callable[[Array], Array] = first
    for turn in range(_TURNS):
        points = tempered_particles(proposed, transform, rng, count=count)
        logs = exact(points) - proposed(points)
        effective = effective_number(logs)
        tell(f"weighted {count} draws, which count as {effective:.0f}")
        if effective > _ENOUGH * count or turn == _TURNS - 1:
            break
        weights = np.exp(next_step(logs, 1.0) * (logs - logs.max()))
        places = transform.forward(points)
        center = np.average(places, axis=0, weights=weights)
        covariance = np.atleast_2d(np.cov(places.T, aweights=weights)) + 1e-12 * np.eye(len(center))
        proposed = normal(center, np.asarray(np.linalg.inv(covariance)))
    few = effective < min(_FEWEST, _ENOUGH * count)
    power = next_step(logs, 1.0) if few else 1.0
    points = points[resampled(power * (logs - logs.max()), rng, PARTICLES)]
    warning = _warning(f"of {count} weighted draws only {effective:.0f} count") if few else ""
    return Draws(points=points, method="particles", warning=warning)
