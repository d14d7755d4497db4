"""The Kalman filter of chains of states and its adjoint, in compiled code.

Measured numbers have independent errors and enter one by one, so nothing is inverted. A chain begins with the
covariance of its first state; step t of T leads to a state of which the coordinates ``observed`` are measured.
"""

from __future__ import annotations

from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL


@njit(**KERNEL)
def _copy(target, source):
    for i in range(len(source)):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@njit(**KERNEL)
def _between(left, middle, transposed, half, added, found):
    """Fills ``found`` with J M J' + A, or with J' M J + A where ``transposed``, symmetric; ``half`` is for work."""
    n = len(middle)
    for i in range(n):
        half[i] = 0.0
        for k in range(n):
            factor = left[k, i] if transposed else left[i, k]
            if factor != 0.0:
                for j in range(n):
                    half[i, j] += factor * middle[k, j]
    for i in range(n):
        for j in range(i + 1):
            total = added[i, j]
            for k in range(n):
                total += half[i, k] * (left[k, j] if transposed else left[j, k])
            found[i, j] = total
            found[j, i] = total


@njit(**ENTRY)
def advance(jacobians, noise, errors, observed, begins, first, predicted, gains, variances, work):
    """The covariances of a filter.

    Args:
        jacobians: Shape ``(T, n, n)``.
        noise: Covariances of process noise, ``(T, n, n)``.
        errors: Variances of measurement noise, ``(n,)``.
        observed: Shape ``(T, n)``.
        begins: Which steps are the first of their chain, ``(T,)``.
        first: Covariances of the first states of chains, ``(C, n, n)``.
        predicted: Filled with covariances of the states after the steps, before they are measured, ``(T, n, n)``.
        gains: Filled with the gain of each measured number, ``(T, n, n)``; row k is that of coordinate k.
        variances: Filled with variances of innovations, ``(T, n)``; 1 where nothing is measured.
        work: Shape ``(2, n, n)``.
    """
    steps, n = variances.shape
    covariance, half = work
    chain = -1
    for t in range(steps):
        if begins[t]:
            chain += 1
            _copy(covariance, first[chain])
        _between(jacobians[t], covariance, False, half, noise[t], covariance)
        _copy(predicted[t], covariance)
        for k in range(n):
            variances[t, k] = 1.0
            if observed[t, k]:
                own, error = covariance[k, k], errors[k]
                variances[t, k] = own + error
                gain = gains[t, k]
                for i in range(n):
                    gain[i] = covariance[k, i] / (own + error)
                for i in range(n):
                    for j in range(n):
                        covariance[i, j] -= gain[i] * gain[j] * (own + error)
                for i in range(n):  # the same without cancellation where errors are small
                    covariance[k, i] = gain[i] * error
                    covariance[i, k] = gain[i] * error


@njit(**ENTRY)
def follow(jacobians, gains, observed, begins, first, drift, measured, means, innovations, work):
    """The means of k filters at once, and their innovations.

    Args:
        jacobians: Shape ``(T, n, n)``.
        gains: From ``advance``.
        observed: Shape ``(T, n)``.
        begins: Shape ``(T,)``.
        first: Means of the first states of chains, ``(C, n, k)``.
        drift: What each step adds, ``(T, n, k)``.
        measured: Shape ``(T, n, k)``.
        means: Filled with means of the states after the steps, before they are measured, ``(T, n, k)``.
        innovations: Filled with measured minus expected numbers, ``(T, n, k)``; 0 where nothing is measured.
        work: Shape ``(n, k)``.
    """
    steps, n, count = means.shape
    chain = -1
    for t in range(steps):
        if begins[t]:
            chain += 1
            _copy(work, first[chain])
        _copy(means[t], drift[t])
        for i in range(n):
            for j in range(n):
                for c in range(count):
                    means[t, i, c] += jacobians[t, i, j] * work[j, c]
        _copy(work, means[t])
        for k in range(n):
            for c in range(count):
                innovations[t, k, c] = 0.0
            if observed[t, k]:
                for c in range(count):
                    found = measured[t, k, c] - work[k, c]
                    innovations[t, k, c] = found
                    for i in range(n):
                        work[i, c] += gains[t, k, i] * found


@njit(**ENTRY)
def retreat(
    jacobians, gains, variances, observed, begins, lasting, innovations, simulated, pulls, first_pulls, slopes, work
):
    """The adjoint of a filter (de Jong 1989; Koopman and Shephard 1992), backward in time.

    Args:
        jacobians: Shape ``(T, n, n)``.
        gains: From ``advance``.
        variances: From ``advance``.
        observed: Shape ``(T, n)``.
        begins: Shape ``(T,)``.
        lasting: How long each step lasts, over the mean, ``(T,)``.
        innovations: Shape ``(T, n)``.
        simulated: Covariances of the simulator's own noise, ``(T, n, n)``; no rows without.
        pulls: Filled with derivatives of the log-likelihood by the means of states after the steps, ``(T, n)``.
        first_pulls: The same for the first states of chains, ``(C, n)``.
        slopes: Filled with derivatives by the variances of measurement noise after the steps, of process noise, by the
            variances of first states, summed over steps, and by the factor of ``simulated``, ``(4, C, n)``; the first
            two and the last in the row of chain 0.
        work: Shape ``(4, n, n)``.
    """
    steps, n = variances.shape
    information, half, other = work[0], work[1], work[2]
    pull, pushed = work[3, 0], work[2, 0]
    chain = len(first_pulls) - 1
    slopes[:] = 0.0
    information[:] = 0.0
    pull[:] = 0.0
    for t in range(steps - 1, -1, -1):
        for k in range(n - 1, -1, -1):
            if observed[t, k]:
                gain = gains[t, k]
                along, bent = 0.0, 0.0
                for i in range(n):
                    along += gain[i] * pull[i]
                    total = 0.0
                    for j in range(n):
                        total += information[i, j] * gain[j]
                    pushed[i] = total
                    bent += gain[i] * total
                error = innovations[t, k] / variances[t, k] - along
                spread = 1.0 / variances[t, k] + bent
                slopes[0, 0, k] += 0.5 * (error * error - spread)
                pull[k] += error
                for i in range(n):
                    information[k, i] -= pushed[i]
                    information[i, k] -= pushed[i]
                information[k, k] += spread
        for i in range(n):
            pulls[t, i] = pull[i]
            slopes[1, 0, i] += 0.5 * lasting[t] * (pull[i] * pull[i] - information[i, i])
        if len(simulated) > 0:
            for i in range(n):
                for j in range(n):
                    slopes[3, 0, 0] += 0.5 * simulated[t, i, j] * (pull[i] * pull[j] - information[i, j])
        other[:] = 0.0
        _between(jacobians[t], information, True, half, other, information)
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += jacobians[t, j, i] * pulls[t, j]
            pull[i] = total
        if begins[t]:
            for i in range(n):
                first_pulls[chain, i] = pull[i]
                slopes[2, chain, i] = 0.5 * (pull[i] * pull[i] - information[i, i])
            chain -= 1
            information[:] = 0.0
            pull[:] = 0.0


cache_on_disk(advance, "Kalman filters")
cache_on_disk(follow, "Kalman filters")
cache_on_disk(retreat, "Kalman smoothers")
