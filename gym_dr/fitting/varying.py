"""A system that varies between episodes: the distribution of its parameters.

Each episode has its own parameters ``u_e ~ N(mean, covariance)``, without covariance for those that all episodes share.
Its log-likelihood is about quadratic around its own maximum. Expectation maximization finds mean and covariance
(Dempster, Laird and Rubin 1977): where an episode does not identify a parameter, the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.estimate import Estimate, estimate
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.motion import Path
from gym_dr.fitting.noise import fit_noise
from gym_dr.fitting.particles import root_of
from gym_dr.fitting.smoother import Chains, Deltas, NoiseVariances

Part = TypeVar("Part", Chains, Deltas, Path)
_ROUNDS = 3  # of each episode's estimate
_TURNS = 8  # of the episodes' estimates and the noise, at most
_SETTLED = 0.05  # relative change of a standard deviation of noise that counts as none
_ITERATIONS = 500
_PRIOR_EPISODES = 1.0  # weight of the prior's variance, in episodes
_FAINT = 1e-3  # information of the prior on the mean, where no episode has any
_WIDEST = 2.0 / 12.0  # variance, at most; cut off at the ends of the prior, it is about as wide as the prior


def episode_estimates(
    likelihood: Likelihood, common: Estimate, progress: Callable[[str], None]
) -> tuple[Array, Array, Estimate]:
    """Estimates each episode alone and then the noise that is left, in turn until the noise settles.

    Args:
        likelihood: Of all steps.
        common: The estimate for a single system, whose noise includes the variation.
        progress: Called with what is done.

    Returns:
        Points ``(episodes, parameters)``, their information ``(episodes, parameters, parameters)``, and the common
        estimate with the noise, innovations and information of the single episodes.
    """
    motion, noise = likelihood.motion, common.noise
    episodes = [np.flatnonzero(motion.episode == e) for e in np.unique(motion.episode)]
    starts, settled, turn = [common.u] * len(episodes), False, 0
    while not settled and turn < _TURNS:
        each: list[Estimate] = []
        for rows, start in zip(episodes, starts, strict=True):
            part = likelihood.part(rows)
            each.append(estimate(part, start, common.smoothed.rows(rows), noise=noise, rounds=_ROUNDS))
            progress(f"episode {len(each)} of {len(episodes)}")
        chains, deltas = _joined(Chains, [one.chains for one in each]), _joined(Deltas, [one.deltas for one in each])
        before, noise = noise, fit_noise(chains, deltas, noise, common.scale, common.forced, motion.inexact)
        starts, settled, turn = [one.u for one in each], _settled(before, noise), turn + 1
    kalman = chains.filter(noise)
    information = np.stack([one.information for one in each])
    whole = replace(
        common,
        path=_joined(Path, [one.path for one in each]),
        smoothed=_joined(Path, [one.smoothed for one in each]),
        chains=chains,
        deltas=deltas,
        filter=kalman,
        noise=noise,
        innovations=kalman.innovations(deltas),
        information=information.sum(axis=0),
    )
    return np.stack([one.u for one in each]), information, whole


def _settled(before: NoiseVariances, after: NoiseVariances) -> bool:
    """Whether standard deviations hardly changed, relative to all noise of their coordinate."""
    whole = np.sqrt(before.measured + before.process)
    moved = [np.sqrt(after.measured) - np.sqrt(before.measured), np.sqrt(after.process) - np.sqrt(before.process)]
    return bool((np.abs(moved) < _SETTLED * whole).all())


def _joined(kind: type[Part], parts: Sequence[Part]) -> Part:
    """The arrays of all episodes, one after another; what they share stays as it is."""
    joined = {}
    for field in fields(kind):
        values = [getattr(part, field.name) for part in parts]
        shared = values[0] is None or field.name == "prior"
        joined[field.name] = values[0] if shared else np.concatenate(values)
    return kind(**joined)


def population(points: Array, information: Array, varies: Mask) -> tuple[Array, Array, Array]:
    """The mean of parameters over episodes, their covariance, and the covariance of the mean.

    Args:
        points: Maxima of the episodes' likelihoods, ``(episodes, parameters)``.
        information: Their curvatures, ``(episodes, parameters, parameters)``.
        varies: Which parameters vary between episodes, ``(parameters,)``; all episodes share the others.
    """
    episodes, size = points.shape
    own = np.flatnonzero(varies)
    prior, inside = np.eye(len(own)) / 12.0, information[:, own][:, :, own]
    mean, covariance = np.full(size, 0.5), _WIDEST * np.eye(len(own))
    for _ in range(_ITERATIONS):
        spreads = np.linalg.inv(inside + np.linalg.inv(covariance))
        # of the points around the mean: (inverse information + covariance)^-1, also where an episode has no information
        precisions = information - information[:, :, own] @ spreads @ information[:, own]
        precision = precisions.sum(axis=0)
        before, pulled = covariance, np.einsum("eij,ej->i", precisions, points)
        mean = np.linalg.solve(precision + _FAINT * np.eye(size), pulled + _FAINT * 0.5)
        moved = np.einsum("eij,ejk,ek->ei", spreads, information[:, own], points - mean)
        # one degree of freedom less, as the mean comes from the same episodes; what none identifies stays as it is
        between = (moved.T @ moved + _PRIOR_EPISODES * 0.01 * prior) / max(episodes - 1, 1)
        covariance = _limited(spreads.mean(axis=0) + between)
        if np.abs(covariance - before).max() < 1e-8:
            break
    whole = np.zeros((size, size))
    whole[np.ix_(own, own)] = covariance
    return mean, whole, np.linalg.inv(precision + 12.0 * np.eye(size))


def _limited(covariance: Array) -> Array:
    """A covariance with limited variance in all directions, also in those that no episode identifies."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.minimum(values, _WIDEST)) @ vectors.T)


def draw_points(
    mean: Array, covariance: Array, of_mean: Array, count: int, rng: np.random.Generator, freedom: float = np.inf
) -> Array:
    """Parameters of new episodes, ``(count, parameters)``, which also vary as the mean is uncertain.

    Args:
        mean: Shape ``(parameters,)``.
        covariance: Of the episodes, ``(parameters, parameters)``.
        of_mean: Covariance of the mean.
        count: How many to draw.
        rng: Source of randomness.
        freedom: Degrees of freedom of Student's t; infinite for a normal distribution.
    """
    root = root_of(covariance + of_mean)
    points = np.empty((0, len(mean)))
    for _ in range(100):
        more = rng.standard_normal((4 * count, len(mean))) @ root.T
        if np.isfinite(freedom):
            more *= np.sqrt(freedom / rng.chisquare(freedom, (len(more), 1)))
        more += mean
        points = np.concatenate([points, more[((more > 0.0) & (more < 1.0)).all(axis=1)]])
        if len(points) >= count:
            return np.asarray(points[:count])
    outside: Array = mean + rng.standard_normal((count, len(mean))) @ root.T
    return np.clip(outside, 1e-6, 1.0 - 1e-6)
