"""Returns and advantages of rollouts: pure functions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array, Floats, Mask
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY


def accumulated(added: npt.NDArray[Any], kept: npt.NDArray[Any], first: npt.NDArray[Any]) -> Array:
    """``x_t = added_t + kept_t * x_{t-1}`` in float64, for T steps of N columns.

    Args:
        added: Shape ``(T, N)``.
        kept: Shape ``(T, N)``.
        first: ``x_{-1}``, shape ``(N,)``.
    """
    sums, factors = np.array(added, np.float64, order="C"), np.ascontiguousarray(kept, np.float64)
    _accumulate(sums, factors, np.ascontiguousarray(first, np.float64))
    return sums


@njit(**ENTRY)  # type: ignore[untyped-decorator]  # numba has no types
def _accumulate(sums: Array, kept: Array, first: Array) -> None:
    for i in range(len(first)):
        sums[0, i] += kept[0, i] * first[i]
    for t in range(1, len(sums)):
        for i in range(len(first)):
            sums[t, i] += kept[t, i] * sums[t - 1, i]


cache_on_disk(_accumulate, "sums of returns and advantages")


def gae(
    rewards: Floats,
    values: Floats,
    next_values: Floats,
    terminated: Mask,
    truncated: Mask,
    valid: Mask,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Generalized advantage estimation (Schulman et al. 2016, "High-Dimensional Continuous Control Using GAE", eq. 16).

    ``delta_t = r_t + gamma * V(s_{t+1}) - V(s_t)`` and ``A_t = delta_t + gamma * lambda * A_{t+1}``. The next value is
    0 after termination; truncation and the end of the rollout keep it but drop the next advantage.

    Args:
        rewards: Shape ``(T, N)``.
        values: ``V(s_t)``, shape ``(T, N)``.
        next_values: ``V(s_{t+1})``, where an episode ends that of the final observation, shape ``(T, N)``.
        terminated: Whether the episode reached a terminal state at step t, shape ``(T, N)``.
        truncated: Whether the episode was truncated at step t, shape ``(T, N)``.
        valid: False on reset steps, which get advantage 0, shape ``(T, N)``.
        gamma: Discount factor.
        gae_lambda: Weight of later differences, 0 to 1.

    Returns:
        Advantages, shape ``(T, N)`` float32.
    """
    deltas = (rewards + gamma * next_values * ~terminated - values) * valid
    carried = gamma * gae_lambda * (valid & ~(terminated | truncated))
    return accumulated(deltas[::-1], carried[::-1], np.zeros(rewards.shape[1]))[::-1].astype(rewards.dtype)


def discounted_returns(rewards: Floats, ends: Mask, final_values: Floats, *, gamma: float) -> Floats:
    """Monte Carlo returns of consecutive episodes, in one pass from the last step to the first.

    ``G_t = r_t + gamma * G_{t+1}``, restarting at the end of each episode (Sutton and Barto 2018, eq. 3.9).

    Args:
        rewards: Shape ``(T, N)``.
        ends: Whether an episode ended at step t, shape ``(T, N)``.
        final_values: Bootstrap values where an episode ended: 0 after termination, and after truncation the value of
            the final observation, if known; ignored elsewhere. Shape ``(T, N)``.
        gamma: Discount factor.

    Returns:
        Returns, shape ``(T, N)`` float32; those of an unfinished episode cover only its steps so far.
    """
    added = rewards + gamma * np.where(ends, final_values, 0.0)
    return accumulated(added[::-1], gamma * ~ends[::-1], np.zeros(rewards.shape[1]))[::-1].astype(rewards.dtype)
