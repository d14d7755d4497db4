"""Likelihood of a chain of noisy states: errors of measurement in every state, one simulated step between neighbors.

With measured states ``s_t = x_t + e_t``, ``e_t ~ N(0, S)``, and ``x_{t+1} = f(x_t) + w_t``, ``w_t ~ N(0, C_t)``, where
``C_t = Q + B_t + k R_t`` has process noise Q, what the linearization leaves out and the simulator's own randomness, the
residuals ``r_t = s_{t+1} - f(x_t) - J_t (s_t - x_t)``, linearized at states x near the true ones, are Gaussian. Their
covariance is block tridiagonal::

    cov(r_t, r_t) = S + J_t S J_t' + C_t          cov(r_t, r_{t+1}) = -S J_{t+1}'

so a banded Cholesky factor gives the likelihood of whole episodes. This is multiple shooting with one interval a step
(Bock 1983, "Recent advances in parameter identification techniques for O.D.E."), and its whitened residuals are the
innovations of a Kalman filter: each is independent of all that was measured before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from gym_dr.arrays import Array, Indices, Mask

_JITTER = 1e-12  # of the variances, on the diagonal


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """How large errors are: variances of n coordinates."""

    measured: Array  # (n,) of the errors of measurement, S
    process: Array  # (n,) of what happens in a step beside the simulator, Q
    own: float = 1.0  # scale of the simulator's own randomness, 1 as simulated


@dataclass(frozen=True, kw_only=True, eq=False)
class Links:
    """How T residuals of n coordinates hang together, at fixed states."""

    jacobians: Array  # (T, n, n), d f(x_t) / d x_t
    bent: Array  # (T, n, n) covariance of what these leave out
    spread: Array | None  # (T, n, n) covariance of the simulator's own randomness; None if it has none
    joined: Mask  # (T,) whether row t and row t + 1 share a state

    def __len__(self) -> int:
        return len(self.jacobians)

    def rows(self, chosen: Indices) -> Links:
        """Some of the rows, in order."""
        joined = self.joined[chosen] & (np.diff(chosen, append=-1) == 1)
        spread = None if self.spread is None else self.spread[chosen]
        return Links(jacobians=self.jacobians[chosen], bent=self.bent[chosen], spread=spread, joined=joined)

    def factor(self, sizes: Sizes) -> Factor:
        """Factors the covariance of the residuals.

        Raises:
            numpy.linalg.LinAlgError: It is not positive definite.
        """
        count, n = self.jacobians.shape[:2]
        scaled = self.jacobians * sizes.measured  # J S
        diagonal = scaled @ self.jacobians.transpose(0, 2, 1) + self.bent
        if self.spread is not None:
            diagonal = diagonal + sizes.own * self.spread
        own = sizes.measured + sizes.process
        diagonal[:, np.arange(n), np.arange(n)] += own + _JITTER * (own + 1e-30)
        below = -scaled[1:] * self.joined[:-1, None, None]  # cov(r_{t+1}, r_t) = -J_{t+1} S
        band = np.zeros((2 * n, count * n))
        for i in range(n):
            for j in range(i + 1):  # entry (i, j) of a diagonal block
                band[i - j, j::n] = diagonal[:, i, j]
            for j in range(n):
                band[n + i - j, j : (count - 1) * n : n] = below[:, i, j]
        return Factor(band=scipy.linalg.cholesky_banded(band, lower=True, check_finite=False), size=n)

    def slopes(self, residuals: Array, factor: Factor) -> Sizes:
        """Derivatives of ``Factor.log_likelihood`` of residuals by ``Sizes``."""
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
        if self.spread is not None:
            traces = np.einsum("tij,tji->", inside, self.spread)
            scale = 0.5 * float(np.einsum("ti,tij,tj->", weights, self.spread, weights) - traces)
        process = 0.5 * (np.square(weights) - own).sum(axis=0)
        return Sizes(measured=0.5 * (quadratic - trace), process=process, own=scale)

    def errors(self, residuals: Array, sizes: Sizes, factor: Factor) -> Array:
        """Expected errors of measurement ``(T, 2, n)`` of the states before and after each step, given residuals."""
        weights = factor.solve(residuals)
        before = -np.einsum("tji,tj->ti", self.jacobians, weights)
        after = weights.copy()
        joint = self.joined[:-1, None]
        together = after[:-1] + before[1:]
        after[:-1] = np.where(joint, together, after[:-1])
        before[1:] = np.where(joint, together, before[1:])
        return np.stack([before, after], axis=1) * sizes.measured


@dataclass(frozen=True, kw_only=True, eq=False)
class Factor:
    """A Cholesky factor of the covariance of residuals."""

    band: Array  # lower banded
    size: int  # coordinates

    @property
    def log_determinant(self) -> float:
        """Of the covariance."""
        return 2.0 * float(np.log(self.band[0]).sum())

    def whiten(self, residuals: Array) -> Array:
        """Innovations, independent with variance 1, in order of time: ``(T, n)``, or ``(T, n, k)`` for k at once."""
        flat = residuals.reshape(residuals.shape[0] * self.size, -1)
        solved, info = lapack.dtbtrs(self.band, flat, uplo="L")
        if info:
            raise np.linalg.LinAlgError(f"dtbtrs returned {info}")
        white: Array = solved.reshape(residuals.shape)
        return white

    def solve(self, residuals: Array) -> Array:
        """The inverse of the covariance times residuals ``(T, n)``."""
        solved: Array = scipy.linalg.cho_solve_banded((self.band, True), residuals.reshape(-1), check_finite=False)
        return solved.reshape(residuals.shape)

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
        """Of residuals ``(T, n)``, without the constant."""
        return -0.5 * (float(np.square(self.whiten(residuals)).sum()) + self.log_determinant)
