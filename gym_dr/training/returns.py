"""Returns and advantages of rollouts: pure functions of arrays."""

from __future__ import annotations

import numpy as np

from gym_dr.arrays import Floats, Mask


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
    carried = np.float32(gamma * gae_lambda) * (valid & ~(terminated | truncated))
    advantages = np.empty_like(rewards)
    following = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = np.add(deltas[t], carried[t] * following, out=advantages[t])
    return advantages


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
    returns = np.zeros_like(rewards)
    following = np.zeros(rewards.shape[1:], dtype=np.float64)
    for t in reversed(range(len(rewards))):
        following = rewards[t] + gamma * np.where(ends[t], final_values[t], following)
        returns[t] = following
    return returns
