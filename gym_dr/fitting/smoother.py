"""Likelihood of chains of hidden states: simulated steps with process noise between noisy, partly missing measurements.

The states follow ``x_{t+1} = f(x_t) + w_t``, ``w_t ~ N(0, C_t)``. Here ``C_t = Q + B_t + k R_t`` is the sum of process
noise, what linearization leaves out, and the simulator's own noise. Some coordinates are measured after some steps,
``y_t = x_t + e_t`` with ``e_t ~ N(0, S)``. All are deltas from states near the true ones, around which steps are
linearized: ``d_{t+1} = J_t d_t + drift_t + w_t``. First states are known as well as they are measured; a coordinate
that is not measured there has a wide prior.

A Kalman filter gives the likelihood of whole chains, with innovations that are each independent of all earlier
measurements; its adjoint gives the expected states and the derivatives by the noise's variances (Koopman and Shephard
1992, "Exact score for time series models in state space form"). Linearized again at the expected states, this is the
iterated smoother of Bell (1994), which is Gauss-Newton for all states at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.compiled import kalman

_JITTER = 1e-12  # of the variances of noise, added to process noise


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseVariances:
    """Variances of the noise of n coordinates."""

    measured: Array  # (n,) of measurement noise, S
    process: Array  # (n,) of process noise in a step as long as the mean, Q
    simulated: float = 1.0  # factor of the simulator's own noise, k; 1 as simulated


@dataclass(frozen=True, kw_only=True, eq=False)
class Deltas:
    """What is known of T steps in C chains, relative to the states around which they are linearized."""

    drift: Array  # (T, n) the simulated state after each step
    measured: Array  # (T, n) the measured state after each step; 0 where it is not measured
    first: Array  # (C, n) the measured or expected first state


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """T linearized steps of n coordinates in C chains."""

    jacobians: Array  # (T, n, n), J_t = d f(x_t) / d x_t
    second_order: Array  # (T, n, n) covariance of what linearization leaves out, B_t
    simulated: Array | None  # (T, n, n) covariance of the simulator's own noise, R_t; None if it has none
    lasting: Array  # (T,) how long each step lasts, over the mean, so that its process noise is Q times that
    begins: Mask  # (T,) whether a chain begins with step t
    observed: Mask  # (T, n) what is measured after each step
    first_observed: Mask  # (C, n) what is measured before the first step
    prior: Array  # (n,) variances of first states that are not measured

    def __len__(self) -> int:
        return len(self.jacobians)

    def rows(self, chosen: Indices, deltas: Deltas) -> tuple[Chains, Deltas]:
        """Some of the steps, in order; where others are left out before, a chain begins at the expected state."""
        begins = self.begins[chosen] | (np.diff(chosen, prepend=-9) != 1)
        starts = chosen[begins]
        whole, before = self.begins[starts][:, None], np.maximum(starts - 1, 0)
        number = (np.cumsum(self.begins) - 1)[starts]
        simulated = None if self.simulated is None else self.simulated[chosen]
        chains = replace(
            self,
            jacobians=self.jacobians[chosen],
            second_order=self.second_order[chosen],
            simulated=simulated,
            lasting=self.lasting[chosen],
            begins=begins,
            observed=self.observed[chosen],
            first_observed=np.where(whole, self.first_observed[number], self.observed[before]),
        )
        first = np.where(whole, deltas.first[number], deltas.measured[before])
        return chains, Deltas(drift=deltas.drift[chosen], measured=deltas.measured[chosen], first=first)

    def filter(self, noise: NoiseVariances) -> KalmanFilter:
        """The filter of these steps.

        Raises:
            numpy.linalg.LinAlgError: A covariance is not positive definite.
        """
        steps, n = self.observed.shape
        process = self.second_order.copy()
        if self.simulated is not None:
            process += noise.simulated * self.simulated
        own = noise.process * self.lasting[:, None] + _JITTER * (noise.measured + noise.process + 1e-30)
        process[:, np.arange(n), np.arange(n)] += own
        spread = np.where(self.first_observed, noise.measured, self.prior)
        first = spread[:, None, :] * np.eye(n)
        predicted, gains, variances = np.empty((steps, n, n)), np.zeros((steps, n, n)), np.empty((steps, n))
        seen, work = self.observed, np.empty((2, n, n))
        kalman.advance(
            self.jacobians, process, noise.measured, seen, self.begins, first, predicted, gains, variances, work
        )
        if not (variances > 0.0).all():  # nor if it is not a number
            raise np.linalg.LinAlgError("an innovation without a positive variance")
        return KalmanFilter(chains=self, first=spread, predicted=predicted, gains=gains, variances=variances)


@dataclass(frozen=True, kw_only=True, eq=False)
class KalmanFilter:
    """Gains and covariances of a filter, for any measurements."""

    chains: Chains
    first: Array  # (C, n) variances of first states
    predicted: Array  # (T, n, n) covariances of states after the steps, given all earlier measurements
    gains: Array  # (T, n, n) of each measured number
    variances: Array  # (T, n) of innovations; 1 where nothing is measured

    def innovations(self, deltas: Deltas) -> Array:
        """Innovations ``(T, n)``, independent with variance 1, in order of time; 0 where nothing is measured."""
        return np.asarray(self._followed(deltas)[0] / np.sqrt(self.variances))

    def expected(self, deltas: Deltas) -> Array:
        """States after the steps ``(T, n)`` as expected from all earlier measurements."""
        return self._followed(deltas)[1]

    def slopes(self, drift: Array, measured: Array | None = None) -> Array:
        """Derivatives of the innovations, ``(T, n, k)``, for those of the drift, and of what is measured."""
        first = np.zeros((len(self.chains.first_observed), *drift.shape[1:]))
        found, _ = self._follow(first, drift, np.zeros_like(drift) if measured is None else measured)
        return np.asarray(found / np.sqrt(self.variances)[..., None])

    def log_likelihood(self, innovations: Array) -> float:
        """The log-likelihood of innovations ``(T, n)``, without its constant."""
        return -0.5 * float(np.square(innovations).sum() + np.log(self.variances).sum())

    def smoothed(self, deltas: Deltas) -> tuple[Array, Array]:
        """The expected states given all measurements: first ones of chains ``(C, n)``, after the steps ``(T, n)``."""
        found, means = self._followed(deltas)
        pulls, first_pulls, _ = self._retreat(found)
        return deltas.first + self.first * first_pulls, means + np.einsum("tij,tj->ti", self.predicted, pulls)

    def gradient(self, innovations: Array) -> NoiseVariances:
        """Derivatives of ``log_likelihood`` by each of the ``NoiseVariances``, for innovations ``(T, n)``."""
        _, _, slopes = self._retreat(innovations * np.sqrt(self.variances))
        of_first = np.where(self.chains.first_observed, slopes[2], 0.0).sum(axis=0)
        return NoiseVariances(measured=slopes[0, 0] + of_first, process=slopes[1, 0], simulated=float(slopes[3, 0, 0]))

    def _followed(self, deltas: Deltas) -> tuple[Array, Array]:
        """Innovations and means, ``(T, n)``."""
        found, means = self._follow(deltas.first[..., None], deltas.drift[..., None], deltas.measured[..., None])
        return found[..., 0], means[..., 0]

    def _follow(self, first: Array, drift: Array, measured: Array) -> tuple[Array, Array]:
        """Innovations and means, of k filters at once."""
        own, means, found = self.chains, np.empty_like(drift), np.empty_like(drift)
        work = np.empty(drift.shape[1:])
        arrays = (np.ascontiguousarray(array) for array in (first, drift, measured))
        kalman.follow(own.jacobians, self.gains, own.observed, own.begins, *arrays, means, found, work)
        return found, means

    def _retreat(self, innovations: Array) -> tuple[Array, Array, Array]:
        """Derivatives of the log-likelihood: by states after the steps and first ones, and by variances."""
        own, (steps, n) = self.chains, self.variances.shape
        pulls, first_pulls = np.empty((steps, n)), np.empty(own.first_observed.shape)
        slopes, work = np.empty((4, *first_pulls.shape)), np.empty((4, n, n))
        simulated = np.empty((0, n, n)) if own.simulated is None else own.simulated
        kalman.retreat(
            own.jacobians,
            self.gains,
            self.variances,
            own.observed,
            own.begins,
            own.lasting,
            np.ascontiguousarray(innovations),
            simulated,
            pulls,
            first_pulls,
            slopes,
            work,
        )
        return pulls, first_pulls, slopes
