"""Likelihood of a chain of noisy states: measurement noise in every state, one simulated step between neighbors.

The measured states are ``s_t = x_t + e_t`` with ``e_t ~ N(0, S)``, and ``x_{t+1} = f(x_t) + w_t`` with
``w_t ~ N(0, C_t)``. Here ``C_t = Q + B_t + k R_t`` is the sum of process noise, what linearization leaves out, and the
simulator's own noise. The residuals ``r_t = s_{t+1} - f(x_t) - J_t (s_t - x_t)``, linearized at states x near the
true ones, are Gaussian. Their covariance is block tridiagonal::

    cov(r_t, r_t) = S + J_t S J_t' + C_t          cov(r_t, r_{t+1}) = -S J_{t+1}'

so a banded Cholesky factor gives the likelihood of whole episodes. This is multiple shooting with an interval of one
step (Bock 1983, "Recent advances in parameter identification techniques for O.D.E."). Its whitened residuals are the
innovations of a Kalman filter: each is independent of all earlier measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from gym_dr.arrays import Array, Indices, Mask

_JITTER = 1e-12  # of the variances, on the diagonal


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseVariances:
    """Variances of the noise of n coordinates."""

    measured: Array  # (n,) of measurement noise, S
    process: Array  # (n,) of process noise in each step, Q
    simulated: float = 1.0  # factor of the simulator's own noise, k; 1 as simulated


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainCovariance:
    """The covariance of T residuals of n coordinates at fixed states, as a function of the noise's variances."""

    jacobians: Array  # (T, n, n), J_t = d f(x_t) / d x_t
    second_order: Array  # (T, n, n) covariance of what linearization leaves out, B_t
    simulated: Array | None  # (T, n, n) covariance of the simulator's own noise, R_t; None if it has none
    joined: Mask  # (T,) whether step t ends in the state where step t + 1 begins

    def __len__(self) -> int:
        return len(self.jacobians)

    def rows(self, chosen: Indices) -> ChainCovariance:
        """The covariance of some of the steps, in order."""
        joined = self.joined[chosen] & (np.diff(chosen, append=-1) == 1)
        simulated = None if self.simulated is None else self.simulated[chosen]
        return ChainCovariance(
            jacobians=self.jacobians[chosen], second_order=self.second_order[chosen], simulated=simulated, joined=joined
        )

    def factor(self, noise: NoiseVariances) -> CholeskyFactor:
        """The Cholesky factor of the covariance.

        Raises:
            numpy.linalg.LinAlgError: The covariance is not positive definite.
        """
        count, n = self.jacobians.shape[:2]
        scaled = self.jacobians * noise.measured  # J S
        diagonal = scaled @ self.jacobians.transpose(0, 2, 1) + self.second_order
        if self.simulated is not None:
            diagonal = diagonal + noise.simulated * self.simulated
        own = noise.measured + noise.process
        diagonal[:, np.arange(n), np.arange(n)] += own + _JITTER * (own + 1e-30)
        below = -scaled[1:] * self.joined[:-1, None, None]  # cov(r_{t+1}, r_t) = -J_{t+1} S
        band = np.zeros((2 * n, count * n))
        for i in range(n):
            for j in range(i + 1):  # entry (i, j) of a diagonal block
                band[i - j, j::n] = diagonal[:, i, j]
            for j in range(n):
                band[n + i - j, j : (count - 1) * n : n] = below[:, i, j]
        return CholeskyFactor(band=scipy.linalg.cholesky_banded(band, lower=True, check_finite=False), size=n)

    def gradient(self, residuals: Array, factor: CholeskyFactor) -> NoiseVariances:
        """Derivatives of ``CholeskyFactor.log_likelihood`` by each of the ``NoiseVariances``."""
        weights = factor.solve(residuals)
        inside, beside = factor.inverse_blocks()  # of the inverse covariance: (t, t), and (t, t + 1)
        back = np.einsum("tji,tj->ti", self.jacobians, weights)  # J' V^-1 r
        joint = self.joined[:-1, None]
        own = np.einsum("tii->ti", inside)
        carried = np.einsum("tji,tjk,tki->ti", self.jacobians, inside, self.jacobians, optimize=True)
        crossed = np.einsum("tij,tji->ti", beside, self.jacobians[1:])
        trace = own.sum(axis=0) + carried.sum(axis=0) - 2.0 * (joint * crossed).sum(axis=0)
        square = np.square(weights) + np.square(back)
        quadratic = square.sum(axis=0) - 2.0 * (joint * weights[:-1] * back[1:]).sum(axis=0)
        scale = 0.0
        if self.simulated is not None:
            traces = np.einsum("tij,tji->", inside, self.simulated)
            scale = 0.5 * float(np.einsum("ti,tij,tj->", weights, self.simulated, weights) - traces)
        process = 0.5 * (np.square(weights) - own).sum(axis=0)
        return NoiseVariances(measured=0.5 * (quadratic - trace), process=process, simulated=scale)

    def measurement_errors(self, residuals: Array, noise: NoiseVariances, factor: CholeskyFactor) -> Array:
        """Expected measurement errors ``(T, 2, n)`` of the states before and after each step, given the residuals."""
        weights = factor.solve(residuals)
        before = -np.einsum("tji,tj->ti", self.jacobians, weights)
        after = weights.copy()
        joint = self.joined[:-1, None]
        together = after[:-1] + before[1:]
        after[:-1] = np.where(joint, together, after[:-1])
        before[1:] = np.where(joint, together, before[1:])
        return np.stack([before, after], axis=1) * noise.measured


@dataclass(frozen=True, kw_only=True, eq=False)
class CholeskyFactor:
    """A banded Cholesky factor of the covariance of residuals."""

    band: Array  # lower band
    size: int  # number of coordinates

    @property
    def log_determinant(self) -> float:
        """The logarithm of the covariance's determinant."""
        return 2.0 * float(np.log(self.band[0]).sum())

    def whiten(self, residuals: Array) -> Array:
        """Innovations, independent with variance 1, in order of time: ``(T, n)``, or ``(T, n, k)`` for k sets."""
        flat = residuals.reshape(residuals.shape[0] * self.size, -1)
        solved, info = lapack.dtbtrs(self.band, flat, uplo="L")
        if info:
            raise np.linalg.LinAlgError(f"dtbtrs returned {info}")
        return np.asarray(solved.reshape(residuals.shape))

    def solve(self, residuals: Array) -> Array:
        """The inverse covariance times residuals ``(T, n)``."""
        solved = scipy.linalg.cho_solve_banded((self.band, True), residuals.reshape(-1), check_finite=False)
        return np.asarray(solved.reshape(residuals.shape))

    def inverse_blocks(self) -> tuple[Array, Array]:
        """Blocks of the inverse covariance on the diagonal ``(T, n, n)`` and right of it ``(T - 1, n, n)``.

        Backward recursion of Takahashi, Fagan and Chen (1973) for the entries of an inverse within the band.
        """
        n = self.size
        count = self.band.shape[1] // n
        diagonal, below = np.zeros((count, n, n)), np.zeros((count - 1, n, n))
        for i in range(n):
            for j in range(i + 1):
                diagonal[:, i, j] = self.band[i - j, j::n]
            for j in range(n):
                below[:, i, j] = self.band[n + i - j, j : (count - 1) * n : n]
        inverse = np.linalg.inv(diagonal)
        alone = inverse.transpose(0, 2, 1) @ inverse
        factors = below @ inverse[:-1]
        inside = alone.copy()
        for t in range(count - 2, -1, -1):
            inside[t] += factors[t].T @ inside[t + 1] @ factors[t]
        return inside, -factors.transpose(0, 2, 1) @ inside[1:]

    def log_likelihood(self, residuals: Array) -> float:
        """The log-likelihood of residuals ``(T, n)``, without its constant."""
        return -0.5 * (float(np.square(self.whiten(residuals)).sum()) + self.log_determinant)
