"""The parameters of one system: least squares over whole episodes, with errors of measurement in every state.

First the parameters alone, with robust weights, as if states were measured exactly. Then, in turn: linearize each step
at the smoothed states, find the sizes of the errors by maximum likelihood, let scipy's least squares move the
parameters, and smooth the states again (Gauss-Newton for states and parameters together, see ``chain.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.optimize

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.chain import Factor, Links, Sizes
from gym_dr.fitting.motion import LoggedMotion, stretches
from gym_dr.fitting.prior import Prior
from gym_dr.fitting.simulator import Simulator
from gym_dr.fitting.straight import Straight

_ROUNDS = 12  # of the second part, at most
_CONVERGED = 0.05  # standard deviations that parameters still move
_SETTLED = 0.4  # the same, in two rounds in a row
_DIFFERENCE = 1e-4  # of a uniform, for derivatives by parameters
_FLOOR = 1e-9  # smallest deviation of an error, in units of ``LoggedMotion.scale``
_OPEN = 3.0  # deviation of the guess of a coordinate that is not measured, in the same units
_SIZE_ROWS = 1500  # steps that decide on the sizes of the errors
_WIDTH = 0.1  # deviations, of differences of the likelihood
_MARGINAL_STEPS = 2  # of the likelihood's maximization in a round, where steps are random
_IMPOSSIBLE = 1e10  # negative log-likelihood of a covariance that is not positive definite
_SCOUTING = 3  # rounds after which the curvature of that likelihood is found
_SILENT = 1e-12  # effect of a parameter over the smallest ``LoggedMotion.scale`` that counts as none
_GUESS_ROWS = 400  # steps that the first guess looks at, about
_MAD = 0.6745  # median absolute deviation of a standard normal
REPLICATES = 16  # random streams, where steps draw random numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Linearized:
    """The likelihood of residuals around smoothed states."""

    states: Array  # (T, size) smoothed states before the steps
    offsets: Array  # (T, n) what the errors of the states before the steps change
    links: Links
    factor: Factor
    sizes: Sizes


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """The maximum of the likelihood, and its curvature there.

    Near u the logarithm of the likelihood is ``log_likelihood + gradient (v - u) - (v - u)' information (v - u) / 2``.
    """

    u: Array  # (parameters,) point of the prior
    information: Array  # (parameters, parameters), by u
    gradient: Array  # (parameters,), not 0 at the end of a range
    slopes: Array  # (T, n, parameters) derivatives of the innovations by u
    log_likelihood: float
    at: Linearized
    residuals: Array  # (T, n), see ``Likelihood.residuals``
    innovations: Array  # (T, n) whitened residuals, independent with variance 1 if the model is right
    rounds: int
    unsettled: float  # deviations that parameters still moved in the last round, by which ``information`` is less; or 0

    def quadratic(self, u: Array, straight: Straight) -> Array:
        """The approximate log-likelihood of points ``(count, parameters)``, relative to that of ``u``.

        Args:
            u: The points.
            straight: Coordinates in which it is quadratic.
        """
        here = self.u[None]
        slope = straight.slope(here)[0]
        moved = straight.there(u) - straight.there(here)
        information = self.information * np.outer(slope, slope)
        found: Array = moved @ (self.gradient * slope) - 0.5 * np.einsum("ci,ij,cj->c", moved, information, moved)
        return found


class Likelihood:
    """Residuals of logged steps under any parameters."""

    def __init__(self, motion: LoggedMotion, simulator: Simulator, prior: Prior) -> None:
        """Stores what it needs; nothing is simulated yet."""
        self.motion, self.simulator, self.prior = motion, simulator, prior
        self.replay = simulator.replay
        self.replicates = REPLICATES if self.replay.random_steps else 1
        self.phases: npt.NDArray[np.int64] | None = None  # (T, courses)
        self.forced: Mapping[str, float] = {}  # values that replace those of the prior
        self.moving: Mask = np.ones(len(prior.names), np.bool_)  # (parameters,) that some step depends on

    def part(self, rows: Any) -> Likelihood:
        """The same of some of the steps."""
        chosen = Likelihood(self.motion.rows(rows), self.simulator, self.prior)
        chosen.phases, chosen.forced = None if self.phases is None else self.phases[rows], self.forced
        chosen.moving = self.moving
        return chosen

    def after(self, states: Array, u: Array, seed: int = 0) -> Array:
        """States after one step from each, under one random stream."""
        params = {**self.prior.params(u), **self.forced}
        return self.simulator.predict(states, self.motion.actions, params, phases=self.phases, seed=seed)

    def streams_after(self, states: Array, u: Array) -> tuple[Array, Array]:
        """``after`` of the first random stream, and deltas from there to those of all, ``(replicates, T, n)``."""
        first = self.after(states, u)
        moved = np.zeros((self.replicates, len(states), len(self.motion.coordinates)))
        for seed in range(1, self.replicates):
            moved[seed] = self.replay.difference(self.after(states, u, seed), first)
        return first, moved

    def mean_after(self, states: Array, u: Array) -> Array:
        """The mean over random streams, ``(T, size)``."""
        first, moved = self.streams_after(states, u)
        return first if self.replicates == 1 else self.replay.add(first, moved.mean(axis=0))

    def residuals(self, u: Array, states: Array, offsets: Array | float = 0.0) -> Array:
        """Measured states after the steps less simulated ones (see ``mean_after``) and ``offsets``, ``(T, n)``."""
        simulated = self.mean_after(states, u)
        found: Array = self.replay.difference(self.motion.after, simulated) - offsets
        return np.nan_to_num(found, nan=1e6, posinf=1e6, neginf=-1e6)  # a simulation that diverged

    def by_parameters(self, u: Array, states: Array) -> Array:
        """Derivatives of the residuals by u, ``(T, n, parameters)``."""
        columns: list[Array] = []
        for k in range(len(u)):
            if not self.moving[k]:
                columns.append(np.zeros((len(states), len(self.motion.coordinates))))
                continue
            high, low = u.copy(), u.copy()
            high[k], low[k] = min(1.0 - _FLOOR, u[k] + _DIFFERENCE), max(_FLOOR, u[k] - _DIFFERENCE)
            ends = (self.mean_after(states, end) for end in (low, high))
            columns.append(self.replay.difference(*ends) / (high[k] - low[k]))
        return np.nan_to_num(np.stack(columns, axis=-1)) if columns else np.zeros((*states.shape[:1], 0, 0))

    def by_states(self, u: Array, states: Array, steps: Array, after: Array) -> tuple[Array, Array]:
        """How the states after the steps depend on those before, by central differences.

        Args:
            u: Parameters, as a point of the prior.
            states: Shape ``(T, size)``.
            steps: Of the differences, ``(n,)``: the deviations of the errors.
            after: ``after`` of these states, under the same random stream.

        Returns:
            Derivatives ``(T, n, n)``, and the covariance of what they leave out ``(T, n, n)``: for a second derivative
            H and an error e of deviation d, ``H e^2 / 2`` has variance ``(H d^2)^2 / 2`` (as in the second-order
            filters of Norgaard, Poulsen and Ravn 2000). Where a foot meets the ground, it is most of the error.
        """
        count, n = len(states), len(steps)
        jacobians, bent = np.empty((count, n, n)), np.zeros((count, n, n))
        for k in range(n):
            deltas = np.zeros((count, n))
            deltas[:, k] = steps[k]
            high, low = (
                self.replay.difference(self.after(self.replay.add(states, sign * deltas), u), after)
                for sign in (1.0, -1.0)
            )
            jacobians[:, :, k] = (high - low) / (2.0 * steps[k])
            if self.motion.seen[k]:
                bent += 0.5 * np.einsum("ti,tj->tij", high + low, high + low)
        return np.nan_to_num(jacobians), np.nan_to_num(bent)


def _least_squares(
    white: Callable[[Array], Array], slopes: Callable[[Array], Array], u: Array, moving: Mask, **options: Any
) -> tuple[Array, Array]:
    """Scipy's least squares over the parameters that matter; returns the point and the whole matrix of slopes."""

    def whole(x: Array) -> Array:
        point = u.copy()
        point[moving] = x
        return point

    bounds = _FLOOR, 1.0 - _FLOOR
    solved = scipy.optimize.least_squares(
        lambda x: white(whole(x)), u[moving], lambda x: slopes(whole(x))[:, moving], bounds=bounds, **options
    )
    jacobian = np.zeros((solved.jac.shape[0], len(u)))
    jacobian[:, moving] = solved.jac
    return np.clip(whole(solved.x), 10 * _FLOOR, 1.0 - 10 * _FLOOR), jacobian


def first_guess(likelihood: Likelihood, u: Array) -> Array:
    """Parameters for which the simulator predicts the next measured state best, one step ahead.

    Those that no step depends on stay where they are, here and in ``likelihood.moving``.
    """
    if not len(u):
        return u
    size = np.abs(likelihood.by_parameters(u, likelihood.motion.before)).max(axis=(0, 1))
    likelihood.moving = size > _SILENT * likelihood.motion.scale.min()
    if not likelihood.moving.any():
        return u
    likelihood = likelihood.part(np.arange(0, len(likelihood.motion), max(1, len(likelihood.motion) // _GUESS_ROWS)))
    motion = likelihood.motion
    for _ in range(4):
        found = likelihood.residuals(u, motion.before)
        size = np.maximum(np.median(np.abs(found), axis=0) / _MAD, 10 * _FLOOR * motion.scale)
        weights = np.where(motion.seen, 1.0 / size, 0.0)
        start = u

        def white(v: Array, weights: Array = weights) -> Array:
            return (likelihood.residuals(v, motion.before) * weights).ravel()

        def slopes(v: Array, weights: Array = weights) -> Array:
            return (likelihood.by_parameters(v, motion.before) * weights[:, None]).reshape(-1, len(v))

        u, _ = _least_squares(white, slopes, u, likelihood.moving, loss="soft_l1", max_nfev=4)
        if np.abs(u - start).max() < 1e-5:
            break
    return u


def estimate(
    likelihood: Likelihood,
    start: Array,
    *,
    sizes: Sizes | None = None,
    rounds: int = _ROUNDS,
    progress: Callable[[int, float], None] = lambda number, way: None,
) -> Estimate:
    """Finds parameters, states and the sizes of errors.

    Where bodies make and break contact, the last rounds jump by a fraction of a deviation and do not settle; their
    parameters are averaged.

    Args:
        likelihood: Of the logged steps.
        start: Where to begin, ``(parameters,)``.
        sizes: Of the errors, if they are known; None to find them.
        rounds: Of Gauss-Newton, at most.
        progress: Gets the number of each round that is done, and how far parameters moved, in deviations.
    """
    motion, replay = likelihood.motion, likelihood.replay
    u, errors, fixed = start.copy(), np.zeros((len(motion), len(motion.coordinates))), sizes is not None
    way = before = np.inf
    for done in range(1, rounds + 1):
        states = replay.add(motion.before, -errors)
        first, moved = likelihood.streams_after(states, u)
        mean, spread = replay.add(first, moved.mean(axis=0)), spread_of_streams(moved)
        if sizes is None:
            sizes = guess_sizes(likelihood, replay.difference(motion.after, mean), spread)
        steps = np.where(motion.seen, np.maximum(np.sqrt(sizes.measured), 1e-6 * motion.scale), 1e-2 * motion.scale)
        jacobians, bent = likelihood.by_states(u, states, steps, first)
        offsets = np.einsum("tij,tj->ti", jacobians, errors)
        links = Links(jacobians=jacobians, bent=bent, spread=spread, joined=motion.joined)
        found = np.nan_to_num(replay.difference(motion.after, mean) - offsets)
        sizes = sizes if fixed else find_sizes(links, found, sizes, motion)
        factor = links.factor(sizes)
        start = u
        before, (u, slopes, way) = way, _move(likelihood, factor, states, offsets, u)
        information = slopes.T @ slopes
        if spread is not None and len(u):
            if done <= _SCOUTING:
                root = _root(information)
            marginal = _Marginal(likelihood, links, sizes, states, offsets, start, root)
            if done == _SCOUTING:  # least squares does not know how the covariance moves
                root = _root(marginal.curvature())
                marginal = _Marginal(likelihood, links, sizes, states, offsets, start, root)
            u, way = marginal.improved(_MARGINAL_STEPS)
        if done > 3 and way > 0.7 * before:
            u = 0.5 * (u + start)
        found = likelihood.residuals(u, states, offsets)
        errors = links.errors(found, sizes, factor)[:, 0]
        progress(done, way)
        if done > 2 and (way < _CONVERGED or max(way, before) < _SETTLED):
            break
    if sizes is None:
        raise ValueError("expected at least one round")
    innovations = factor.whiten(found)
    gradient = -slopes.T @ innovations.ravel()
    if spread is not None and len(u):
        marginal = _Marginal(likelihood, links, sizes, states, offsets, u, root)
        information, gradient = marginal.curvature(), np.zeros(len(u))
    unsettled = way if way > _SETTLED else 0.0
    return Estimate(
        u=u,
        information=information / (1.0 + unsettled**2),
        gradient=gradient,
        slopes=slopes.reshape(*innovations.shape, -1),
        log_likelihood=factor.log_likelihood(found),
        at=Linearized(states=states, offsets=offsets, links=links, factor=factor, sizes=sizes),
        residuals=found,
        innovations=innovations,
        rounds=done,
        unsettled=unsettled,
    )


def spread_of_streams(moved: Array) -> Array | None:
    """The covariance ``(T, n, n)`` of steps over random streams, and of its mean; None if there is one stream only."""
    count = len(moved)
    if count == 1:
        return None
    centered = moved - moved.mean(axis=0)
    covariance: Array = np.einsum("rti,rtj->tij", centered, centered) * (1.0 + 1.0 / count) / (count - 1)
    return covariance


class _Marginal:
    """The likelihood of parameters on which the simulator's randomness depends, at fixed states.

    A stronger engine has a larger dispersion, and more of it in some directions: the covariance moves with the
    parameters, so least squares at a fixed one would not do.
    """

    def __init__(
        self, likelihood: Likelihood, links: Links, sizes: Sizes, states: Array, offsets: Array, u: Array, root: Array
    ) -> None:
        """Takes coordinates in which the likelihood is about as wide in all directions.

        Args:
            likelihood: Of the logged steps.
            links: How residuals hang together.
            sizes: Of the errors.
            states: Smoothed states, ``(T, size)``.
            offsets: See ``Likelihood.residuals``.
            u: Origin of the coordinates.
            root: A root of the covariance of u, ``(parameters, parameters)``.
        """
        self._likelihood, self._links, self._sizes = likelihood, links, sizes
        self._states, self._offsets, self._u, self._root = states, offsets, u, root

    def point(self, x: Array) -> Array:
        """The point of the prior at coordinates ``(parameters,)``."""
        inside: Array = np.clip(self._u + self._root @ x, 10 * _FLOOR, 1.0 - 10 * _FLOOR)
        return inside

    def cost(self, x: Array) -> float:
        """The negative log-likelihood."""
        first, moved = self._likelihood.streams_after(self._states, self.point(x))
        replay = self._likelihood.replay
        mean = replay.add(first, moved.mean(axis=0))
        found = np.nan_to_num(replay.difference(self._likelihood.motion.after, mean) - self._offsets)
        links = replace(self._links, spread=spread_of_streams(moved))
        return -links.factor(self._sizes).log_likelihood(found)

    def slope(self, x: Array) -> Array:
        """The derivative of the cost, by central differences."""
        ends = np.eye(len(x)) * _WIDTH
        return np.array([(self.cost(x + end) - self.cost(x - end)) / (2.0 * _WIDTH) for end in ends])

    def improved(self, iterations: int) -> tuple[Array, float]:
        """A better point, and how far it is in units of the coordinates."""
        x = np.zeros(len(self._u))
        options = {"maxiter": iterations}
        solved = scipy.optimize.minimize(self.cost, x, jac=self.slope, method="BFGS", options=options)
        return self.point(solved.x), float(np.linalg.norm(solved.x))

    def curvature(self) -> Array:
        """The information of u at the origin, by second differences."""
        count, step = len(self._u), 0.5
        ends, middle = np.eye(count) * step, self.cost(np.zeros(count))
        high, low = ([self.cost(sign * end) for end in ends] for sign in (1.0, -1.0))
        found = np.diag(np.array(high) + np.array(low) - 2.0 * middle)
        for i in range(count):
            for j in range(i):
                found[i, j] = found[j, i] = self.cost(ends[i] + ends[j]) - high[i] - high[j] + middle
        values, vectors = np.linalg.eigh(found / step**2)
        inverse = np.linalg.inv(self._root)
        information: Array = inverse.T @ (vectors * np.maximum(values, 0.0)) @ vectors.T @ inverse
        return information


def _root(information: Array) -> Array:
    """A root of the covariance of u, with that of the prior."""
    root: Array = np.linalg.inv(np.linalg.cholesky(information + 12.0 * np.eye(len(information)))).T
    return root


def _move(
    likelihood: Likelihood, factor: Factor, states: Array, offsets: Array, u: Array
) -> tuple[Array, Array, float]:
    """A few steps of least squares; returns the parameters, whitened slopes and how far they moved."""
    if not likelihood.moving.any():
        return u, np.zeros((states.shape[0] * factor.size, len(u))), 0.0

    def white(v: Array) -> Array:
        return factor.whiten(likelihood.residuals(v, states, offsets)).ravel()

    def slopes(v: Array) -> Array:
        return factor.whiten(likelihood.by_parameters(v, states)).reshape(-1, len(v))

    after, jacobian = _least_squares(white, slopes, u, likelihood.moving, max_nfev=3)
    precision = jacobian.T @ jacobian + 12.0 * np.eye(len(u))  # 1/12 is the variance of a uniform
    moved = after - u
    return after, jacobian, float(np.sqrt(moved @ precision @ moved))


def guess_sizes(likelihood: Likelihood, residuals: Array, spread: Array | None) -> Sizes:
    """A robust guess: residuals less the simulator's own randomness come from measurement before and after a step."""
    motion = likelihood.motion
    size = np.square(np.median(np.abs(residuals), axis=0) / _MAD)
    own = 0.0 if spread is None else np.median(np.einsum("tii->ti", spread), axis=0)
    rest = np.maximum(np.maximum(size - own, 0.01 * size), 10 * np.square(_FLOOR * motion.scale))
    measured = np.where(motion.seen, 0.4 * rest, np.square(_OPEN * motion.scale))
    return Sizes(measured=measured, process=np.where(motion.seen, np.maximum(0.2 * rest, motion.inexact**2), 0.0))


def find_sizes(links: Links, residuals: Array, start: Sizes, motion: LoggedMotion) -> Sizes:
    """Sizes of the errors, by maximum likelihood.

    Args:
        links: How residuals hang together.
        residuals: Shape ``(T, n)``.
        start: Where to begin.
        motion: Of these residuals. The errors of coordinates that are not measured stay as they are.
    """
    seen, scale = motion.seen, motion.scale
    rows, count = stretches(len(links), _SIZE_ROWS), int(seen.sum())
    part, found = links.rows(rows), residuals[rows]
    random = links.spread is not None and bool(np.any(links.spread))

    def unpacked(x: Array) -> Sizes:
        measured, process = start.measured.copy(), start.process.copy()
        measured[seen], process[seen] = np.exp(x[:count]), np.exp(x[count : 2 * count])
        return Sizes(measured=measured, process=process, own=float(np.exp(x[-1])) if random else 1.0)

    def cost(x: Array) -> tuple[float, Array]:
        sizes = unpacked(x)
        try:
            factor = part.factor(sizes)
        except np.linalg.LinAlgError:
            return _IMPOSSIBLE, np.zeros_like(x)
        slopes = part.slopes(found, factor)
        by_log = [slopes.measured[seen] * sizes.measured[seen], slopes.process[seen] * sizes.process[seen]]
        by_log += [np.array([slopes.own * sizes.own])] if random else []
        return -factor.log_likelihood(found) / len(found), -np.concatenate(by_log) / len(found)

    low = np.log(np.square(_FLOOR * scale[seen]))
    high = np.log(np.square(10.0 * scale[seen]))
    least = np.maximum(low, np.log(np.maximum(np.square(motion.inexact[seen]), 1e-300)))
    bounds = [*zip(low, high, strict=True), *zip(least, high, strict=True)] + [(np.log(0.1), np.log(10.0))] * random
    first = [np.log(start.measured[seen]), np.log(start.process[seen]), *([np.log([start.own])] if random else [])]
    x = np.clip(np.concatenate(first), [b[0] + 1e-3 for b in bounds], [b[1] for b in bounds])
    solved = scipy.optimize.minimize(cost, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30})
    return unpacked(solved.x if solved.fun < _IMPOSSIBLE else x)
