"""A test of the model: whether residuals are consistent with noise, and what the model lacks if they are not.

If the model is right, innovations are independent of everything before them. So nothing is found if a force or an error
of a sensor is added to the model that depends on actions, on expected states, or on earlier innovations. What the
simulator lacks (friction, a delay, another time step) is like one of these. The statistic of Wooldridge (1991, "On the
application of robust, regression-based diagnostics") holds also when noise is larger in some steps than in others.
Episodes are compared by their scores, and differences enter ranges by a sandwich (White 1982, "Maximum likelihood
estimation of misspecified models").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.stats

from gym_dr.arrays import Array
from gym_dr.envs.replay import Coordinate
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.motion import LoggedMotion

LEVEL = 0.01  # share of right models in which something is found
_STEPS_A_FEATURE = 8  # at least, of a regression
# share of how much a coordinate changes that is too little for an alarm
_NEGLIGIBLE = 0.01
# the same for random simulators, whose noise is not normal, so that innovations are not quite independent
_NEGLIGIBLE_RANDOM = 0.05
_FOREIGN = 0.2  # share of a force's effect that no parameter or other force explains, from which it counts
_END = 1e-4  # distance of a point from an end of its range, up to which it cannot move there
_CLEAR = 0.01  # share of noise in a state's variance up to which forces may depend on it
_LARGEST = 5.0  # standard deviations at which innovations are clipped
_PRECISION = 12.0  # of a uniform prior


@dataclass(frozen=True, kw_only=True)
class Lack:
    """What the model lacks in one coordinate."""

    coordinate: Coordinate
    is_force: bool  # whether it is in how the coordinate changes, not in how it is measured
    feature: str  # on which it depends most; empty if on nothing
    cause: str  # what such a lack is like
    p: float  # p-value over all coordinates
    pull: float  # of that alone on innovations, in standard deviations
    size: float  # root mean square in a step of what depends on that, in the coordinate's unit
    share: float  # of the coordinate's changes in the log, or of its standard deviation


@dataclass(frozen=True, kw_only=True, eq=False)
class Contradiction:
    """How parameters differ between episodes."""

    p: float  # p-value of equal parameters
    odd: int | None  # row of the episode that contradicts all others, which agree; None if several differ
    name: int  # parameter that differs most
    points: Array  # (episodes, parameters) the episodes' own estimates; of the others in the row of ``odd + 1``
    share: float  # what the differences change, of the changes in the log


@dataclass(frozen=True, kw_only=True, eq=False)
class Misfit:
    """Evidence against a model."""

    lack: Lack | None  # that with the strongest pull, or the smallest p; None if nothing can be compared
    contradiction: Contradiction | None  # None for one episode, or without parameters
    negligible: float  # share up to which either is no alarm
    excess: Array  # (parameters, parameters) covariance that ranges need beyond that of noise

    def lacks(self) -> bool:
        """Whether the model lacks something that matters."""
        return self.lack is not None and self.lack.p < LEVEL and self.lack.share > self.negligible

    def episodes_differ(self) -> bool:
        """Whether parameters differ between episodes by more than does not matter."""
        found = self.contradiction
        return found is not None and found.p < LEVEL / 2 and found.share > self.negligible

    @property
    def suspicious(self) -> bool:
        """Whether residuals are not consistent with noise."""
        return self.lacks() or self.episodes_differ()


def find_misfit(likelihood: Likelihood, estimate: Estimate, *, varies: bool = False) -> Misfit:
    """Tests whether innovations depend on what was known before.

    Args:
        likelihood: Of the logged steps.
        estimate: Its maximum.
        varies: Whether parameters may differ between episodes.
    """
    motion, count = likelihood.motion, len(estimate.u)
    z = np.clip(estimate.innovations, -_LARGEST, _LARGEST)
    own = estimate.slopes.reshape(z.size, count)
    free = np.minimum(estimate.u, 1.0 - estimate.u) > _END  # others are held by their prior
    changes = np.sqrt(np.square(likelihood.replay.difference(estimate.path.ends, estimate.path.states)).mean(axis=0))
    negligible = _NEGLIGIBLE if estimate.chains.simulated is None else _NEGLIGIBLE_RANDOM
    names, causes, features = _features(motion, estimate)
    by_parameters = likelihood.by_parameters(estimate.u, estimate.path.states).reshape(*z.shape, count)
    pushed = motion.seen | estimate.forced if motion.seen.all() else estimate.forced
    tried = [(k, True, changes[k]) for k in np.flatnonzero(pushed & (changes > 0.0)).tolist()]
    tried += [(k, False, estimate.scale[k]) for k in np.flatnonzero(motion.seen).tolist()]
    lacks, excess = [], np.zeros((count, count))
    for k, is_force, whole in tried:
        moved, still = np.zeros((*z.shape, len(names))), np.zeros((*z.shape, len(names)))
        moved[:, k] = features
        columns = estimate.filter.slopes(*((moved, still) if is_force else (still, moved)))
        columns = columns.reshape(z.size, len(names))
        norms = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        foreign = _foreign(columns / norms, own[:, free])
        p, strongest, pull, size = _chance(z, foreign)
        size = size / float(norms[strongest])
        lack = Lack(
            coordinate=motion.coordinates[k],
            is_force=is_force,
            feature=names[strongest],
            cause=causes[strongest],
            p=min(1.0, p * len(tried)),
            size=size,
            share=size / float(whole),
            pull=pull,
        )
        lacks.append(lack)
        if lack.p < LEVEL:
            shown = np.linalg.norm(foreign, axis=0) > _FOREIGN  # what parameters explain as well is theirs
            excess += _absorbed(z, own, columns[:, shown] * size)
    contradiction = None if varies else _contradiction(motion, estimate, z, by_parameters, changes)
    found = Misfit(
        lack=min(
            lacks, key=lambda one: (one.share <= negligible, -one.pull) if one.p < LEVEL else (2, one.p), default=None
        ),
        contradiction=contradiction,
        negligible=negligible,
        excess=excess,
    )
    if found.episodes_differ():
        excess += _sandwich(motion, estimate, z)
    return found


def _features(motion: LoggedMotion, estimate: Estimate) -> tuple[list[str], list[str], Array]:
    """What is known before each step: names, what forces that depend on it are like, and numbers ``(T, k)``.

    All are 1 in the root mean square; the first is constant and nameless.
    """
    known = estimate.filter.expected(estimate.deltas) + estimate.path.ends[:, motion.places]
    states = np.roll(known, 1, axis=0)
    states[motion.begins] = estimate.deltas.first + estimate.path.states[motion.begins][:, motion.places]
    for k, coordinate in enumerate(motion.coordinates):
        if coordinate.angle:
            states[:, k] = np.remainder(states[:, k] + np.pi, 2.0 * np.pi) - np.pi
    # where episodes begin alike, what is known of a state with large errors is mostly these, and so are innovations
    states[:, motion.seen & (estimate.noise.measured > _CLEAR * np.square(estimate.scale))] = 0.0
    actions, labels = _as_numbers(motion.actions)
    fresh, every = motion.begins[:, None], [c.name for c in motion.coordinates]
    earlier = np.where(fresh, 0.0, np.roll(actions, 1, axis=0))
    residuals = np.where(fresh, 0.0, np.roll(np.clip(estimate.innovations, -_LARGEST, _LARGEST), 1, axis=0))
    columns = [
        ([""], "an offset or a tilt", np.ones((len(motion), 1))),
        (labels, "a wrong gain", actions),
        (every, "a spring or damping", states),
        ([f"the direction of {name}" for name in every], "dry friction", np.sign(states)),
        ([f"{label} one step before" for label in labels], "a delay", earlier),
        (
            [f"the residual of {name} one step before" for name in every],
            "something that is not in its state",
            residuals,
        ),
    ]
    names = [name for group, _, _ in columns for name in group]
    causes = [cause for group, cause, _ in columns for _ in group]
    table = np.concatenate([values for _, _, values in columns], axis=1)
    table[:, 1:] -= table[:, 1:].mean(axis=0)
    size = np.sqrt(np.square(table).mean(axis=0))
    kept = np.flatnonzero(size > 1e-9)[: max(1, len(table) // _STEPS_A_FEATURE)].tolist()
    return [names[k] for k in kept], [causes[k] for k in kept], table[:, kept] / size[kept]


def _as_numbers(actions: npt.NDArray[Any]) -> tuple[Array, Sequence[str]]:
    """Actions as columns: continuous ones as they are, discrete ones as 0 or 1 for each but the first."""
    if actions.ndim == 1:
        choices = np.unique(actions)[1:]
        return (actions[:, None] == choices).astype(np.float64), [f"action {choice}" for choice in choices.tolist()]
    flat = actions.reshape(len(actions), -1).astype(np.float64)
    return flat, [f"action {k}" for k in range(flat.shape[1])]


def _chance(z: Array, foreign: Array) -> tuple[float, int, float, float]:
    """A robust regression of innovations on forces: p-value, the strongest force, its pull, and its size if alone.

    Args:
        z: Innovations, ``(T, n)``.
        foreign: Their slopes by forces, less what parameters explain, in units of all, ``(T n, k)``.
    """
    squares, vectors = np.linalg.eigh(foreign.T @ foreign)
    basis = foreign @ (vectors[:, squares > _FOREIGN**2] / np.sqrt(squares[squares > _FOREIGN**2]))
    scores = (basis * z.reshape(-1, 1)).reshape(*z.shape, basis.shape[1]).sum(axis=1)
    solved, _, rank, _ = np.linalg.lstsq(scores, np.ones(len(z)), rcond=1e-8)
    p = float(scipy.stats.chi2.sf(np.square(scores @ solved).sum(), rank)) if rank else 1.0
    norms = np.maximum(np.linalg.norm(foreign, axis=0), _FOREIGN)
    pulls = np.abs(foreign.T @ z.ravel()) / norms
    strongest = int(np.argmax(pulls))
    return p, strongest, float(pulls[strongest]), float(pulls[strongest] / norms[strongest])


def _foreign(columns: Array, own: Array) -> Array:
    """Columns ``(count, k)`` without what others, ``(count, parameters)``, explain."""
    return np.asarray(columns - own @ np.linalg.lstsq(own, columns, rcond=1e-10)[0])


def _absorbed(z: Array, own: Array, columns: Array) -> Array:
    """The covariance that parameters need because they may have taken up forces as large as those found.

    With forces of this size in the model, the estimate would move and be less certain.

    Args:
        z: Innovations, ``(T, n)``.
        own: Their slopes by parameters, ``(T n, parameters)``.
        columns: Their slopes by forces in units as large as those found, ``(T n, k)``.
    """
    size = own.shape[1]
    together = np.concatenate([own, columns], axis=1)
    weights = np.append(np.full(size, _PRECISION), np.ones(columns.shape[1]))
    covariance = np.linalg.inv(together.T @ together + np.diag(weights))
    moved = (covariance @ (together.T @ z.ravel()))[:size]
    alone = np.linalg.inv(own.T @ own + _PRECISION * np.eye(size))
    return np.asarray(covariance[:size, :size] - alone + np.outer(moved, moved))


# ---- differences between episodes ------------------------------------------------------------------------------------


def _by_episode(motion: LoggedMotion, estimate: Estimate, z: Array) -> tuple[Array, Array]:
    """Each episode's score ``(episodes, parameters)`` and information ``(episodes, parameters, parameters)``."""
    parts = [motion.episode == episode for episode in np.unique(motion.episode)]
    slopes = [estimate.slopes[rows].reshape(-1, len(estimate.u)) for rows in parts]
    scores = [-one.T @ z[rows].ravel() for one, rows in zip(slopes, parts, strict=True)]
    return np.stack(scores), np.stack([one.T @ one for one in slopes])


def _differ(scores: Array, information: Array) -> tuple[float, Array]:
    """The p-value of a score test of equal parameters, and that of each episode against all others."""
    whole = information.sum(axis=0)
    centered = scores - np.einsum("eij,jk,k->ei", information, np.linalg.pinv(whole), scores.sum(axis=0))
    alone = []
    for score, own in zip(centered, information, strict=True):
        values, vectors = np.linalg.eigh(own - own @ np.linalg.pinv(whole) @ own)
        good = values > max(1e-6 * values.max(), _PRECISION)
        statistic = float(np.square((vectors[:, good].T @ score) / np.sqrt(values[good])).sum())
        alone.append(float(scipy.stats.chi2.sf(statistic, good.sum())) if good.any() else 1.0)
    statistic, degrees = 0.0, -int((np.linalg.eigvalsh(whole) > _PRECISION).sum())
    for score, own in zip(centered, information, strict=True):
        values, vectors = np.linalg.eigh(own)
        good = values > max(1e-6 * values.max(), _PRECISION)
        statistic += float(np.square((vectors[:, good].T @ score) / np.sqrt(values[good])).sum())
        degrees += int(good.sum())
    together = float(scipy.stats.chi2.sf(statistic, degrees)) if degrees > 0 else 1.0
    return min(1.0, 2.0 * together, *(2.0 * len(alone) * p for p in alone)), np.array(alone)


def _contradiction(
    motion: LoggedMotion, estimate: Estimate, z: Array, by_parameters: Array, changes: Array
) -> Contradiction | None:
    """How parameters differ between episodes; None for one episode, or without parameters."""
    scores, information = _by_episode(motion, estimate, z) if len(estimate.u) else (np.zeros((0, 0)), np.zeros(0))
    if len(scores) < 2:
        return None
    p, alone = _differ(scores, information)
    first, odd = int(np.argmin(alone)), None
    rest = np.delete(np.arange(len(scores)), first)
    if p < LEVEL / 2 and len(rest) > 1 and _differ(scores[rest], information[rest])[0] >= LEVEL / 2:
        odd = first
        scores = np.stack([scores[first], scores[rest].sum(axis=0)])
        information = np.stack([information[first], information[rest].sum(axis=0)])
    spreads = np.linalg.inv(information + _PRECISION * np.eye(len(estimate.u)))
    moved = np.einsum("eij,ej->ei", spreads, scores)
    certain = np.einsum("eii->ei", spreads)
    name = int(np.argmax(np.ptp(moved, axis=0) / np.sqrt(certain.sum(axis=0))))
    most = int(np.argmax(np.abs(moved[:, name])))
    shares = np.sqrt(np.square(by_parameters @ moved[most]).mean(axis=0)) / np.maximum(changes, 1e-300)
    points = np.clip(estimate.u + moved, 0.0, 1.0)
    return Contradiction(p=p, odd=odd, name=name, points=points, share=float(shares[changes > 0.0].max(initial=0.0)))


def _sandwich(motion: LoggedMotion, estimate: Estimate, z: Array) -> Array:
    """The covariance of the estimate by differences between episodes, with t-distributed tails for few of them."""
    scores, information = _by_episode(motion, estimate, z)
    spread = np.linalg.inv(information.sum(axis=0) + _PRECISION * np.eye(scores.shape[1]))
    count, moved = len(scores), (scores - scores.mean(axis=0)) @ spread
    tails = scipy.stats.t.ppf(0.95, count - 1) / scipy.stats.norm.ppf(0.95)
    return np.asarray(moved.T @ moved * count / (count - 1) * tails**2)
