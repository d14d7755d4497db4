"""Advantage actor-critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", without the A).

One update: collect a rollout without a graph, estimate advantages, recompute log-probabilities in one batch (or in a
few minibatches, each used once), and take one gradient step for the actor and one for the critic on each. The entropy
bonus prevents premature convergence (Williams and Peng 1991, "Function Optimization Using Connectionist Reinforcement
Learning Algorithms").
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from gymnasium.vector import VectorEnv

from gym_dr.training.actor_critic import ActorCritic, restore
from gym_dr.training.api import Session
from gym_dr.training.batch import Batch, Sequences, minibatches
from gym_dr.training.config import A2CConfig
from gym_dr.training.epochs import epochs
from gym_dr.training.losses import normalize, policy_gradient_loss, value_loss
from gym_dr.training.optimizers import without_compiler
from gym_dr.training.rollout import RolloutCollector

LOSSES = ("actor_loss", "critic_loss", "entropy")  # columns of the metrics
_OPTIMIZERS: dict[str, Any] = {
    "rmsprop": without_compiler(torch.optim.RMSprop),
    "adam": without_compiler(torch.optim.Adam),
}


def train(session: Session, config: A2CConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(config.rollout_steps)
    agent = make_agent(envs, config, session.seed, session.device)
    restore(agent, session, config)
    collector = RolloutCollector(envs, config.rollout_steps, session.device, agent.visible)
    for update in range(session.first_update, config.updates):
        agent.anneal(config.schedule, update / config.updates)
        seed = session.segment_seed(update)
        rollout = agent.recall(collector.collect(agent.behavior, seed))
        losses = learn(agent, agent.batch_of(rollout, config), config)
        agent.observe_observations(rollout)  # last: the rollout's actions used the old moments
        session.log(update, steps=int(rollout.valid.sum()), **losses)
        session.save(update, agent.state)


def make_agent(envs: VectorEnv[Any, Any, Any], config: A2CConfig, seed: int, device: str) -> ActorCritic:
    """Builds the networks and optimizers of a configuration; see ``ActorCritic``."""
    optimizer = partial(_OPTIMIZERS[config.optimizer], eps=config.optimizer_eps)
    rates = {"actor_lr": config.actor_lr, "critic_lr": config.critic_lr}
    return ActorCritic(envs, config, seed, device, make_optimizer=optimizer, **rates)


def learn(agent: ActorCritic, batch: Batch | Sequences, config: A2CConfig) -> dict[str, float]:
    """Learns from a rollout's steps once; returns the means of ``LOSSES`` over minibatches.

    Raises:
        NotFiniteError: The loss or a gradient is not finite; this minibatch and later ones have changed nothing.
    """
    with epochs(agent, batch, config, _step) as epoch:
        losses = epoch(minibatches(len(batch), config.minibatches, agent.generator))
    return agent.means(LOSSES, [(*found[:3], found[-1]) for found in losses])  # compiled epochs return more


def _step(agent: ActorCritic, part: Batch, config: A2CConfig) -> tuple[float, ...]:
    """Takes one gradient step on a minibatch; returns ``LOSSES`` and the prediction loss, all before the step."""
    advantages = normalize(part.advantages) if config.normalize_advantages else part.advantages
    log_probs, entropies = agent.actor.log_prob_and_entropy(part.observations, part.actions)
    entropy = entropies.mean()
    actor_loss = policy_gradient_loss(log_probs, advantages) - agent.entropy_coef * entropy
    critic_loss = value_loss(agent.value(part.critic_inputs), part.returns)
    prediction_loss = agent.prediction_loss(part)
    # the networks share no weights
    agent.gradient_step(actor_loss + critic_loss + agent.prediction_coef * prediction_loss)
    return tuple(loss.item() for loss in (actor_loss, critic_loss, entropy, prediction_loss))
