"""Prepares a rollout for learning: advantages, valid steps and minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from gym_dr.arrays import Floats
from gym_dr.training.returns import gae
from gym_dr.training.rollout import Rollout


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The B steps of a rollout that the algorithm learns from."""

    observations: Tensor  # (B, obs)
    critic_inputs: Tensor  # (B, obs), or (B, obs + k) if the critic observes the draw
    actions: Tensor  # (B, ...)
    advantages: Tensor  # (B,)
    returns: Tensor  # (B,) targets of the critic: advantage + value

    def __len__(self) -> int:
        return len(self.returns)

    def __getitem__(self, rows: Tensor | slice) -> Batch:
        return Batch(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def critic_inputs(rollout: Rollout) -> Tensor:
    """Inputs of the critic: observations ``(T + 1, N, obs)``, with the k values of the draw if it observes them."""
    return rollout.observations if rollout.context is None else torch.cat([rollout.observations, rollout.context], -1)


def advantages_of(rollout: Rollout, values: Tensor, *, gamma: float, gae_lambda: float, reward_scale: float) -> Floats:
    """Generalized advantage estimates of all steps, shape ``(T, N)``.

    Args:
        rollout: T steps of N sub-environments.
        values: The critic's values of all observations, shape ``(T + 1, N)``.
        gamma: Discount factor.
        gae_lambda: Lambda of generalized advantage estimation.
        reward_scale: Factor on rewards.
    """
    estimates = values.cpu().numpy()
    rewards = rollout.rewards * np.float32(reward_scale)
    ends = {"terminated": rollout.terminated, "truncated": rollout.truncated, "valid": rollout.valid}
    return gae(rewards, estimates[:-1], estimates[1:], **ends, gamma=gamma, gae_lambda=gae_lambda)


def make_batch(rollout: Rollout, values: Tensor, estimates: Floats) -> Batch:
    """The steps of a rollout to learn from, without resets and steps masked out of losses.

    Args:
        rollout: T steps of N sub-environments.
        values: The critic's values of all observations, shape ``(T + 1, N)``.
        estimates: Advantages from ``advantages_of``, shape ``(T, N)``.
    """
    advantages = torch.as_tensor(estimates, device=values.device)
    kept = rollout.valid if rollout.learned is None else rollout.valid & rollout.learned
    rows = torch.as_tensor(kept, device=values.device)
    return Batch(
        observations=rollout.observations[:-1][rows],
        critic_inputs=critic_inputs(rollout)[:-1][rows],
        actions=rollout.actions[rows],
        advantages=advantages[rows],
        returns=advantages[rows] + values[:-1][rows],
    )


def minibatches(size: int, count: int, generator: torch.Generator) -> Sequence[Tensor | slice]:
    """Rows of ``count`` random minibatches that partition ``size`` steps.

    A single minibatch is all steps in order, without random numbers.
    """
    return torch.randperm(size, generator=generator).chunk(count) if count > 1 else [slice(None)]
