"""A system that varies between episodes: the distribution of its parameters.

Each episode has parameters of its own, ``u_e ~ N(mean, covariance)``, of which its steps tell the likelihood, about
quadratic around its own maximum. Expectation and maximization in turn find mean and covariance (Dempster, Laird and
Rubin 1977); what an episode cannot tell comes from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.chain import Links, Sizes
from gym_dr.fitting.estimate import Estimate, Likelihood, Linearized, estimate, find_sizes

_ROUNDS = 3  # of each episode's estimate
_TURNS = 8  # of the episodes' estimates and the sizes of their errors, at most
_SETTLED = 0.05  # of a deviation that sizes still move
_ITERATIONS = 500
_PRIOR_EPISODES = 1.0  # that the prior's spread counts as
_WIDEST = 2.0 / 12.0  # variance, at most; cut off at the ends of the prior, it is about as wide as the prior


def episode_estimates(
    likelihood: Likelihood, common: Estimate, progress: Callable[[str], None]
) -> tuple[Array, Array, Estimate]:
    """Each episode alone, and the sizes of errors that are left then, in turn until these settle.

    Args:
        likelihood: Of all steps.
        common: The estimate for a single system, in whose errors the variation is.
        progress: Gets what is done.

    Returns:
        Points ``(episodes, parameters)``, their information ``(episodes, parameters, parameters)``, and the common
        estimate with the errors, innovations and information of the episodes' own.
    """
    motion, sizes = likelihood.motion, common.at.sizes
    episodes = [np.flatnonzero(motion.episode == e) for e in np.unique(motion.episode)]
    starts, settled, turn = [common.u] * len(episodes), False, 0
    while not settled and turn < _TURNS:
        found: list[Estimate] = []
        for rows, start in zip(episodes, starts, strict=True):
            found.append(estimate(likelihood.part(rows), start, sizes=sizes, rounds=_ROUNDS))
            progress(f"episode {len(found)} of {len(episodes)}")
        links, residuals = (
            _joined([each.at.links for each in found]),
            np.concatenate([each.residuals for each in found]),
        )
        before, sizes = sizes, find_sizes(links, residuals, _balanced(sizes, motion.seen), motion)
        starts, settled, turn = [each.u for each in found], _settled(before, sizes), turn + 1
    factor = links.factor(sizes)
    at = Linearized(
        states=np.concatenate([each.at.states for each in found]),
        offsets=np.concatenate([each.at.offsets for each in found]),
        links=links,
        factor=factor,
        sizes=sizes,
    )
    information = np.stack([each.information for each in found])
    whole = replace(
        common,
        at=at,
        residuals=residuals,
        innovations=factor.whiten(residuals),
        information=information.sum(axis=0),
    )
    return np.stack([each.u for each in found]), information, whole


def _balanced(sizes: Sizes, seen: Mask) -> Sizes:
    """Where to begin to look for sizes: those of a single system may be near 0, where their logarithms do not move."""
    half = 0.5 * (sizes.measured + sizes.process)
    return replace(sizes, measured=np.where(seen, half, sizes.measured), process=np.where(seen, half, sizes.process))


def _settled(before: Sizes, after: Sizes) -> bool:
    """Whether sizes moved hardly, for what they are together."""
    whole = np.sqrt(before.measured + before.process)
    moved = [np.sqrt(after.measured) - np.sqrt(before.measured), np.sqrt(after.process) - np.sqrt(before.process)]
    return bool((np.abs(moved) < _SETTLED * whole).all())


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
