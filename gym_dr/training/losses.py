"""Losses of policy gradients: pure functions of tensors over the B steps of a batch."""

from __future__ import annotations

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


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Mean squared error of the critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning").

    Args:
        values: The critic's, shape ``(B,)``.
        returns: What they should have been, without a graph, shape ``(B,)``.
    """
    return (returns - values).pow(2).mean()


def normalize(advantages: Tensor) -> Tensor:
    """Advantages ``(B,)`` scaled to mean 0 and standard deviation 1; all are 0 where they are equal.

    So the size of a step follows from the learning rate, not from the size of rewards (Andrychowicz et al. 2021, "What
    Matters In On-Policy Reinforcement Learning?", C67).
    """
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
