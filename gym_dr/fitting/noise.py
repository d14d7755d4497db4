"""The variances of measurement and process noise: a robust guess, and maximum likelihood."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.likelihood import Likelihood, covariance_of_streams
from gym_dr.fitting.motion import stretches
from gym_dr.fitting.smoother import Chains, Deltas, NoiseVariances

MAD = 0.6745  # median absolute deviation of a standard normal distribution
FLOOR = 1e-9  # smallest standard deviation of noise, in units of ``LoggedMotion.scale``
_MOVED = 0.1  # standard deviation of a hidden coordinate's process noise, at first, in units of its size
_ROWS = 1500  # steps that the fit looks at, at most
_HIDDEN_ROWS, _HIDDEN_STRETCH = 6000, 500  # the same, and how many are together, where a coordinate is never measured
_SHARE = 0.05  # of one kind of noise that the other has at first, at least
_STUCK = 1e-4  # the same where there is only one kind: standard deviation, in units of the coordinate's size
_IMPOSSIBLE = 1e10  # cost of a covariance that is not positive definite


def guess_noise(likelihood: Likelihood, u: Array, scale: Array, forced: Mask) -> NoiseVariances:
    """A robust guess: one-step residuals without the simulator's own noise come from measurements before and after.

    Args:
        likelihood: Of the steps.
        u: Point of the prior.
        scale: Size of each coordinate, ``(n,)``.
        forced: Coordinates with process noise, ``(n,)``.
    """
    motion, replay = likelihood.motion, likelihood.replay
    measured = motion.seen
    first, moved = likelihood.streams_after(likelihood.path.states, u)
    residuals = np.nan_to_num(replay.difference(likelihood.path.ends, replay.add(first, moved.mean(axis=0))))
    size, simulated = np.square(np.median(np.abs(residuals), axis=0) / MAD), covariance_of_streams(moved)
    own = 0.0 if simulated is None else np.median(np.einsum("tii->ti", simulated), axis=0)
    rest = np.maximum(np.maximum(size - own, 0.01 * size), 10 * np.square(FLOOR * scale))
    process = np.where(measured, np.maximum(0.2 * rest, motion.inexact**2), np.square(_MOVED * scale))
    return NoiseVariances(
        measured=np.where(measured, 0.4 * rest, 1.0), process=np.where(forced, process, motion.inexact**2)
    )


def fit_noise(
    chains: Chains, deltas: Deltas, start: NoiseVariances, scale: Array, forced: Mask, inexact: Array
) -> NoiseVariances:
    """The variances of maximum likelihood; those of errors that nothing shows stay as they are.

    Args:
        chains: The steps.
        deltas: What is known of them.
        start: The first guess.
        scale: Size of each coordinate, ``(n,)``.
        forced: Coordinates with process noise, ``(n,)``.
        inexact: Smallest standard deviations of process noise, ``(n,)``.
    """
    measured = chains.observed.any(axis=0)
    most = (_ROWS,) if measured.all() else (_HIDDEN_ROWS, _HIDDEN_STRETCH)
    rows = stretches(len(chains), *most)
    part, known = chains.rows(rows, deltas)
    random = chains.simulated is not None and bool(np.any(chains.simulated))
    count, ends = int(measured.sum()), int(measured.sum() + forced.sum())

    def unpacked(x: Array) -> NoiseVariances:
        errors, process = start.measured.copy(), start.process.copy()
        errors[measured], process[forced] = np.exp(x[:count]), np.exp(x[count:ends])
        return NoiseVariances(measured=errors, process=process, simulated=float(np.exp(x[-1])) if random else 1.0)

    def cost(x: Array) -> tuple[float, Array]:
        noise = unpacked(x)
        try:
            kalman = part.filter(noise)
        except np.linalg.LinAlgError:
            return _IMPOSSIBLE, np.zeros_like(x)
        innovations = kalman.innovations(known)
        gradient = kalman.gradient(innovations)
        by_log = [
            gradient.measured[measured] * noise.measured[measured],
            gradient.process[forced] * noise.process[forced],
        ]
        by_log += [np.array([gradient.simulated * noise.simulated])] if random else []
        return -kalman.log_likelihood(innovations) / len(part), -np.concatenate(by_log) / len(part)

    low, high = np.log(np.square(FLOOR * scale)), np.log(np.square(10.0 * scale))
    least = np.maximum(low, np.log(np.maximum(np.square(inexact), 1e-300)))
    bounds = [*zip(low[measured], high[measured], strict=True), *zip(least[forced], high[forced], strict=True)]
    bounds += [(np.log(0.1), np.log(10.0))] * random
    # a variance near 0 has no slope by its logarithm, so none begins there
    least_errors = np.where(forced, _SHARE * start.process, np.square(_STUCK * scale))
    least_process = np.where(measured, _SHARE * start.measured, np.square(_STUCK * scale))
    first = [np.log(np.maximum(start.measured, least_errors)[measured])]
    first += [np.log(np.maximum(start.process, least_process)[forced])]
    first += [np.log([start.simulated])] if random else []
    x = np.clip(np.concatenate(first), [b[0] + 1e-3 for b in bounds], [b[1] for b in bounds])
    solved = scipy.optimize.minimize(cost, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30})
    return unpacked(solved.x if solved.fun < _IMPOSSIBLE else x)
