"""Losses of policy gradients: pure functions of tensors over the B steps of a batch."""

from __future__ import annotations

import torch
from torch import Tensor


def policy_gradient_loss(log_probs: Tensor, weights: Tensor, episodes: int | None = None) -> Tensor:
    """``-mean_t(log pi(a_t | s_t) * weight_t)``, whose gradient is that of the policy gradient theorem.

    Sutton et al. 2000, "Policy Gradient Methods for Reinforcement Learning with Function Approximation", theorem 1.
    With ``episodes`` it is the sum over steps divided by their number (Williams 1992), so that a step counts as much in
    a long episode as in a short one.

    Args:
        log_probs: Of the actions that were taken, shape ``(B,)``.
        weights: Advantages or returns, without a graph, shape ``(B,)``.
        episodes: How many complete episodes the steps are of; None for the mean over steps.
    """
    gains = weights * log_probs
    return -gains.mean() if episodes is None else -gains.sum() / episodes


def clipped_surrogate_loss(log_ratios: Tensor, advantages: Tensor, clip_range: float) -> Tensor:
    """``-mean_t(min(r_t A_t, clip(r_t, 1 - c, 1 + c) A_t))`` with ``r_t = pi(a_t | s_t) / pi_old(a_t | s_t)``.

    Schulman et al. 2017, "Proximal Policy Optimization Algorithms", eq. 7: a step that has gone far enough in the
    advantage's direction pulls no further.

    Args:
        log_ratios: Log-probabilities of the actions less those by the policy that took them, shape ``(B,)``.
        advantages: Without a graph, shape ``(B,)``.
        clip_range: c.
    """
    ratios = log_ratios.exp()
    clipped = ratios.clamp(1.0 - clip_range, 1.0 + clip_range)
    return -torch.minimum(ratios * advantages, clipped * advantages).mean()


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Mean squared error of the critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning").

    Args:
        values: The critic's, shape ``(B,)``.
        returns: What they should have been, without a graph, shape ``(B,)``.
    """
    return (returns - values).pow(2).mean()


def clipped_value_loss(values: Tensor, old_values: Tensor, returns: Tensor, clip_range: float) -> Tensor:
    """The larger of two squared errors: the critic's, and that of its values at most ``clip_range`` from the old ones.

    Huang et al. 2022, "The 37 Implementation Details of Proximal Policy Optimization", detail 9.

    Args:
        values: The critic's, shape ``(B,)``.
        old_values: Those before the first epoch, without a graph, shape ``(B,)``.
        returns: What they should have been, without a graph, shape ``(B,)``.
        clip_range: Above 0, in units of (normalised) returns.
    """
    clipped = old_values + (values - old_values).clamp(-clip_range, clip_range)
    return torch.maximum((values - returns).pow(2), (clipped - returns).pow(2)).mean()


def normalize(advantages: Tensor) -> Tensor:
    """Advantages ``(B,)`` scaled to mean 0 and standard deviation 1; all are 0 where they are equal.

    So the size of a step follows from the learning rate, not from the size of rewards (Andrychowicz et al. 2021, "What
    Matters In On-Policy Reinforcement Learning?", C67).
    """
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
