"""A system that varies between episodes: the distribution of its parameters.

Each episode has parameters of its own, ``u_e ~ N(mean, covariance)``, of which its steps tell the likelihood, about
quadratic around its own maximum. Expectation and maximization in turn find mean and covariance (Dempster, Laird and
Rubin 1977); what an episode cannot tell comes from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gym_dr.arrays import Array
from gym_dr.fitting.chain import Links
from gym_dr.fitting.estimate import Estimate, Likelihood, estimate, find_sizes

_ROUNDS = 3  # of each episode's estimate
_ITERATIONS = 500
_PRIOR_EPISODES = 1.0  # that the prior's spread counts as
_WIDEST = 2.0 / 12.0  # variance, at most; cut off at the ends of the prior, it is about as wide as the prior


def episode_estimates(
    likelihood: Likelihood, common: Estimate, progress: Callable[[str], None]
) -> tuple[Array, Array, Array]:
    """Each episode alone: from common parameters and sizes of errors, and once more with the sizes that are then left.

    Returns:
        Points ``(episodes, parameters)``, their information ``(episodes, parameters, parameters)``, and the innovations
        ``(T, n)`` of all steps.
    """
    sizes = common.at.sizes
    found: list[Estimate] = []
    episodes = [np.flatnonzero(likelihood.motion.episode == e) for e in np.unique(likelihood.motion.episode)]
    for turn in range(2):
        if turn:
            residuals = np.concatenate([each.residuals for each in found])
            sizes = find_sizes(_joined([each.at.links for each in found]), residuals, sizes, likelihood.motion)
        starts = [each.u for each in found] or [common.u] * len(episodes)
        found = []
        for rows, start in zip(episodes, starts, strict=True):
            found.append(estimate(likelihood.part(rows), start, sizes=sizes, rounds=_ROUNDS))
            progress(f"episode {len(found)} of {len(episodes)}")
    innovations = np.concatenate([each.innovations for each in found])
    return np.stack([each.u for each in found]), np.stack([each.information for each in found]), innovations


def _joined(parts: Sequence[Links]) -> Links:
    """Links of all episodes in one."""
    spreads = [part.spread for part in parts if part.spread is not None]
    return Links(
        jacobians=np.concatenate([part.jacobians for part in parts]),
        bent=np.concatenate([part.bent for part in parts]),
        spread=np.concatenate(spreads) if spreads else None,
        joined=np.concatenate([part.joined for part in parts]),
    )


def population(points: Array, information: Array) -> tuple[Array, Array, Array]:
    """Mean, covariance, and covariance of the mean, of parameters over episodes.

    Args:
        points: Maxima of the episodes' likelihoods, ``(episodes, parameters)``.
        information: Their curvatures, ``(episodes, parameters, parameters)``.
    """
    episodes, size = points.shape
    prior = np.eye(size) / 12.0
    mean, covariance = np.full(size, 0.5), _WIDEST * np.eye(size)
    for _ in range(_ITERATIONS):
        inverse = np.linalg.inv(covariance)
        spreads = np.linalg.inv(information + inverse)
        pulled = np.einsum("eij,ej->ei", information, points) + inverse @ mean
        centers = np.einsum("eij,ej->ei", spreads, pulled)
        before, mean = mean, centers.mean(axis=0)
        moved = centers - mean
        # the mean comes from the same episodes: one degree of freedom less, but what none of them tells stays as it is
        between = (moved.T @ moved + _PRIOR_EPISODES * 0.01 * prior) / max(episodes - 1, 1)
        covariance = _limited(spreads.mean(axis=0) + between)
        if np.abs(mean - before).max() < 1e-8:
            break
    precision = np.linalg.inv(np.linalg.inv(information + 1e-9 * np.eye(size)) + covariance).sum(axis=0)
    return mean, covariance, np.linalg.inv(precision + 12.0 * np.eye(size))


def _limited(covariance: Array) -> Array:
    """A covariance that is not too large in any direction, not even in those that no episode tells."""
    values, vectors = np.linalg.eigh(covariance)
    limited: Array = (vectors * np.minimum(values, _WIDEST)) @ vectors.T
    return limited


def drawn(mean: Array, covariance: Array, of_mean: Array, count: int, rng: np.random.Generator) -> Array:
    """Parameters of new episodes, ``(count, parameters)``: the mean is uncertain too."""
    total = covariance + of_mean
    values, vectors = np.linalg.eigh(total)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    points = np.empty((0, len(mean)))
    for _ in range(100):
        more = mean + rng.standard_normal((4 * count, len(mean))) @ root.T
        points = np.concatenate([points, more[((more > 0.0) & (more < 1.0)).all(axis=1)]])
        if len(points) >= count:
            chosen: Array = points[:count]
            return chosen
    outside: Array = mean + rng.standard_normal((count, len(mean))) @ root.T
    return np.clip(outside, 1e-6, 1.0 - 1e-6)
