"""Advantage actor-critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", without the A).

One update: collect a rollout without a graph, estimate advantages, recompute log-probabilities in one batch (or in a
few minibatches, each used once), and take one gradient step for the actor and one for the critic on each. The entropy
bonus prevents premature convergence (Williams and Peng 1991, "Function Optimization Using Connectionist Reinforcement
Learning Algorithms").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from gymnasium.vector import VectorEnv

from gym_dr.training.actor_critic import ActorCritic, actor_policy, shared_options, train_on_rollouts
from gym_dr.training.api import Policy, Session
from gym_dr.training.batch import Batch, minibatches
from gym_dr.training.config import A2CConfig
from gym_dr.training.losses import normalize, policy_gradient_loss, value_loss
from gym_dr.training.networks import make_actor

LOSSES = ("actor_loss", "critic_loss", "entropy")  # columns of the metrics
_OPTIMIZERS: dict[str, Any] = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}


def train(session: Session, config: A2CConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    train_on_rollouts(session, config, make_agent, learn, LOSSES)


def make_agent(envs: VectorEnv[Any, Any, Any], config: A2CConfig, seed: int, device: str) -> ActorCritic:
    """Builds the networks and optimizers of a configuration; see ``ActorCritic``."""
    optimizer = partial(_OPTIMIZERS[config.optimizer], eps=config.optimizer_eps)
    return ActorCritic(envs, seed, device, make_optimizer=optimizer, **shared_options(config))


def learn(agent: ActorCritic, batch: Batch, config: A2CConfig) -> dict[str, float]:
    """Learns from a rollout's steps once; returns the means of ``LOSSES`` over minibatches.

    Raises:
        NotFiniteError: The loss or a gradient is not finite; this minibatch and later ones have changed nothing.
    """
    if config.normalize_advantages:
        batch = replace(batch, advantages=normalize(batch.advantages))
    losses = []
    for rows in minibatches(len(batch), config.minibatches, agent.generator):
        part = batch[rows]
        log_probs, entropies = agent.actor.log_prob_and_entropy(part.observations, part.actions)
        entropy = entropies.mean()
        actor_loss = policy_gradient_loss(log_probs, part.advantages) - agent.entropy_coef * entropy
        critic_loss = value_loss(agent.value(part.critic_inputs), part.returns)
        agent.gradient_step(actor_loss + critic_loss)  # the networks share no weights
        losses.append((actor_loss.item(), critic_loss.item(), entropy.item()))
    return {name: sum(each) / len(each) for name, each in zip(LOSSES, zip(*losses, strict=True), strict=True)}


def load_policy(
    state: Mapping[str, Any], envs: VectorEnv[Any, Any, Any], config: A2CConfig, *, deterministic: bool = False
) -> Policy:
    """The trained actor; see ``actor_policy``."""
    normalized = config.normalize_observations
    actor = make_actor(envs, config.hidden_sizes, config.activation, normalize_observations=normalized)
    return actor_policy(actor, state, deterministic)
