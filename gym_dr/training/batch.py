"""A rollout made ready for learning: advantages, and the steps that count, in minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from gym_dr.training.returns import gae
from gym_dr.training.rollout import Rollout


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The steps of a rollout that count, reset steps left out; B of them."""

    observations: Tensor  # (B, obs)
    critic_inputs: Tensor  # (B, obs), or (B, obs + k) with the draws
    actions: Tensor  # (B, ...)
    advantages: Tensor  # (B,)
    returns: Tensor  # (B,) what the critic should have said: advantage + value

    def __len__(self) -> int:
        return len(self.returns)

    def __getitem__(self, rows: Tensor | slice) -> Batch:
        return Batch(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def critic_inputs(rollout: Rollout) -> Tensor:
    """What the critic is given: observations ``(T + 1, N, obs)``, with the current draws if it may see them."""
    return rollout.observations if rollout.context is None else torch.cat([rollout.observations, rollout.context], -1)


def make_batch(rollout: Rollout, values: Tensor, *, gamma: float, gae_lambda: float, reward_scale: float) -> Batch:
    """Advantages and returns of a rollout, reset steps left out.

    Args:
        rollout: T steps of N sub-environments.
        values: The critic's, of all observations, shape ``(T + 1, N)``.
        gamma: Discount factor.
        gae_lambda: Lambda of generalized advantage estimation.
        reward_scale: Rewards are multiplied by it.
    """
    estimates = values.cpu().numpy()
    rewards = rollout.rewards * np.float32(reward_scale)
    ends = {"terminated": rollout.terminated, "truncated": rollout.truncated, "valid": rollout.valid}
    advantages = torch.as_tensor(
        gae(rewards, estimates[:-1], estimates[1:], **ends, gamma=gamma, gae_lambda=gae_lambda), device=values.device
    )
    valid = torch.as_tensor(rollout.valid, device=values.device)
    return Batch(
        observations=rollout.observations[:-1][valid],
        critic_inputs=critic_inputs(rollout)[:-1][valid],
        actions=rollout.actions[valid],
        advantages=advantages[valid],
        returns=advantages[valid] + values[:-1][valid],
    )


def minibatches(size: int, count: int, generator: torch.Generator) -> Sequence[Tensor | slice]:
    """The rows of ``count`` minibatches that divide ``size`` steps at random.

    One is all steps as they are: their order does not matter, and nothing is drawn.
    """
    return torch.randperm(size, generator=generator).chunk(count) if count > 1 else [slice(None)]
