"""The parameters of one system: least squares over whole episodes, with measurement noise in every state.

A first guess moves the parameters alone, with robust weights, as if states were measured exactly. Then, in turn:
linearize each step at the smoothed states, fit the variances of the noise, let scipy's least squares move the
parameters, and smooth the states again (Gauss-Newton for states and parameters together, see ``chain.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.chain import ChainCovariance, CholeskyFactor, NoiseVariances
from gym_dr.fitting.likelihood import EDGE, Likelihood, covariance_of_streams
from gym_dr.fitting.marginal import MarginalLikelihood, root_of_covariance
from gym_dr.fitting.noise import FLOOR, MAD, fit_noise, guess_noise
from gym_dr.fitting.unconstrained import UnconstrainedTransform

_ROUNDS = 12  # of Gauss-Newton, at most
_CONVERGED = 0.05  # standard deviations by which parameters still move
_SETTLED = 0.4  # the same, in two rounds in a row
_MARGINAL_STEPS = 2  # of the likelihood's maximization in a round, where steps are random
_SCOUTING = 3  # rounds after which the curvature of that likelihood is computed
_SILENT = 1e-12  # effect of a parameter over the smallest ``LoggedMotion.scale`` that counts as none
_GUESS_ROWS = 400  # steps that the first guess looks at, about


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
    states: Array  # (T, size) smoothed states before the steps, around which steps are linearized
    offsets: Array  # (T, n) what the errors of these states change
    covariance: ChainCovariance  # of the residuals
    factor: CholeskyFactor
    noise: NoiseVariances
    residuals: Array  # (T, n), see ``Likelihood.residuals``
    innovations: Array  # (T, n) whitened residuals, independent with variance 1 if the model is right
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


def first_guess(likelihood: Likelihood, u: Array) -> Array:
    """Parameters for which the simulator predicts the next measured state best, one step ahead.

    Parameters that no step depends on stay where they are, here and in ``likelihood.moving``.
    """
    if not len(u):
        return u
    size = np.abs(likelihood.by_parameters(u, likelihood.before)).max(axis=(0, 1))
    likelihood.moving = size > _SILENT * likelihood.motion.scale.min()
    if not likelihood.moving.any():
        return u
    likelihood = likelihood.part(np.arange(0, len(likelihood.motion), max(1, len(likelihood.motion) // _GUESS_ROWS)))
    motion = likelihood.motion
    for _ in range(4):
        residuals = likelihood.residuals(u, likelihood.before)
        size = np.maximum(np.median(np.abs(residuals), axis=0) / MAD, 10 * FLOOR * motion.scale)
        weights = np.where(motion.seen, 1.0 / size, 0.0)
        start = u

        def white(v: Array, weights: Array = weights) -> Array:
            return (likelihood.residuals(v, likelihood.before) * weights).ravel()

        def slopes(v: Array, weights: Array = weights) -> Array:
            return (likelihood.by_parameters(v, likelihood.before) * weights[:, None]).reshape(-1, len(v))

        u, _ = _least_squares(white, slopes, u, likelihood.moving, loss="soft_l1", max_nfev=4)
        if np.abs(u - start).max() < 1e-5:
            break
    return u


def estimate(
    likelihood: Likelihood,
    start: Array,
    *,
    noise: NoiseVariances | Any = None,
    rounds: int = _ROUNDS,
    progress: Callable[[int, float], None] = lambda number, shift: None,
) -> Estimate:
    """Finds parameters, states and the variances of the noise.

    Where bodies make and break contact, the last rounds jump by a fraction of a standard deviation and do not settle;
    their parameters are averaged.

    Args:
        likelihood: Of the logged steps.
        start: Where to begin, ``(parameters,)``.
        noise: Its variances, if they are known; None to fit them.
        rounds: Of Gauss-Newton, at most; at least one.
        progress: Called after each round with its number, and how far parameters moved, in standard deviations.
    """
    motion, replay = likelihood.motion, likelihood.replay
    u, errors, fixed = start.copy(), np.zeros((len(motion), len(motion.coordinates))), noise is not None
    shift = before = np.inf
    for done in range(1, rounds + 1):
        states = replay.add(likelihood.before, -errors)
        first, moved = likelihood.streams_after(states, u)
        mean, simulated = replay.add(first, moved.mean(axis=0)), covariance_of_streams(moved)
        if noise is None:
            noise = guess_noise(motion, replay.difference(likelihood.after, mean), simulated)
        steps = np.where(motion.seen, np.maximum(np.sqrt(noise.measured), 1e-6 * motion.scale), 1e-2 * motion.scale)
        jacobians, second_order = likelihood.by_states(u, states, steps, first)
        offsets = np.einsum("tij,tj->ti", jacobians, errors)
        covariance = ChainCovariance(
            jacobians=jacobians, second_order=second_order, simulated=simulated, joined=motion.joined
        )
        residuals = np.nan_to_num(replay.difference(likelihood.after, mean) - offsets)
        noise = noise if fixed else fit_noise(covariance, residuals, noise, motion)
        factor = covariance.factor(noise)
        start = u
        before, (u, slopes, shift) = shift, _move(likelihood, factor, states, offsets, u)
        information = slopes.T @ slopes
        if simulated is not None and len(u):
            if done <= _SCOUTING:
                root = root_of_covariance(information)
            marginal = MarginalLikelihood(
                likelihood=likelihood,
                covariance=covariance,
                noise=noise,
                states=states,
                offsets=offsets,
                origin=start,
                root=root,
            )
            if done == _SCOUTING:  # least squares does not know how the covariance changes
                root = root_of_covariance(marginal.curvature())
                marginal = replace(marginal, root=root)
            u, shift = marginal.improved(_MARGINAL_STEPS)
        if done > 3 and shift > 0.7 * before:
            u = 0.5 * (u + start)
        residuals = likelihood.residuals(u, states, offsets)
        errors = covariance.measurement_errors(residuals, noise, factor)[:, 0]
        progress(done, shift)
        if done > 2 and (shift < _CONVERGED or max(shift, before) < _SETTLED):
            break
    innovations = factor.whiten(residuals)
    gradient = -slopes.T @ innovations.ravel()
    if simulated is not None and len(u):
        information, gradient = replace(marginal, origin=u, root=root).curvature(), np.zeros(len(u))
    unsettled = shift if shift > _SETTLED else 0.0
    return Estimate(
        u=u,
        information=information / (1.0 + unsettled**2),
        gradient=gradient,
        slopes=slopes.reshape(*innovations.shape, -1),
        log_likelihood=factor.log_likelihood(residuals),
        states=states,
        offsets=offsets,
        covariance=covariance,
        factor=factor,
        noise=noise,
        residuals=residuals,
        innovations=innovations,
        rounds=done,
        unsettled=unsettled,
    )


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
    likelihood: Likelihood, factor: CholeskyFactor, states: Array, offsets: Array, u: Array
) -> tuple[Array, Array, float]:
    """A few steps of least squares; returns the parameters, whitened slopes, and how far the parameters moved."""
    if not likelihood.moving.any():
        return u, np.zeros((states.shape[0] * factor.size, len(u))), 0.0

    def white(v: Array) -> Array:
        return factor.whiten(likelihood.residuals(v, states, offsets)).ravel()

    def slopes(v: Array) -> Array:
        return factor.whiten(likelihood.by_parameters(v, states)).reshape(-1, len(v))

    after, jacobian = _least_squares(white, slopes, u, likelihood.moving, max_nfev=3)
    precision = jacobian.T @ jacobian + 12.0 * np.eye(len(u))  # 1/12 is the variance of a uniform distribution
    moved = after - u
    return after, jacobian, float(np.sqrt(moved @ precision @ moved))
