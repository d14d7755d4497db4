"""A score test of the model: whether forces that it lacks would explain innovations.

If the model is right, innovations are independent of everything before them. A missing force (friction, a delay, a
longer step) adds to a state after each step, and a filter passes that on to all later innovations, which are regressed
on it. The statistic of Wooldridge (1991, "On the application of robust, regression-based diagnostics") holds also when
noise is larger in some steps than in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.stats

from gym_dr.arrays import Array
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.motion import LoggedMotion

LEVEL = 0.01  # share of right models that are called suspicious
_STEPS_A_FEATURE = 8  # at least, of a regression
_ROUNDING = 1e-5  # noise over a coordinate's standard deviation that is taken for rounding
_NEGLIGIBLE = 0.01  # predictable share of the assumed variance that is ignored
# the same for random simulators, whose noise is not normal, so that innovations are not quite independent
_NEGLIGIBLE_RANDOM = 0.1
_FOREIGN = 0.2  # share of a force's effect that no parameter and no other force explains, from which it counts
_END = 1e-4  # distance of a point from an end of its range, up to which it cannot move there
_LARGEST = 5.0  # standard deviations at which innovations are clipped


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """Evidence against a model."""

    coordinate: str  # whose residuals are least consistent with noise
    feature: str  # on which they depend most; empty if their mean is not 0
    p: float  # p-value over all coordinates
    episodes_p: float  # p-value of equal parameters in all episodes; nan for one episode
    explained: float  # estimated share of that coordinate's variance

    def suspicious(self, varies: bool) -> bool:
        """Whether residuals are not consistent with noise, given whether parameters may vary between episodes."""
        return self.p < LEVEL or self.episodes_differ(varies)

    def episodes_differ(self, varies: bool) -> bool:
        """Whether episodes have different parameters although they may not."""
        return not varies and self.episodes_p < LEVEL / 2


def find_misfit(motion: LoggedMotion, estimate: Estimate) -> Misfit:
    """Tests whether the model lacks forces, by what they would add to all later innovations.

    A force acts in a single coordinate, in proportion to what was known before each step. What parameters could do as
    well is taken out.
    """
    names, features = _features(motion, estimate)
    z = np.clip(estimate.innovations, -_LARGEST, _LARGEST)
    free = (estimate.u > _END) & (estimate.u < 1.0 - _END)
    own = estimate.slopes[..., free].reshape(z.size, -1)
    negligible = _NEGLIGIBLE if estimate.chains.simulated is None else _NEGLIGIBLE_RANDOM
    noticed = np.sqrt(estimate.noise.measured + estimate.noise.process) > _ROUNDING * estimate.scale
    most = max(1, int(motion.observed.any(axis=1).sum()) // _STEPS_A_FEATURE)
    found = []
    for k in np.flatnonzero((motion.seen | estimate.forced) & noticed).tolist():
        drift = np.zeros((*z.shape, min(most, len(names))))
        drift[:, k] = features[:, :most]
        columns = estimate.filter.slopes(drift).reshape(z.size, -1)
        columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        columns -= own @ np.linalg.lstsq(own, columns, rcond=1e-10)[0]
        foreign = np.flatnonzero(np.linalg.norm(columns, axis=0) > _FOREIGN)
        basis, values, _ = np.linalg.svd(columns[:, foreign], full_matrices=False)
        basis = basis[:, values > _FOREIGN]
        explained = float(np.square(basis.T @ z.ravel()).sum()) / int(motion.observed.sum())
        scores = (basis * z.reshape(-1, 1)).reshape(*z.shape, -1).sum(axis=1)
        pulls = np.abs(columns[:, foreign].T @ z.ravel())
        feature = names[foreign[np.argmax(pulls)]] if len(foreign) else ""
        found.append((_chance(scores) if explained > negligible else 1.0, -explained, k, feature))
    if not found:  # simulation and log agree to the last digits
        return Misfit(coordinate="", feature="", p=1.0, episodes_p=float("nan"), explained=0.0)
    p, explained, k, feature = min(found)
    name = motion.coordinates[k].name
    return Misfit(
        coordinate=name,
        feature=feature,
        p=min(1.0, p * len(found)),
        episodes_p=_between_episodes(motion, estimate),
        explained=-explained,
    )


def _chance(scores: Array) -> float:
    """The p-value of scores ``(T, k)`` whose means are 0, whatever their variances."""
    if not scores.shape[1]:
        return 1.0
    solved, _, rank, _ = np.linalg.lstsq(scores, np.ones(len(scores)), rcond=1e-8)
    return float(scipy.stats.chi2.sf(float(np.square(scores @ solved).sum()), rank))


def _features(motion: LoggedMotion, estimate: Estimate) -> tuple[list[str], Array]:
    """What is known before each step: names and ``(T, k)``; the first is constant and nameless.

    States are as expected from all earlier measurements.
    """
    expected = estimate.filter.expected(estimate.deltas) + estimate.path.ends[:, motion.places]
    before = np.roll(expected, 1, axis=0)
    before[motion.begins] = estimate.deltas.first + estimate.path.states[motion.begins][:, motion.places]
    turning = [coordinate.angle for coordinate in motion.coordinates]
    states = np.where(turning, np.remainder(before + np.pi, 2 * np.pi) - np.pi, before)
    actions, labels = _as_numbers(motion.actions)
    named = [coordinate.name for coordinate in motion.coordinates]
    columns = [
        ([""], np.ones((len(motion), 1))),
        (labels, actions),
        (named, states),
        ([f"{label} one step before" for label in labels], _earlier(motion, actions)),
        ([f"the direction of {name}" for name in named], np.sign(states)),
    ]
    names = [name for group, _ in columns for name in group]
    table = np.concatenate([values for _, values in columns], axis=1)
    table[:, 1:] -= table[:, 1:].mean(axis=0)
    spread = np.sqrt(np.square(table).mean(axis=0))
    kept = np.flatnonzero(spread > 1e-9)
    return [names[k] for k in kept], table[:, kept] / spread[kept]


def _earlier(motion: LoggedMotion, values: Array) -> Array:
    """Values ``(T, k)`` one step before; 0 where chains begin."""
    return np.where(motion.begins[:, None], 0.0, np.roll(values, 1, axis=0))


def _as_numbers(actions: npt.NDArray[Any]) -> tuple[Array, Sequence[str]]:
    """Actions as columns: continuous ones as they are, discrete ones as 0 or 1 for each but the first."""
    if actions.ndim == 1:
        choices = np.unique(actions)[1:]
        return (actions[:, None] == choices).astype(np.float64), [f"action {choice}" for choice in choices.tolist()]
    flat = actions.reshape(len(actions), -1).astype(np.float64)
    return flat, [f"action {k}" for k in range(flat.shape[1])]


def _between_episodes(motion: LoggedMotion, estimate: Estimate) -> float:
    """The p-value of a score test of equal parameters in all episodes."""
    episodes = np.unique(motion.episode)
    if len(episodes) < 2 or not len(estimate.u):
        return float("nan")
    statistic, degrees = 0.0, 0
    for episode in episodes:
        rows = motion.episode == episode
        slopes = estimate.slopes[rows].reshape(-1, len(estimate.u))
        score = slopes.T @ np.clip(estimate.innovations[rows], -_LARGEST, _LARGEST).reshape(-1)
        values, vectors = np.linalg.eigh(slopes.T @ slopes)
        good = values > max(1e-6 * values.max(), 12.0)
        statistic += float(np.square((vectors[:, good].T @ score) / np.sqrt(values[good])).sum())
        degrees += int(good.sum())
    total = np.linalg.eigvalsh(estimate.information)
    degrees -= int((total > max(1e-6 * total.max(), 12.0)).sum())
    return float(scipy.stats.chi2.sf(statistic, degrees)) if degrees > 0 else float("nan")
