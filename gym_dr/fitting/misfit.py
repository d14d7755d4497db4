"""A test of the model: whether residuals are consistent with noise.

If the model is right, innovations are independent of everything before them: states, actions, earlier innovations. So a
regression on those finds nothing. What the simulator lacks (friction, a delay, another time step) depends on them.
The statistic of Wooldridge (1991, "On the application of robust, regression-based diagnostics") holds also when noise
is larger in some steps than in others.
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
_CLEAR = 0.01  # share of noise in a state's variance up to which the state is a feature
_ROUNDING = 1e-5  # noise over a coordinate's standard deviation that is taken for rounding
_NEGLIGIBLE = 0.01  # predictable share of the assumed variance that is ignored
# the same for random simulators, whose noise is not normal, so that innovations are not quite independent
_NEGLIGIBLE_RANDOM = 0.1
_FOREIGN = 0.2  # share of a force's effect that no parameter explains, from which it counts
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
    """Tests whether innovations depend on what was known before."""
    names, features = _features(motion, estimate)
    follows = ~motion.begins
    rows = follows if follows.mean() > 0.5 else np.ones_like(follows)
    features = features[rows]
    most = max(1, len(features) // _STEPS_A_FEATURE)
    names, features = names[:most], features[:, :most]
    found = []
    negligible = _NEGLIGIBLE if estimate.chains.simulated is None else _NEGLIGIBLE_RANDOM
    measured = motion.seen
    noticed = np.sqrt(estimate.noise.measured + estimate.noise.process) > _ROUNDING * motion.scale
    for k, coordinate in enumerate(motion.coordinates):
        if measured[k] and noticed[k]:
            z = np.clip(estimate.innovations[rows, k], -_LARGEST, _LARGEST)
            chance = _chance(z, features) if _predicted(z, features) > negligible else 1.0
            found.append((chance, coordinate.name, k))
    forces = _forces(motion, estimate)
    found += [(chance, motion.coordinates[k].name, k) for k, (chance, _, _) in forces.items()]
    if not found:  # simulation and log agree to the last digits
        return Misfit(coordinate="", feature="", p=1.0, episodes_p=float("nan"), explained=0.0)
    p, name, k = min(found)
    if k in forces:
        feature, explained = forces[k][1:]
        p = min(1.0, p * len(found))
        differ = _between_episodes(motion, estimate)
        return Misfit(coordinate=name, feature=feature, p=p, episodes_p=differ, explained=explained)
    z = np.clip(estimate.innovations[rows, k], -_LARGEST, _LARGEST)
    pulls = np.abs(features.T @ z) / np.sqrt(np.square(features * z[:, None]).sum(axis=0) + 1e-300)
    return Misfit(
        coordinate=name,
        feature=names[int(np.argmax(pulls))],
        p=min(1.0, p * len(found)),
        episodes_p=_between_episodes(motion, estimate),
        explained=_predicted(z, features),
    )


def _forces(motion: LoggedMotion, estimate: Estimate) -> dict[int, tuple[float, str, float]]:
    """Tests whether forces that the model lacks act on hidden coordinates, by what they would add to all innovations.

    Returns:
        By coordinate the p-value, the strongest force, and its share of the innovations' variance.
    """
    found = {}
    known = estimate.filter.expected(estimate.deltas) + estimate.path.ends[:, motion.places]
    before = np.roll(known, 1, axis=0)
    before[motion.begins] = estimate.deltas.first + estimate.path.states[motion.begins][:, motion.places]
    actions, labels = _as_numbers(motion.actions)
    z = np.clip(estimate.innovations, -_LARGEST, _LARGEST).ravel()
    own = estimate.slopes.reshape(len(z), -1)
    for k in np.flatnonzero(estimate.forced & ~motion.seen).tolist():
        speed = before[:, k : k + 1]
        names = ["", *labels, *(c.name for c in motion.coordinates), f"the direction of {motion.coordinates[k].name}"]
        features = np.concatenate([np.ones_like(speed), actions, before, np.sign(speed)], axis=1)
        drift = np.zeros((*estimate.innovations.shape, len(names)))
        drift[:, k] = features / np.maximum(np.abs(features).max(axis=0), 1e-300)
        columns = estimate.filter.slopes(drift).reshape(len(z), -1)
        columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        columns -= own @ np.linalg.lstsq(own, columns, rcond=1e-10)[0]
        basis, values, _ = np.linalg.svd(columns, full_matrices=False)
        basis = basis[:, values > _FOREIGN]
        explained = float(np.square(basis.T @ z).sum())
        strengths = np.abs(columns.T @ z)
        chance = float(scipy.stats.chi2.sf(explained, basis.shape[1]))
        found[k] = chance, names[int(np.argmax(strengths))], explained / int(motion.observed.sum())
    return found


def _predicted(z: Array, features: Array) -> float:
    """The variance of innovations ``(T,)``, of an assumed 1, that features ``(T, k)`` predict."""
    solved = np.linalg.lstsq(features, z, rcond=None)[0]
    return float(np.square(features @ solved).mean())


def _chance(z: Array, features: Array) -> float:
    """The p-value of a robust regression of innovations ``(T,)`` on features ``(T, k)``."""
    scores = features * z[:, None]
    scale = np.sqrt(np.square(scores).mean(axis=0))
    scores = scores[:, scale > 1e-9] / scale[scale > 1e-9]
    if not scores.shape[1]:
        return 1.0
    solved, _, rank, _ = np.linalg.lstsq(scores, np.ones(len(z)), rcond=1e-8)
    statistic = float(np.square(scores @ solved).sum())
    return float(scipy.stats.chi2.sf(statistic, rank))


def _features(motion: LoggedMotion, estimate: Estimate) -> tuple[list[str], Array]:
    """Standardized features that are known before each step: names and ``(T, k)``; the first is constant and nameless.

    States that are mostly noise are left out: where episodes begin alike, measured states are mostly errors.
    """
    innovations = estimate.innovations
    measured = motion.seen
    sharp = measured & (estimate.noise.measured < _CLEAR * np.square(motion.scale))
    clear = np.flatnonzero(sharp).tolist()
    follows = ~motion.begins
    states = np.stack([np.zeros(len(motion)), *(_coordinate(motion, k) for k in clear)], axis=1)[:, 1:]
    actions, labels = _as_numbers(motion.actions)
    earlier = np.where(follows[:, None], np.roll(actions, 1, axis=0), 0.0)
    residuals = np.where(follows[:, None], np.roll(np.clip(innovations, -_LARGEST, _LARGEST), 1, axis=0), 0.0)
    every, shown = [c.name for c in motion.coordinates], np.flatnonzero(measured).tolist()
    named = [every[k] for k in clear]
    columns = [
        (labels, actions),
        (named, states),
        ([f"{label} one step before" for label in labels], earlier),
        ([f"the residual of {every[k]} one step before" for k in shown], residuals[:, shown]),
        ([f"the direction of {name}" for name in named], np.sign(states)),
    ]
    names = [name for group, _ in columns for name in group]
    table = np.concatenate([values for _, values in columns], axis=1)
    spread = table.std(axis=0)
    varying = spread > 1e-9
    table = (table[:, varying] - table[:, varying].mean(axis=0)) / spread[varying]
    kept = [name for name, keep in zip(names, varying, strict=True) if keep]
    return ["", *kept], np.concatenate([np.ones((len(table), 1)), table], axis=1)


def _coordinate(motion: LoggedMotion, k: int) -> Array:
    """The measured values of a coordinate before each step, angles between -pi and pi."""
    values = motion.before[:, motion.places[k]]
    values = np.where(np.isnan(values), np.nanmean(values), values)
    return np.remainder(values + np.pi, 2 * np.pi) - np.pi if motion.coordinates[k].angle else values


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
