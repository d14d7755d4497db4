"""Advantage actor-critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", without the A).

One update: collect a rollout without a graph, estimate advantages, recompute log-probabilities in one batch (or in a
few minibatches, each used once), and take one gradient step for the actor and one for the critic on each.

The critic may be shown the draw that the actor must do without (Pinto et al. 2018, "Asymmetric Actor Critic for
Image-Based Robot Learning"): it is needed in training only, where the draw is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from gym_dr.randomization.context import NETWORK_SPAN, context_ranges
from gym_dr.training.api import Policy, Session, seed_for
from gym_dr.training.config import A2CConfig
from gym_dr.training.networks import (
    gradient_step,
    load_optimizers,
    load_weights,
    make_actor,
    mlp,
    observation_size,
    orthogonal,
    set_learning_rates,
)
from gym_dr.training.returns import gae
from gym_dr.training.rollout import Rollout, RolloutCollector
from gym_dr.training.sampling import make_sampler, trained_policy
from gym_dr.wrappers.vector_params import spaces_of

LOSSES = ("actor_loss", "critic_loss", "entropy")  # columns of the metrics
_OPTIMIZERS = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The steps of a rollout that count, reset steps left out; B of them."""

    observations: Tensor  # (B, obs)
    critic_inputs: Tensor  # (B, obs), or (B, obs + k) with the draws
    actions: Tensor  # (B, ...)
    advantages: Tensor  # (B,)
    returns: Tensor  # (B,) what the critic should have said: advantage + value

    def part(self, rows: Tensor) -> Batch:
        """Those of the steps whose numbers are in ``rows``."""
        rows = rows.to(self.returns.device)
        return Batch(
            observations=self.observations[rows],
            critic_inputs=self.critic_inputs[rows],
            actions=self.actions[rows],
            advantages=self.advantages[rows],
            returns=self.returns[rows],
        )


class A2C:
    """Actor, critic, their optimizers and the generator that samples actions."""

    def __init__(self, envs: VectorEnv[Any, Any, Any], config: A2CConfig, seed: int, device: str) -> None:
        """Builds networks for the environment's spaces, initialised from ``seed``.

        Raises:
            ConfigError: The spaces are not of a kind that the networks know.
            RandomizationError: The critic is to see draws, but nothing is randomized.
        """
        self.config = config
        # what the critic alone sees
        self.shown = context_ranges(*spaces_of(envs), span=NETWORK_SPAN) if config.critic_context else ()
        with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global generator
            torch.manual_seed(seed_for(seed, stream=2, index=0))
            self.actor = make_actor(envs, config.hidden_sizes, config.activation)
            self.critic = mlp(observation_size(envs) + len(self.shown), config.hidden_sizes, 1, config.activation)
            if config.init == "orthogonal":
                orthogonal(self.actor.network, last_gain=0.01)  # all actions are as likely at first
                orthogonal(self.critic, last_gain=1.0)
        self.actor.to(device)
        self.critic.to(device)
        optimizer = _OPTIMIZERS[config.optimizer]
        eps = config.optimizer_eps
        self.actor_optimizer = optimizer(self.actor.parameters(), lr=config.actor_lr, eps=eps)
        self.critic_optimizer = optimizer(self.critic.parameters(), lr=config.critic_lr, eps=eps)
        self.entropy_coef = config.entropy_coef
        self.generator = torch.Generator().manual_seed(seed_for(seed, stream=2, index=1))
        self.sampler = make_sampler(self.actor, self.generator, device, envs.num_envs)

    def value(self, inputs: Tensor) -> Tensor:
        """The critic's values, shape of ``inputs`` (see ``critic_inputs``) without its last axis."""
        values: Tensor = self.critic(inputs).squeeze(-1)
        return values

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One gradient step for each network on each minibatch; returns mean losses and entropy.

        Raises:
            NotFiniteError: The loss or a gradient is not finite; that minibatch and those after it have changed
                nothing.
        """
        with torch.no_grad():
            values = self.value(critic_inputs(rollout))
        batch = make_batch(rollout, values, self.config)
        # each sample is used once; in one piece its order does not matter
        order = torch.randperm(len(batch.returns), generator=self.generator) if self.config.minibatches > 1 else None
        parts = [batch] if order is None else [batch.part(rows) for rows in order.chunk(self.config.minibatches)]
        losses = [self._step(part) for part in parts]
        return {name: sum(loss[name] for loss in losses) / len(losses) for name in losses[0]}

    def _step(self, batch: Batch) -> dict[str, float]:
        """One gradient step for each network."""
        log_probs, entropies = self.actor.log_prob_and_entropy(batch.observations, batch.actions)
        policy_loss, entropy = -(batch.advantages * log_probs).mean(), entropies.mean()
        actor_loss = policy_loss - self.entropy_coef * entropy
        critic_loss = (batch.returns - self.value(batch.critic_inputs)).pow(2).mean()
        trained = [(self.actor_optimizer, self.actor), (self.critic_optimizer, self.critic)]
        gradient_step(actor_loss + critic_loss, trained, self.config.max_grad_norm)  # no weight is in both
        return {"actor_loss": actor_loss.item(), "critic_loss": critic_loss.item(), "entropy": entropy.item()}

    def schedule(self, update: int) -> None:
        """Sets the learning rates and the entropy's weight for an update."""
        left = 1.0 - update / self.config.updates if self.config.schedule == "linear" else 1.0
        self.entropy_coef = self.config.entropy_coef * left
        set_learning_rates(
            [(self.actor_optimizer, self.config.actor_lr), (self.critic_optimizer, self.config.critic_lr)], left
        )

    def state(self) -> dict[str, Any]:
        """All that training needs to go on, as tensors."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "actor_optimizer": self.actor_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what ``state`` gave.

        Raises:
            CheckpointError: Something is missing or does not fit.
        """
        load_weights(self.actor, state, "actor")
        load_weights(self.critic, state, "critic")
        load_optimizers(self, state, ("actor_optimizer", "critic_optimizer"))


def critic_inputs(rollout: Rollout) -> Tensor:
    """What the critic is given: observations ``(T + 1, N, obs)``, with the draws in force if it may see them."""
    return rollout.observations if rollout.context is None else torch.cat([rollout.observations, rollout.context], -1)


def make_batch(rollout: Rollout, values: Tensor, config: A2CConfig) -> Batch:
    """Advantages and returns of a rollout, reset steps left out.

    Args:
        rollout: T steps of N sub-environments.
        values: The critic's, of all observations, shape ``(T + 1, N)``.
        config: Reward scale, discount, lambda and normalisation.
    """
    estimates = values.cpu().numpy()
    advantages = gae(
        rollout.rewards * np.float32(config.reward_scale),
        estimates[:-1],
        estimates[1:],
        rollout.terminated,
        rollout.truncated,
        rollout.valid,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
    )
    device = rollout.observations.device
    valid = torch.as_tensor(rollout.valid, device=device)
    counted = torch.as_tensor(advantages, device=device)[valid]
    returns = counted + values[:-1][valid]
    if config.normalize_advantages:
        counted = (counted - counted.mean()) / (counted.std(correction=0) + 1e-8)
    return Batch(
        observations=rollout.observations[:-1][valid],
        critic_inputs=critic_inputs(rollout)[:-1][valid],
        actions=rollout.actions[valid],
        advantages=counted,
        returns=returns,
    )


def train(session: Session, config: A2CConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(config.rollout_steps)
    agent = A2C(envs, config, session.seed, session.device)
    if session.restored is not None:
        agent.load_state(session.restored)
    collector = RolloutCollector(envs, config.rollout_steps, session.device, agent.shown)
    for update in range(session.first_update, config.updates):
        seed = session.segment_seed(update)
        if seed is not None:
            collector.reset(seed)
        agent.schedule(update)
        steps, losses = 0, dict.fromkeys(LOSSES, math.nan)
        with session.attempt(update):
            rollout = collector.collect(agent.sampler)
            steps, losses = int(rollout.valid.sum()), agent.update(rollout)
        session.log(update, steps=steps, **losses)
        session.save(update, agent.state)


def load_policy(state: Mapping[str, Any], envs: VectorEnv[Any, Any, Any], config: A2CConfig) -> Policy:
    """The trained actor; see ``trained_policy``.

    Raises:
        CheckpointError: The weights do not fit the configuration or the environment.
    """
    actor = make_actor(envs, config.hidden_sizes, config.activation)
    load_weights(actor, state, "actor")
    return trained_policy(actor)
