"""Prepares a rollout for learning: advantages, valid steps or sequences of steps, and minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from gym_dr.arrays import Floats
from gym_dr.training.returns import gae
from gym_dr.training.rollout import Rollout, RolloutMemory


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What networks learn from in each step; steps, *, are B in a ``Batch`` and L times S in ``Sequences``."""

    observations: Tensor  # (*, obs)
    critic_inputs: Tensor  # (*, obs + k), with k numbers that the critic alone observes
    actions: Tensor  # (*, ...)
    advantages: Tensor  # (*)
    returns: Tensor  # (*) targets of the critic: advantage + value
    log_probs: Tensor  # (*) of the actions under the policy that chose them
    labels: Tensor | None = None  # (*, ...) to imitate, if any
    draws: Tensor | None = None  # (*, k) for the memory to predict, if any


@dataclass(frozen=True, kw_only=True)
class Batch(Learned):
    """The B steps of a rollout to learn from."""

    memories: Tensor | None = None  # (B, H) states of the memory after each observation; None without memory

    def __len__(self) -> int:
        return len(self.returns)

    def __getitem__(self, rows: Tensor | slice) -> Batch:
        return replace(self, **{name: part[rows] for name, part in vars(self).items() if part is not None})


@dataclass(frozen=True, kw_only=True)
class Sequences(Learned):
    """The steps of a rollout in S sequences of L steps, for networks with memory, in time-major order."""

    kept: Tensor  # (L, S) bool, False on steps to ignore in losses; each sequence has at least one True
    starts: Tensor  # (L, S) bool, whether an episode starts
    previous: Tensor  # (L, S, A) previous actions as memory sees them
    states: Tensor  # (1, S, H) the acting policy's state before the first step
    critic_states: Tensor | None  # (1, S, H) the same for a critic with its own memory

    def __len__(self) -> int:
        return self.kept.shape[1]

    def __getitem__(self, rows: Tensor | slice) -> Sequences:
        return replace(self, **{name: part[:, rows] for name, part in vars(self).items() if part is not None})

    def kept_steps(self, memories: Tensor, critic_memories: Tensor | None) -> Batch:
        """The steps to learn from, with the memory's state at each added to the networks' inputs.

        Args:
            memories: The actor's states, shape ``(L, S, H)``.
            critic_memories: The critic's states, if it has its own memory.
        """
        steps = {field.name: getattr(self, field.name) for field in fields(Learned)}
        steps["observations"] = torch.cat([self.observations, memories], -1)
        if critic_memories is not None:
            steps["critic_inputs"] = torch.cat([self.critic_inputs, critic_memories], -1)
        kept = {name: part[self.kept] for name, part in steps.items() if part is not None}
        return Batch(memories=memories[self.kept], **kept)


def critic_inputs(rollout: Rollout) -> Tensor:
    """Inputs of the critic: observations ``(T + 1, N, obs)``, with the k numbers that it alone observes."""
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
        rollout: T steps of N sub-environments, by a policy without memory.
        values: The critic's values of all observations, shape ``(T + 1, N)``.
        estimates: Advantages from ``advantages_of``, shape ``(T, N)``.
    """
    rows = torch.as_tensor(np.flatnonzero(rollout.valid), device=values.device)

    def chosen(steps: Tensor) -> Tensor:
        return steps.flatten(0, 1).index_select(0, rows)  # faster than a mask, which is counted each time

    observations, advantages = chosen(rollout.observations), chosen(torch.as_tensor(estimates, device=values.device))
    return Batch(
        observations=observations,
        critic_inputs=observations if rollout.context is None else chosen(critic_inputs(rollout)),
        actions=chosen(rollout.actions),
        advantages=advantages,
        returns=advantages + chosen(values),
        log_probs=chosen(rollout.log_probs),
        labels=None if rollout.labels is None else chosen(rollout.labels),
    )


def make_sequences(
    rollout: Rollout, memory: RolloutMemory, values: Tensor, estimates: Floats, length: int
) -> Sequences:
    """Cuts a rollout into sequences, and leaves out sequences without a step to learn from.

    Args:
        rollout: T steps of N sub-environments.
        memory: The rollout's memory.
        values: See ``make_batch``.
        estimates: See ``make_batch``.
        length: L, a divisor of T.
    """
    advantages = torch.as_tensor(estimates, device=values.device)
    kept = _cut(torch.as_tensor(rollout.valid, device=values.device), length)
    chosen = kept.any(0)
    steps = {
        "observations": rollout.observations[:-1],
        "critic_inputs": critic_inputs(rollout)[:-1],
        "actions": rollout.actions,
        "advantages": advantages,
        "returns": advantages + values[:-1],
        "log_probs": rollout.log_probs,
        "starts": memory.starts[:-1],
        "previous": memory.previous[:-1],
        **({} if rollout.labels is None else {"labels": rollout.labels}),
        **({} if rollout.draws is None else {"draws": rollout.draws[:-1]}),
    }
    return Sequences(
        kept=kept[:, chosen],
        states=_cut(memory.states, length)[:1, chosen],
        critic_states=None if memory.critic_states is None else _cut(memory.critic_states, length)[:1, chosen],
        **{name: _cut(part, length)[:, chosen] for name, part in steps.items()},
    )


def _cut(steps: Tensor, length: int) -> Tensor:
    """Sequences of ``length`` consecutive steps: ``(T, N, ...)`` -> ``(L, T / L * N, ...)``."""
    count, num_envs, *rest = steps.shape
    return steps.reshape(count // length, length, num_envs, *rest).transpose(0, 1).flatten(1, 2)


def minibatches(size: int, count: int, generator: torch.Generator) -> Sequence[Tensor | slice]:
    """Rows of ``count`` random minibatches that partition ``size`` steps or sequences.

    A single minibatch holds all steps in order and takes no random numbers.
    """
    if count == 1:
        return [slice(None)]
    shuffled = torch.randperm(size, generator=generator, device="cpu")
    parts = shuffled.chunk(count)  # all of one size but the last, and so maybe fewer than ``count``
    return parts if len(parts) == count or size < count else shuffled.tensor_split(count)
