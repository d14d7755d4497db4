"""The parameters of one system: least squares over whole episodes, with measurement noise in every state.

A first guess moves the parameters alone, with robust weights, as if states were measured exactly. Then, in turn:
linearize each step at the smoothed states, fit the variances of the noise, let scipy's least squares move the
parameters, and smooth the states again (Gauss-Newton for states and parameters together, see ``smoother.py``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.likelihood import EDGE, Likelihood, covariance_of_streams
from gym_dr.fitting.marginal import MarginalLikelihood, root_of_covariance
from gym_dr.fitting.motion import Path
from gym_dr.fitting.noise import FLOOR, MAD, fit_noise, guess_noise
from gym_dr.fitting.particles import UnconstrainedTransform
from gym_dr.fitting.smoother import Chains, Deltas, KalmanFilter, NoiseVariances

_ROUNDS, _HIDDEN_ROUNDS = 12, 40  # of Gauss-Newton, at most; the same with coordinates that are never measured
_CONVERGED = 0.05  # standard deviations by which parameters still move
_SETTLED = 0.4  # the same, in two rounds in a row
_MARGINAL_STEPS = 2  # of the likelihood's maximization in a round, where steps are random
_SCOUTING = 3  # rounds after which the curvature of that likelihood is computed
_SILENT = 1e-12  # effect of a parameter over the smallest ``LoggedMotion.scale`` that counts as none
_GUESS_ROWS = 400  # steps that the first guess looks at, about
_STILL_ROUNDS = 3  # of smoothing alone
_OPEN = 3.0  # standard deviations of a coordinate in the log that its first value may be away, if it is not measured
_AROUND = 0.3  # standard deviation around the path, in units of coordinates' sizes, of states in which steps are tried
_KINEMATIC = 0.05  # share of a position's moves that its speed may leave over


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """The maximum of the likelihood, and its curvature there.

    Near u the log-likelihood is ``log_likelihood + gradient (v - u) - (v - u)' information (v - u) / 2``.
    """

    u: Array  # (parameters,) point of the prior
    information: Array  # (parameters, parameters), on u
    gradient: Array  # (parameters,), not 0 at the end of a range
    slopes: Array  # (T, n, parameters) derivatives of the innovations by u
    log_likelihood: float
    path: Path  # around which steps are linearized
    smoothed: Path  # the states given all measurements
    chains: Chains
    deltas: Deltas  # from ``path``
    filter: KalmanFilter
    noise: NoiseVariances
    scale: Array  # (n,) size of each coordinate
    forced: Mask  # (n,) coordinates with process noise
    innovations: Array  # (T, n) independent with variance 1 if the model is right; 0 where nothing is measured
    rounds: int
    unsettled: float  # standard deviations of the last round's move, by which ``information`` is less; 0 if settled

    def quadratic(self, u: Array, transform: UnconstrainedTransform) -> Array:
        """The approximate log-likelihood of points ``(count, parameters)``, relative to that of ``u``.

        Args:
            u: The points.
            transform: Into coordinates in which the likelihood is quadratic.
        """
        here = self.u[None]
        slope = transform.slope(here)[0]
        moved = transform.forward(u) - transform.forward(here)
        information = self.information * np.outer(slope, slope)
        return np.asarray(moved @ (self.gradient * slope) - 0.5 * np.einsum("ci,ij,cj->c", moved, information, moved))


def first_guess(likelihood: Likelihood, u: Array, path: Path | None = None) -> Array:
    """Parameters for which the simulator predicts the next state best, one step ahead.

    Parameters that no step depends on stay where they are, here and in ``likelihood.moving``.

    Args:
        likelihood: Of the logged steps.
        u: Where to begin, ``(parameters,)``.
        path: The states; None for ``likelihood.path``.
    """
    if not len(u):
        return u
    path = likelihood.path if path is None else path
    size = np.abs(likelihood.by_parameters(u, path.states)).max(axis=(0, 1))
    likelihood.moving = size > _SILENT * likelihood.motion.scale.min()
    if not likelihood.moving.any():
        return u
    chosen = np.arange(0, len(likelihood.motion), max(1, len(likelihood.motion) // _GUESS_ROWS))
    likelihood, path = likelihood.part(chosen), path.rows(chosen)
    for _ in range(4):
        drift = likelihood.drift(u, path)
        size = np.maximum(np.median(np.abs(drift), axis=0) / MAD, 10 * FLOOR * likelihood.motion.scale)
        start = u

        def white(v: Array, size: Array = size) -> Array:
            return (likelihood.drift(v, path) / size).ravel()

        def slopes(v: Array, size: Array = size) -> Array:
            return (likelihood.by_parameters(v, path.states) / size[:, None]).reshape(-1, len(v))

        u, _ = _least_squares(white, slopes, u, likelihood.moving, loss="soft_l1", max_nfev=4)
        if np.abs(u - start).max() < 1e-5:
            break
    return u


def states_of(likelihood: Likelihood, u: Array, noise: NoiseVariances | None = None) -> Path:
    """The smoothed states under given parameters; the measured ones themselves if none is missing."""
    measured = likelihood.motion.seen
    known = [seen[:, measured].all() for seen in (likelihood.motion.observed, likelihood.motion.first_observed)]
    if all(known) and not likelihood.hidden.any():
        return likelihood.path
    still = likelihood.part(slice(None))
    still.moving = np.zeros(len(u), np.bool_)
    return estimate(still, u, noise=noise, rounds=_STILL_ROUNDS).smoothed


def beginning(likelihood: Likelihood, u: Array) -> tuple[Array, Path]:
    """Parameters and states to begin with, from a rough guess of parameters.

    States that are not measured follow from those that are, with as much process noise as a wrong guess needs.
    """
    path = states_of(likelihood, u)
    return first_guess(likelihood, u, path), path


def estimate(
    likelihood: Likelihood,
    start: Array,
    path: Path | None = None,
    *,
    noise: NoiseVariances | Any = None,
    rounds: int | None = None,
    progress: Callable[[int, float], None] = lambda number, shift: None,
) -> Estimate:
    """Finds parameters, states and the variances of the noise.

    Where bodies make and break contact, the last rounds jump by a fraction of a standard deviation and do not settle;
    their parameters are averaged.

    Args:
        likelihood: Of the logged steps.
        start: Where to begin, ``(parameters,)``.
        path: States to begin with; None for ``likelihood.path``.
        noise: Its variances, if they are known; None to fit them.
        rounds: Of Gauss-Newton, at most; at least one; None for as many as are usual.
        progress: Called after each round with its number, and how far parameters moved, in standard deviations.
    """
    u, path, fixed = start.copy(), likelihood.path if path is None else path, noise is not None
    scale = _scales(likelihood, u, path)
    forced = _forced(likelihood, u, path, scale)
    shift = before = np.inf
    moved = np.zeros(len(u))
    for done in range(1, (rounds or (_HIDDEN_ROUNDS if likelihood.hidden.any() else _ROUNDS)) + 1):
        if noise is None:
            noise = guess_noise(likelihood, u, scale, forced)
        chains, deltas = _linearized(likelihood, u, path, noise, scale)
        noise = noise if fixed else fit_noise(chains, deltas, noise, scale, forced, likelihood.motion.inexact)
        kalman = chains.filter(noise)
        start = u
        before, (u, slopes, shift) = shift, _move(likelihood, kalman, path, deltas, u)
        information = slopes.T @ slopes
        marginal = None
        if chains.simulated is not None and likelihood.moving.any():
            if done <= _SCOUTING:
                root = root_of_covariance(information)
            marginal = MarginalLikelihood(
                likelihood=likelihood, chains=chains, deltas=deltas, noise=noise, path=path, origin=start, root=root
            )
            if done == _SCOUTING:  # least squares does not know how the covariance changes
                root = root_of_covariance(marginal.curvature())
                marginal = replace(marginal, root=root)
            u, shift = marginal.improved(_MARGINAL_STEPS)
        turned = done > 3 and (u - start) @ information @ moved < 0.0
        u = 0.5 * (u + start) if turned and shift > 0.7 * before else u
        moved = u - start
        deltas = replace(deltas, drift=likelihood.drift(u, path))
        around, path = path, path.moved(likelihood.replay, chains.begins, *kalman.smoothed(deltas))
        progress(done, shift)
        if done > 2 and (shift < _CONVERGED or max(shift, before) < _SETTLED):
            break
    innovations = kalman.innovations(deltas)
    gradient = -slopes.T @ innovations.ravel()
    if marginal is not None:
        information, gradient = replace(marginal, origin=u, root=root).curvature(), np.zeros(len(u))
    unsettled = shift if shift > _SETTLED else 0.0
    return Estimate(
        u=u,
        information=information / (1.0 + unsettled**2),
        gradient=gradient,
        slopes=slopes.reshape(*innovations.shape, -1),
        log_likelihood=kalman.log_likelihood(innovations),
        path=around,
        smoothed=path,
        chains=chains,
        deltas=deltas,
        filter=kalman,
        noise=noise,
        scale=scale,
        forced=forced,
        innovations=innovations,
        rounds=done,
        unsettled=unsettled,
    )


def _scales(likelihood: Likelihood, u: Array, path: Path) -> Array:
    """The size of each coordinate: of hidden ones that of the path, or as large as explains how measured ones move."""
    motion, replay = likelihood.motion, likelihood.replay
    scale, measured = motion.scale.copy(), motion.seen
    away = np.sqrt(np.square(replay.difference(path.states, likelihood.path.states)).mean(axis=0))
    stepped = replay.difference(path.ends, path.states).std(axis=0)
    for k in np.flatnonzero(~measured):
        effects = likelihood.effects(u, path.states, k)
        shown = measured & (effects > 0.0) & (stepped > 0.0)
        scale[k] = away[k] if away[k] > 0.0 else (stepped[shown] / effects[shown]).min() if shown.any() else 1.0
    return scale


def _forced(likelihood: Likelihood, u: Array, path: Path, scale: Array) -> Mask:
    """Where forces act, ``(n,)``: not in positions, which move by the speed before and after a step, and no more."""
    forced = likelihood.motion.seen | likelihood.hidden
    rows = np.arange(0, len(likelihood.motion), max(1, len(likelihood.motion) // _GUESS_ROWS))
    part, places = likelihood.part(rows), likelihood.motion.places
    spread = _AROUND * scale * np.random.default_rng(0).standard_normal((len(rows), len(scale)))
    states = likelihood.replay.add(path.states[rows], spread)
    ends = part.simulated(states, u)
    moved = np.nan_to_num(likelihood.replay.difference(ends, states)) / part.motion.holds[:, None]
    for i, j in itertools.permutations(range(len(scale)) if likelihood.replicates == 1 else (), 2):
        speeds = np.nan_to_num(np.stack([states[:, places[j]], ends[:, places[j]]], axis=1))
        weights = np.linalg.lstsq(speeds, moved[:, i], rcond=None)[0]
        rest = np.square(moved[:, i] - speeds @ weights).sum()
        moves = 2.0 * weights.sum() > np.abs(weights).sum() and rest < _KINEMATIC**2 * np.square(moved[:, i]).sum()
        forced[i] &= not moves
    return np.asarray(forced)


def _linearized(
    likelihood: Likelihood, u: Array, path: Path, noise: NoiseVariances, scale: Array
) -> tuple[Chains, Deltas]:
    """The steps around a path."""
    motion, replay = likelihood.motion, likelihood.replay
    first, moved = likelihood.streams_after(path.states, u)
    steps = np.where(likelihood.hidden, 1e-2 * scale, np.maximum(np.sqrt(noise.measured), 1e-6 * scale))
    jacobians, second_order = likelihood.by_states(u, path.states, steps, first)
    chains = Chains(
        jacobians=jacobians,
        second_order=second_order,
        simulated=covariance_of_streams(moved),
        lasting=motion.holds / motion.holds.mean(),
        begins=motion.begins,
        observed=motion.observed,
        first_observed=motion.first_observed,
        prior=np.square(_OPEN * scale),
    )
    expected = np.where(np.isnan(motion.first), likelihood.path.states[motion.begins], motion.first)
    drift = replay.difference(replay.add(first, moved.mean(axis=0)), path.ends)
    deltas = Deltas(
        drift=np.nan_to_num(drift, nan=1e6, posinf=1e6, neginf=-1e6),
        measured=np.where(motion.observed, np.nan_to_num(replay.difference(motion.measured, path.ends)), 0.0),
        first=replay.difference(expected, path.states[motion.begins]),
    )
    return chains, deltas


def _least_squares(
    white: Callable[[Array], Array], slopes: Callable[[Array], Array], u: Array, moving: Mask, **options: Any
) -> tuple[Array, Array]:
    """Scipy's least squares over the parameters that matter; returns the point and the slopes by all parameters."""

    def whole(x: Array) -> Array:
        point = u.copy()
        point[moving] = x
        return point

    bounds = EDGE, 1.0 - EDGE
    solved = scipy.optimize.least_squares(
        lambda x: white(whole(x)), u[moving], lambda x: slopes(whole(x))[:, moving], bounds=bounds, **options
    )
    jacobian = np.zeros((solved.jac.shape[0], len(u)))
    jacobian[:, moving] = solved.jac
    return np.clip(whole(solved.x), 10 * EDGE, 1.0 - 10 * EDGE), jacobian


def _move(
    likelihood: Likelihood, kalman: KalmanFilter, path: Path, deltas: Deltas, u: Array
) -> tuple[Array, Array, float]:
    """A few steps of least squares; returns the parameters, slopes of innovations, and how far the parameters moved."""
    if not likelihood.moving.any():
        return u, np.zeros((kalman.variances.size, len(u))), 0.0

    def white(v: Array) -> Array:
        return kalman.innovations(replace(deltas, drift=likelihood.drift(v, path))).ravel()

    def slopes(v: Array) -> Array:
        return kalman.slopes(likelihood.by_parameters(v, path.states)).reshape(-1, len(v))

    after, jacobian = _least_squares(white, slopes, u, likelihood.moving, max_nfev=3)
    precision = jacobian.T @ jacobian + 12.0 * np.eye(len(u))  # 1/12 is the variance of a uniform distribution
    moved = after - u
    return after, jacobian, float(np.sqrt(moved @ precision @ moved))
