"""Proximal policy optimization (Schulman et al. 2017, "Proximal Policy Optimization Algorithms", algorithm 1).

One update: collect a rollout, estimate advantages, and learn from it for several epochs of minibatches. Clipping the
ratios of new to old probabilities (eq. 7) allows several epochs.

Details that the paper leaves open follow Huang et al. 2022, "The 37 Implementation Details of Proximal Policy
Optimization"; numbers refer to its lists ("core" and "continuous"). ``actor_critic.py`` and its modules have the shared
ones: orthogonal weights (core 2), annealing (4), generalized advantages (5), the entropy bonus (10), gradient clipping
(11, but per network), separate networks (13), normal distributions and their standard deviation (continuous 1 to 3),
clipped actions (5), normalized observations and rewards (6 and 8, without the clipping of 7 and 9). Unlike in the code
of Huang et al., truncated episodes bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gymnasium.vector import VectorEnv

from gym_dr.training.actor_critic import ActorCritic, adam_agent, restore
from gym_dr.training.api import Session
from gym_dr.training.batch import Batch, Sequences, minibatches
from gym_dr.training.config import PPOConfig
from gym_dr.training.epochs import epochs
from gym_dr.training.losses import clipped_surrogate_loss, clipped_value_loss, normalize, value_loss
from gym_dr.training.networks import CategoricalActor
from gym_dr.training.rollout import RolloutCollector

LOSSES = ("actor_loss", "critic_loss", "entropy", "approx_kl", "clip_fraction")  # columns of the metrics


def train(session: Session, config: PPOConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(config.rollout_steps)
    agent = make_agent(envs, config, session.seed, session.device)
    restore(agent, session, config)
    collector = RolloutCollector(envs, config.rollout_steps, session.device, agent.visible)
    for update in range(session.first_update, config.updates):
        agent.anneal(config.schedule, update / config.updates)
        seed = session.segment_seed(update)
        rollout = agent.recall(collector.collect(agent.behavior, seed))
        agent.observe_rewards(rollout, fresh=seed is not None)
        losses = learn(agent, agent.batch_of(rollout, config), config)
        agent.observe_observations(rollout)  # last: the rollout's actions used the old moments
        session.log(update, steps=int(rollout.valid.sum()), **losses)
        session.save(update, agent.state)


def make_agent(envs: VectorEnv[Any, Any, Any], config: PPOConfig, seed: int, device: str) -> ActorCritic:
    """Builds the networks and optimizers of a configuration; see ``adam_agent``."""
    agent = adam_agent(envs, config, seed, device)
    if not isinstance(agent.actor, CategoricalActor):
        agent.actor.set_std(config.initial_std)
    return agent


def learn(agent: ActorCritic, batch: Batch | Sequences, config: PPOConfig) -> dict[str, float]:
    """Learns from a rollout's steps for several epochs; returns the means of ``LOSSES`` over minibatches.

    Raises:
        NotFiniteError: The loss or a gradient is not finite; this minibatch and later ones have changed nothing.
    """
    found: list[Sequence[float]] = []
    with epochs(agent, batch, config, _step) as epoch:
        for _ in range(config.epochs):  # new minibatches in each (core 6)
            losses = epoch(minibatches(len(batch), config.minibatches, agent.generator))
            found += losses
            if 0.0 < config.target_kl < sum(each[LOSSES.index("approx_kl")] for each in losses) / len(losses):
                break
    return agent.means(LOSSES, found)


def _step(agent: ActorCritic, part: Batch, config: PPOConfig) -> tuple[float, ...]:
    """Takes one gradient step on a minibatch; returns ``LOSSES`` and the prediction loss, all before the step."""
    advantages = normalize(part.advantages) if config.normalize_advantages else part.advantages  # core 7
    log_probs, entropies = agent.actor.log_prob_and_entropy(part.observations, part.actions)
    log_ratios, entropy = log_probs - part.log_probs, entropies.mean()
    actor_loss = clipped_surrogate_loss(log_ratios, advantages, config.clip_range) - agent.entropy_coef * entropy
    values = agent.value(part.critic_inputs)
    if config.value_clip > 0:
        critic_loss = clipped_value_loss(values, part.returns - part.advantages, part.returns, config.value_clip)
    else:  # clipping rarely helps (core 9; Andrychowicz et al. 2021, "What Matters")
        critic_loss = value_loss(values, part.returns)
    prediction_loss = agent.prediction_loss(part)
    # the networks share no weights: no coefficient needed
    agent.gradient_step(actor_loss + critic_loss + agent.prediction_coef * prediction_loss)
    with torch.no_grad():  # core 12; KL estimator k3 of Schulman 2020, "Approximating KL Divergence"
        approx_kl = (log_ratios.exp() - 1.0 - log_ratios).mean()
        clip_fraction = ((log_ratios.exp() - 1.0).abs() > config.clip_range).float().mean()
    found = actor_loss, critic_loss, entropy, approx_kl, clip_fraction, prediction_loss
    return tuple(loss.item() for loss in found)
