"""Rollouts that tests learn from, made without an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.batch import Batch, advantages_of, make_batch
from gym_dr.training.rollout import Rollout


def known_rollout() -> Rollout:
    """Two steps, two sub-environments; the second one's second step is a reset."""
    return Rollout(
        observations=torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]),
        actions=torch.tensor([[0, 1], [1, 0]]),
        rewards=np.array([[1.0, 2.0], [3.0, 0.0]], dtype=np.float32),
        terminated=np.array([[False, True], [False, False]]),
        truncated=np.zeros((2, 2), dtype=bool),
        valid=np.array([[True, True], [True, False]]),
    )


def cart_pole_rollout() -> Rollout:
    """Four steps of two sub-environments, whose episodes terminate with the last."""
    torch.manual_seed(0)
    false = np.zeros((4, 2), dtype=bool)
    terminated = false.copy()
    terminated[-1] = True
    return Rollout(
        observations=torch.randn(5, 2, 4),
        actions=torch.randint(2, (4, 2)),
        rewards=np.ones((4, 2), dtype=np.float32),
        terminated=terminated,
        truncated=false,
        valid=~false,
    )


def batch_of(agent: ActorCritic, rollout: Rollout, config: Any) -> Batch:
    """What an agent learns from in training."""
    values = agent.values_of(rollout)
    advantages = advantages_of(
        rollout, values, gamma=config.gamma, gae_lambda=config.gae_lambda, reward_scale=agent.reward_scale
    )
    return make_batch(rollout, values, advantages)
