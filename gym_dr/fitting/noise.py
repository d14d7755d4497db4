"""The variances of measurement and process noise: a robust guess, and maximum likelihood."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from gym_dr.arrays import Array
from gym_dr.fitting.chain import ChainCovariance, NoiseVariances
from gym_dr.fitting.motion import LoggedMotion, stretches

MAD = 0.6745  # median absolute deviation of a standard normal distribution
FLOOR = 1e-9  # smallest standard deviation of noise, in units of ``LoggedMotion.scale``
_OPEN = 3.0  # standard deviation of the guess of an unmeasured coordinate, in the same units
_ROWS = 1500  # steps that the fit looks at, at most
_IMPOSSIBLE = 1e10  # cost of a covariance that is not positive definite


def guess_noise(motion: LoggedMotion, residuals: Array, simulated: Array | None) -> NoiseVariances:
    """A robust guess: residuals without the simulator's own noise come from measurements before and after a step."""
    size = np.square(np.median(np.abs(residuals), axis=0) / MAD)
    own = 0.0 if simulated is None else np.median(np.einsum("tii->ti", simulated), axis=0)
    rest = np.maximum(np.maximum(size - own, 0.01 * size), 10 * np.square(FLOOR * motion.scale))
    measured = np.where(motion.seen, 0.4 * rest, np.square(_OPEN * motion.scale))
    process = np.where(motion.seen, np.maximum(0.2 * rest, motion.inexact**2), 0.0)
    return NoiseVariances(measured=measured, process=process)


def fit_noise(
    covariance: ChainCovariance, residuals: Array, start: NoiseVariances, motion: LoggedMotion
) -> NoiseVariances:
    """The variances of maximum likelihood; those of unmeasured coordinates stay as they are.

    Args:
        covariance: Of the residuals.
        residuals: Shape ``(T, n)``.
        start: The first guess.
        motion: The steps of these residuals.
    """
    seen, scale = motion.seen, motion.scale
    rows, count = stretches(len(covariance), _ROWS), int(seen.sum())
    part, observed = covariance.rows(rows), residuals[rows]
    random = covariance.simulated is not None and bool(np.any(covariance.simulated))

    def unpacked(x: Array) -> NoiseVariances:
        measured, process = start.measured.copy(), start.process.copy()
        measured[seen], process[seen] = np.exp(x[:count]), np.exp(x[count : 2 * count])
        return NoiseVariances(measured=measured, process=process, simulated=float(np.exp(x[-1])) if random else 1.0)

    def cost(x: Array) -> tuple[float, Array]:
        noise = unpacked(x)
        try:
            factor = part.factor(noise)
        except np.linalg.LinAlgError:
            return _IMPOSSIBLE, np.zeros_like(x)
        gradient = part.gradient(observed, factor)
        by_log = [gradient.measured[seen] * noise.measured[seen], gradient.process[seen] * noise.process[seen]]
        by_log += [np.array([gradient.simulated * noise.simulated])] if random else []
        return -factor.log_likelihood(observed) / len(observed), -np.concatenate(by_log) / len(observed)

    low = np.log(np.square(FLOOR * scale[seen]))
    high = np.log(np.square(10.0 * scale[seen]))
    least = np.maximum(low, np.log(np.maximum(np.square(motion.inexact[seen]), 1e-300)))
    bounds = [*zip(low, high, strict=True), *zip(least, high, strict=True)] + [(np.log(0.1), np.log(10.0))] * random
    first = [np.log(start.measured[seen]), np.log(start.process[seen])]
    first += [np.log([start.simulated])] if random else []
    x = np.clip(np.concatenate(first), [b[0] + 1e-3 for b in bounds], [b[1] for b in bounds])
    solved = scipy.optimize.minimize(cost, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30})
    return unpacked(solved.x if solved.fun < _IMPOSSIBLE else x)
