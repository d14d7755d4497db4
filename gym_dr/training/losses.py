"""Losses of policy gradient methods: pure functions of tensors over the B steps of a batch."""

from __future__ import annotations

import torch
from torch import Tensor


def policy_gradient_loss(log_probs: Tensor, weights: Tensor, episodes: int | None = None) -> Tensor:
    """``-mean_t(log pi(a_t | s_t) * weight_t)``, whose gradient is that of the policy gradient theorem.

    Sutton et al. 2000, "Policy Gradient Methods for Reinforcement Learning with Function Approximation", theorem 1.
    With ``episodes``, the sum over steps divided by the number of episodes (Williams 1992): a step has the same weight
    in long and short episodes.

    Args:
        log_probs: Log-probabilities of the actions, shape ``(B,)``.
        weights: Advantages or returns, without a graph, shape ``(B,)``.
        episodes: Number of complete episodes that the steps make up; None for the mean over steps.
    """
    gains = weights * log_probs
    return -gains.mean() if episodes is None else -gains.sum() / episodes


def clipped_surrogate_loss(log_ratios: Tensor, advantages: Tensor, clip_range: float) -> Tensor:
    """``-mean_t(min(r_t A_t, clip(r_t, 1 - c, 1 + c) A_t))`` with ``r_t = pi(a_t | s_t) / pi_old(a_t | s_t)``.

    Schulman et al. 2017, "Proximal Policy Optimization Algorithms", eq. 7: once a ratio is clipped in the direction of
    its advantage, the step has no gradient.

    Args:
        log_ratios: Log-probabilities of the actions minus those under the policy that chose them, shape ``(B,)``.
        advantages: Without a graph, shape ``(B,)``.
        clip_range: c.
    """
    ratios = log_ratios.exp()
    clipped = ratios.clamp(1.0 - clip_range, 1.0 + clip_range)
    return -torch.minimum(ratios * advantages, clipped * advantages).mean()


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Mean squared error of the critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning").

    Args:
        values: Outputs of the critic, shape ``(B,)``.
        returns: Targets, without a graph, shape ``(B,)``.
    """
    return (returns - values).pow(2).mean()


def clipped_value_loss(values: Tensor, old_values: Tensor, returns: Tensor, clip_range: float) -> Tensor:
    """Mean of the larger of two squared errors: of the values, and of the values clipped around the old ones.

    Huang et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization", detail 9.

    Args:
        values: Outputs of the critic, shape ``(B,)``.
        old_values: The critic's outputs before the first epoch, without a graph, shape ``(B,)``.
        returns: Targets, without a graph, shape ``(B,)``.
        clip_range: Largest change from the old values, above 0, in units of (normalized) returns.
    """
    clipped = old_values + (values - old_values).clamp(-clip_range, clip_range)
    return torch.maximum((values - returns).pow(2), (clipped - returns).pow(2)).mean()


def normalize(advantages: Tensor) -> Tensor:
    """Advantages ``(B,)`` scaled to mean 0 and standard deviation 1; all 0 if they are equal.

    The learning rate then sets the size of a step, independently of the scale of rewards (Andrychowicz et al. 2021,
    "What Matters In On-Policy Reinforcement Learning?", C67).
    """
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
