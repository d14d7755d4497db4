"""Least squares on simulated stretches of a log, which begin in free states (multiple shooting).

A likelihood explains each step by the noise of that step. Where a model errs a little everywhere, parameters that
predict the next step best are not those that predict the next second best. Here a simulation runs over whole stretches
and the sum of squared differences from what is measured decides, each coordinate in units of its size (Bock 1981,
"Numerical treatment of inverse problems"). States in which stretches begin are unknowns, eliminated from the normal
equations stretch by stretch. Errors of parameters follow from how their gradient differs between episodes (the sandwich
of White 1982, "Maximum likelihood estimation of misspecified models"), so that residuals may depend on each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.likelihood import EDGE, Likelihood
from gym_dr.fitting.motion import evenly
from gym_dr.fitting.particles import PARTICLES
from gym_dr.fitting.varying import draw_points

STRETCH = 1.0  # s, of a stretch
SIMULATED = 20_000_000  # steps of the environment, about
_FEWEST = 10  # logged steps of a stretch
_SHORTER = 5.0  # how many times shorter the first stretches are, in which hardly any motion is chaotic
_ROUNDS = 20  # of Levenberg-Marquardt, at most
_TRIES = 6  # of a round
_CONVERGED = 1e-5  # relative decrease of the squares
_STEP = 1e-4  # of points, and of states in units of their size, for derivatives
_WEAK = 1e-3  # weight of where a stretch begins, in units of coordinates' sizes, beside one measured number
_STEEP = 1e4  # largest derivative, of motion that has not diverged
_FAR = 1e3  # sizes of a coordinate from which on a difference says no more
_GROUPS = 12  # of stretches, at least, whose gradients are compared


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretches:
    """S stretches of a log, of at most L steps."""

    rows: Indices  # (S, L) steps of the log; the last one again where a stretch is over
    lengths: Indices  # (S,)

    @property
    def running(self) -> Mask:
        """Which steps belong to a stretch, ``(S, L)``."""
        return np.arange(self.rows.shape[1]) < self.lengths[:, None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shot:
    """The parameters with the least squares over stretches."""

    u: Array  # (parameters,) point of the prior
    precision: Array  # (parameters, parameters), of u
    groups: int  # of stretches, by which it was estimated


def stretches_of(starts: Indices, lengths: Indices) -> Stretches:
    """Stretches from their first rows and lengths, ``(S,)`` each."""
    number = np.arange(lengths.max(initial=1))
    return Stretches(rows=starts[:, None] + np.minimum(number, lengths[:, None] - 1), lengths=lengths)


def cut(begins: Mask, durations: Array, seconds: float, most: int) -> Stretches:
    """Cuts a log into stretches of about the same duration, without breaks inside.

    Args:
        begins: Which steps are the first of their chain, ``(T,)``.
        durations: Of the steps, ``(T,)``.
        seconds: Of a stretch, in the same unit; it has 10 steps or more where the chain is long enough.
        most: Steps to use, at most: stretches spread over the log.
    """
    starts: list[int] = []
    lengths: list[int] = []
    edges = np.append(np.flatnonzero(begins), len(begins)).tolist()
    for begin, end in itertools.pairwise(edges):
        count = min(round(float(durations[begin:end].sum()) / seconds), (end - begin) // _FEWEST)
        places = np.linspace(begin, end, max(count, 1) + 1).astype(np.int64)
        starts += places[:-1].tolist()
        lengths += np.diff(places).tolist()
    kept = np.flatnonzero(np.array(lengths) > 1) if max(lengths) > 1 else np.arange(len(lengths))
    count = max(1, min(len(kept), int(most / np.mean(lengths))))
    chosen = kept[evenly(len(kept), count)]
    return stretches_of(np.array(starts)[chosen], np.array(lengths)[chosen])


def rolled(likelihood: Likelihood, rows: Indices, first: Array, points: Array) -> Array:
    """Simulated states after the steps of K stretches, ``(K, L, size)``.

    Args:
        likelihood: Of the log.
        rows: Steps of the log, ``(K, L)``.
        first: States in which the stretches begin, ``(K, size)``.
        points: Of the prior, ``(K, parameters)``.
    """
    motion, replay, simulator = likelihood.motion, likelihood.replay, likelihood.simulator
    params = {**likelihood.prior.known, **likelihood.forced}
    values = likelihood.prior.values(points) if points.shape[1] else {}
    found = np.empty((*rows.shape, first.shape[1]))
    for start in range(0, len(rows), replay.num_envs):
        part = slice(start, start + replay.num_envs)
        states, own = first[part], {name: drawn[part] for name, drawn in values.items()}
        for t, here in enumerate(rows[part].T):
            after = simulator.predict(
                states,
                motion.actions[here],
                params,
                holds=motion.holds[here],
                known={**own, **{name: told[here] for name, told in motion.known.items()}},
                phases=None if likelihood.phases is None else likelihood.phases[here],
                seed=t * replay.num_envs,
            )
            states = np.where(np.isfinite(after), after, states)  # one that diverged stays where it was
            found[part, t] = states
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalEquations:
    """The normal equations of all stretches: squares, gradients and Hessians by parameters and by first states."""

    squares: float
    numbers: int  # of which they are
    gradient: Array  # (parameters,)
    first_gradient: Array  # (S, n)
    hessian: Array  # (parameters, parameters)
    mixed: Array  # (S, parameters, n)
    first_hessian: Array  # (S, n, n)
    scores: Array  # (S, parameters): each stretch's share of the gradient, first states eliminated

    def step(self, damping: float, u: Array, moving: Mask) -> tuple[Array, Array]:
        """The step of Levenberg-Marquardt inside of the prior, ``(parameters,)``, and that of the states, ``(S, n)``"""
        extra = np.einsum("sii->si", self.first_hessian)
        inner = self.first_hessian + damping * np.eye(extra.shape[1]) * extra[:, None]
        by_first = np.linalg.solve(inner, np.swapaxes(self.mixed, 1, 2))  # (S, n, parameters)
        alone = np.linalg.solve(inner, self.first_gradient[:, :, None])[:, :, 0]
        hessian = self.hessian - np.einsum("spn,snq->pq", self.mixed, by_first)
        gradient = self.gradient - np.einsum("spn,sn->p", self.mixed, alone)
        size = self.hessian.diagonal()
        hessian = hessian + np.diag(damping * size + 1e-9 * size.max(initial=1e-300))
        step, free = np.zeros(len(u)), moving.copy()
        low, high = 10 * EDGE - u, 1.0 - 10 * EDGE - u
        while free.any():  # those that leave the prior end at its bound, and the others follow
            fixed = hessian[np.ix_(free, ~free)] @ step[~free]
            step[free] = -np.linalg.solve(hessian[np.ix_(free, free)], gradient[free] + fixed)
            out = free & ((step < low) | (step > high))
            if not out.any():
                break
            step[out], free = np.clip(step, low, high)[out], free & ~out
        return step, -alone - by_first @ step


class Shooting:
    """Least squares over stretches of a log."""

    def __init__(self, likelihood: Likelihood, stretches: Stretches, scale: Array, around: Array) -> None:
        """Prepares it.

        Args:
            likelihood: Of the log.
            stretches: Of it.
            scale: Size of each coordinate, ``(n,)``.
            around: States near which the stretches begin, ``(S, size)``.
        """
        self.likelihood, self.stretches, self.scale, self.around = likelihood, stretches, scale, around
        motion, rows = likelihood.motion, stretches.rows
        self._measured = motion.measured[rows]
        self._counts = motion.observed[rows] & stretches.running[:, :, None]  # (S, L, n)
        before = np.roll(motion.observed, 1, axis=0)
        before[motion.begins] = motion.first_observed
        self._begun, self._counts_first = motion.before[rows[:, 0]], before[rows[:, 0]]
        self.moving = likelihood.moving.copy()

    def least(
        self, u: Array, first: Array, rounds: int = _ROUNDS, budget: float = np.inf
    ) -> tuple[Array, Array, NormalEquations]:
        """Levenberg-Marquardt from parameters ``(parameters,)`` and first states ``(S, size)``, within a budget."""
        simulator, damping, normal = self.likelihood.simulator, 1e-3, self._normal(u, first)
        last, gained = simulator.steps + budget, 1.0
        for _ in range(rounds):
            for _ in range(_TRIES):
                step, moved = normal.step(damping, u, self.moving)
                tried = u + step, self.likelihood.replay.add(first, moved * self.scale)
                found = self._normal(*tried)
                if better := found.squares <= normal.squares:
                    gained = 1.0 - found.squares / max(normal.squares, 1e-300)
                    (u, first), normal, damping = tried, found, max(damping / 8.0, 1e-9)
                if better or simulator.steps > last:
                    break
                damping *= 8.0
            if not better or gained < _CONVERGED or simulator.steps > last:
                break
        return u, first, normal

    def _many(self, u: Array) -> Array:
        return np.repeat(u[None], len(self.stretches.lengths), axis=0)

    def _differences(self, states: Array, origins: Array) -> Array:
        """Of states ``(..., size)``, in units of coordinates' sizes, ``(..., n)``."""
        size = states.shape[-1]
        found = self.likelihood.replay.difference(states.reshape(-1, size), origins.reshape(-1, size)) / self.scale
        return np.asarray(np.nan_to_num(found).reshape(*states.shape[:-1], -1))

    def _residuals(self, states: Array, first: Array) -> tuple[Array, Array, Array]:
        """Over the steps ``(S, L, n)``, at the beginning ``(S, n)``, and from where it was thought to be ``(S, n)``."""
        along = np.where(self._counts, np.clip(self._differences(states, self._measured), -_FAR, _FAR), 0.0)
        begun = np.where(self._counts_first, self._differences(first, self._begun), 0.0)
        return along, begun, _WEAK * self._differences(first, self.around)

    def _normal(self, u: Array, first: Array) -> NormalEquations:
        count, n = len(first), len(self.scale)
        points, firsts = [self._many(u)], [first]
        sizes = np.where(u < 0.5, _STEP, -_STEP)
        chosen = np.flatnonzero(self.moving).tolist()
        for k in chosen:
            points.append(self._many(u + sizes[k] * (np.arange(len(u)) == k)))
            firsts.append(first)
        for k in range(n):
            points.append(points[0])
            deltas = np.zeros((count, n))
            deltas[:, k] = _STEP * self.scale[k]
            firsts.append(self.likelihood.replay.add(first, deltas))
        rows = np.tile(self.stretches.rows, (len(points), 1))
        states = rolled(self.likelihood, rows, np.concatenate(firsts), np.concatenate(points))
        states = states.reshape(len(points), count, *states.shape[1:])
        along, begun, thought = self._residuals(states[0], first)
        slopes = [
            np.clip(self._differences(one, states[0]) / _STEP, -_STEEP, _STEEP) * self._counts for one in states[1:]
        ]
        by_point = np.zeros((len(u), *along.shape))
        for k, slope in zip(chosen, slopes, strict=False):
            by_point[k] = slope * np.sign(sizes[k])
        by_first = np.zeros((n, *along.shape))
        by_first[:] = slopes[len(chosen) :]
        near = np.einsum("sk,kj->skj", self._counts_first + _WEAK**2, np.eye(n))
        hessian = np.einsum("psln,qsln->pq", by_point, by_point, optimize=True)
        mixed = np.einsum("psln,ksln->spk", by_point, by_first, optimize=True)
        inner = np.einsum("jsln,ksln->sjk", by_first, by_first, optimize=True) + near
        inner += 1e-10 * np.einsum("sii->s", inner)[:, None, None] * np.eye(n)  # rounding must not make it singular
        own = np.einsum("psln,sln->sp", by_point, along)
        by_state = np.einsum("ksln,sln->sk", by_first, along) + begun + _WEAK * thought
        eliminated = np.linalg.solve(inner, by_state[:, :, None])[:, :, 0]
        return NormalEquations(
            squares=float(sum(np.square(part).sum() for part in (along, begun, thought))),
            numbers=int(self._counts.sum() + self._counts_first.sum()),
            gradient=own.sum(axis=0),
            first_gradient=by_state,
            hessian=hessian,
            mixed=mixed,
            first_hessian=inner,
            scores=own - np.einsum("spk,sk->sp", mixed, eliminated),
        )


def shoot(
    likelihood: Likelihood,
    estimate: Estimate,
    durations: Array,
    seconds: float,
    budget: float,
    tell: Callable[[str], None] = lambda text: None,
) -> Shot:
    """Least squares over stretches of a log, from the likelihood's estimate.

    Where states are hidden, that may be far off, so the middle of the prior is tried as well. Short stretches come
    first then: the squares of long ones may have many minima.

    Args:
        likelihood: Of the log.
        estimate: Its maximum, whose smoothed states the stretches first begin in.
        durations: Of the steps, ``(T,)``.
        seconds: Of a stretch, in the same unit.
        budget: Simulated steps, about; a longer log is not used whole.
        tell: Called with what is done.
    """
    motion, starts = likelihood.motion, [estimate.u]
    unknown = 1 + len(estimate.u) + len(estimate.scale)
    most = int(budget / (_ROUNDS * unknown * motion.holds.mean()))
    if not motion.seen.all():
        short = _of(likelihood, estimate, cut(motion.begins, durations, seconds / _SHORTER, most // 2))
        points = (estimate.u, np.full(len(estimate.u), 0.5))
        begun = [short.least(u, short.around, _ROUNDS, budget / 5) for u in points]
        starts.append(min(begun, key=lambda found: found[2].squares)[0])
    whole = _of(likelihood, estimate, cut(motion.begins, durations, seconds, most))
    tell(f"simulating {len(whole.stretches.lengths):,} stretches")
    found = [whole.least(u, whole.around, _ROUNDS, 0.6 * budget / len(starts)) for u in starts]
    u, _, normal = min(found, key=lambda one: one[2].squares)
    precision, groups = _precision(normal, motion.episode[whole.stretches.rows[:, 0]])
    return Shot(u=u, precision=precision, groups=groups)


def _of(likelihood: Likelihood, estimate: Estimate, stretches: Stretches) -> Shooting:
    return Shooting(likelihood, stretches, estimate.scale, estimate.smoothed.states[stretches.rows[:, 0]])


def _precision(normal: NormalEquations, episode: Indices) -> tuple[Array, int]:
    """The inverse of the sandwich covariance, ``(parameters, parameters)``, and the groups that it comes from.

    Groups are episodes, or blocks of them if there are few. A few groups do not show all directions, so their
    covariance is drawn to one that widens all directions alike, at least by what independent residuals would.

    Args:
        normal: At the minimum.
        episode: Of each stretch, ``(S,)``.
    """
    inner = np.linalg.solve(normal.first_hessian, np.swapaxes(normal.mixed, 1, 2))
    hessian = normal.hessian - np.einsum("spn,snq->pq", normal.mixed, inner)
    size = len(hessian)
    groups = _groups(episode)
    count = int(groups.max()) + 1
    live = hessian.diagonal() > 1e-12 * max(hessian.diagonal().max(initial=0.0), 1e-300)
    precision = np.zeros((size, size))
    if not live.any():
        return precision, count
    h = hessian[np.ix_(live, live)]
    h = h + 1e-10 * np.diag(h.diagonal())
    sums = np.stack([normal.scores[groups == g][:, live].sum(axis=0) for g in range(count)])
    centered = sums - sums.mean(axis=0)
    meat = centered.T @ centered * count / max(count - 1, 1)
    free = max(normal.numbers - len(h) - normal.first_gradient.size, 1)
    alike = h * max(float(np.trace(np.linalg.solve(h, meat))) / len(h), normal.squares / free, 1e-300)
    meat = (count * meat + len(h) * alike) / (count + len(h))
    precision[np.ix_(live, live)] = h @ np.linalg.solve(meat, h)
    return 0.5 * (precision + precision.T), count


def _groups(episode: Indices) -> Indices:
    """The group of each stretch, ``(S,)``: its episode, or a block of neighbors in it."""
    names, counts = np.unique(episode, return_counts=True)
    each = 1 if len(names) >= _GROUPS else math.ceil(_GROUPS / len(names))
    groups, used = np.empty(len(episode), np.int64), 0
    for name, count in zip(names, counts, strict=True):
        blocks = min(each, int(count))
        groups[episode == name] = used + np.arange(count) * blocks // count
        used += blocks
    return groups


def shot_draws(shot: Shot, rng: np.random.Generator) -> Array:
    """Draws around the least squares, ``(count, parameters)``: of Student's t, for as many groups as there are.

    Parameters that no stretch depends on keep their prior.
    """
    live = shot.precision.diagonal() > 0.0
    points = rng.random((PARTICLES, len(shot.u)))
    if live.any():
        covariance: Array = np.asarray(np.linalg.inv(shot.precision[np.ix_(live, live)]), np.float64)
        nothing = np.zeros_like(covariance)
        points[:, live] = draw_points(shot.u[live], covariance, nothing, PARTICLES, rng, max(shot.groups - 1, 1))
    return points
