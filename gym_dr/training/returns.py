"""Advantages of rollouts: pure functions of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def gae(
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Mask,
    truncated: Mask,
    valid: Mask,
    *,
    gamma: float,
    gae_lambda: float,
) -> Array:
    """Generalized advantage estimation (Schulman et al. 2016, "High-Dimensional Continuous Control Using GAE", eq. 16).

    ``delta_t = r_t + gamma * V(s_{t+1}) - V(s_t)`` and ``A_t = delta_t + gamma * lambda * A_{t+1}``. Termination has no
    next value; truncation has one (the final observation's) but no next advantage; the last step of the rollout
    likewise.

    Args:
        rewards: Shape ``(T, N)``.
        values: ``V(s_t)``, shape ``(T, N)``.
        next_values: ``V(s_{t+1})``, where an episode ends that of its final observation, shape ``(T, N)``.
        terminated: Whether the episode ended by itself at step t, shape ``(T, N)``.
        truncated: Whether it was cut at step t, shape ``(T, N)``.
        valid: False on reset steps, which get advantage 0, shape ``(T, N)``.
        gamma: Discount factor.
        gae_lambda: Weight of later differences, 0 to 1.

    Returns:
        Advantages, shape ``(T, N)`` float32.
    """
    deltas = rewards + gamma * next_values * ~terminated - values
    carried = gamma * gae_lambda * ~(terminated | truncated)
    advantages = np.zeros_like(rewards)
    following = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = np.where(valid[t], deltas[t] + carried[t] * following, 0.0).astype(np.float32)
        advantages[t] = following
    return advantages
