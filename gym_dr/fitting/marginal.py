"""The likelihood of parameters where steps are random: the covariance of steps changes with the parameters.

A stronger engine has a larger dispersion, and in some directions more than in others, so least squares under a fixed
covariance would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize

from gym_dr.arrays import Array
from gym_dr.fitting.likelihood import EDGE, Likelihood, covariance_of_streams
from gym_dr.fitting.motion import Path
from gym_dr.fitting.smoother import Chains, Deltas, NoiseVariances

_FLAT = 0.02  # slope of the likelihood, in units of the coordinates, that counts as none
_WIDTH = 0.1  # standard deviations, of differences of the likelihood


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalLikelihood:
    """The likelihood at fixed states, in coordinates in which it is about as wide in all directions."""

    likelihood: Likelihood
    chains: Chains
    deltas: Deltas  # from ``path``
    noise: NoiseVariances
    path: Path  # smoothed states
    origin: Array  # (parameters,) point of the prior where the coordinates are 0
    root: Array  # (parameters, parameters) root of the points' covariance

    def point(self, x: Array) -> Array:
        """The point of the prior at coordinates ``(parameters,)``."""
        return np.asarray(np.clip(self.origin + self.root @ x, 10 * EDGE, 1.0 - 10 * EDGE))

    def cost(self, x: Array) -> float:
        """The negative log-likelihood."""
        first, moved = self.likelihood.streams_after(self.path.states, self.point(x))
        replay = self.likelihood.replay
        drift = np.nan_to_num(replay.difference(replay.add(first, moved.mean(axis=0)), self.path.ends))
        kalman = replace(self.chains, simulated=covariance_of_streams(moved)).filter(self.noise)
        return -kalman.log_likelihood(kalman.innovations(replace(self.deltas, drift=drift)))

    def slope(self, x: Array) -> Array:
        """The derivative of the cost, as central differences."""
        ends = np.eye(len(x)) * _WIDTH
        return np.array([(self.cost(x + end) - self.cost(x - end)) / (2.0 * _WIDTH) for end in ends])

    def improved(self, iterations: int) -> tuple[Array, float]:
        """A better point, and its distance from the origin in units of the coordinates."""
        x = np.zeros(len(self.origin))
        options = {"maxiter": iterations, "gtol": _FLAT}
        solved = scipy.optimize.minimize(self.cost, x, jac=self.slope, method="BFGS", options=options)
        return self.point(solved.x), float(np.linalg.norm(solved.x))

    def curvature(self) -> Array:
        """The information on u at the origin, as second differences."""
        count, step = len(self.origin), 0.5
        ends, middle = np.eye(count) * step, self.cost(np.zeros(count))
        high, low = ([self.cost(sign * end) for end in ends] for sign in (1.0, -1.0))
        hessian = np.diag(np.array(high) + np.array(low) - 2.0 * middle)
        for i in range(count):
            for j in range(i):
                hessian[i, j] = hessian[j, i] = self.cost(ends[i] + ends[j]) - high[i] - high[j] + middle
        values, vectors = np.linalg.eigh(hessian / step**2)
        inverse = np.linalg.inv(self.root)
        return np.asarray(inverse.T @ (vectors * np.maximum(values, 0.0)) @ vectors.T @ inverse)


def root_of_covariance(information: Array) -> Array:
    """A root of the covariance of u under this information and the prior, whose variance is 1/12."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(information + 12.0 * np.eye(len(information)))).T)
