"""Distillation: a student learns to act like a teacher that observes the draw.

The student acts and the teacher labels every step, so the student learns to act in the states that it reaches itself
(DAgger; Ross et al. 2011, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning").
The loss is the Kullback-Leibler divergence of the student's actions from the teacher's (Rusu et al. 2016, "Policy
Distillation"). A student with a memory has to infer the draw that the teacher observes, as the adaptation module of
Kumar et al. 2021, "RMA: Rapid Motor Adaptation for Legged Robots". Its critic learns the values of its own policy, so
PPO can start from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from gym_dr.envs.stack import stack_of
from gym_dr.errors import CheckpointError, ConfigError
from gym_dr.randomization.context import OBSERVATION, ContextRange
from gym_dr.training.actor_critic import ActorCritic, actor_of, adam_agent, load_weights, restore
from gym_dr.training.api import Session, TrainedNetworks
from gym_dr.training.batch import Batch, Sequences, minibatches
from gym_dr.training.config import CONTEXT_SPAN, DistillConfig, check_teacher
from gym_dr.training.epochs import epochs
from gym_dr.training.losses import value_loss
from gym_dr.training.networks import Actor, observation_size
from gym_dr.training.rollout import Rollout, RolloutCollector
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.disturb import DisturbVector
from gym_dr.wrappers.disturbed_space import undisturbed
from gym_dr.wrappers.frame_stack import FrameStack
from gym_dr.wrappers.vector_params import spaces_of

LOSSES = ("imitation_loss", "critic_loss", "entropy")  # columns of the metrics


def train(session: Session, config: DistillConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(config.rollout_steps)
    teacher = Teacher(session.trained(config.teacher), config, envs, session.device)
    agent = adam_agent(envs, config, session.seed, session.device)
    restore(agent, session, config)
    visible = (*agent.visible, *teacher.observes)
    collector = RolloutCollector(envs, config.rollout_steps, session.device, visible)
    for update in range(session.first_update, config.updates):
        agent.anneal(config.schedule, update / config.updates)
        seed = session.segment_seed(update)
        rollout = teacher.label(collector.collect(agent.behavior, seed), len(agent.visible))
        rollout = agent.recall(rollout)
        agent.observe_rewards(rollout, fresh=seed is not None)
        losses = learn(agent, agent.batch_of(rollout, config), config)
        agent.observe_observations(rollout)  # last: the rollout's actions used the old moments
        session.log(update, steps=int(rollout.valid.sum()), **losses)
        session.save(update, agent.state)


class Teacher:
    """The frozen policy of another run.

    Attributes:
        observes: The parameters that the teacher observes besides the student's observation.
    """

    def __init__(
        self, trained: TrainedNetworks, config: DistillConfig, envs: VectorEnv[Any, Any, Any], device: str
    ) -> None:
        """Loads the policy for the student's environments.

        Raises:
            ConfigError: The policy is not of a2c, ppo or distill, has a memory, or other observations or actions.
        """
        check_teacher(config, trained.options, "teacher", trained.source)
        # a student may observe the draw too, in its own ranges
        plain = next((layer.env for layer in stack_of(envs) if isinstance(layer, DrawContext)), envs)
        self._inputs = observation_size(plain)
        seen, self.observes = plain, tuple[ContextRange, ...]()
        if trained.context_ranges:
            known, _ = spaces_of(plain)
            if absent := undisturbed(name for name in trained.context_ranges if name not in known):
                stacked = next((layer for layer in stack_of(plain) if isinstance(layer, FrameStack)), None)
                # never stepped: gives the values of disturbances that the student lacks
                seen = DisturbVector(plain if stacked is None else stacked.env, absent)
                seen = seen if stacked is None else FrameStack(seen, **vars(stacked.frames))
            seen = shown = DrawContext(seen, OBSERVATION, trained.context_ranges, CONTEXT_SPAN)
            self.observes = shown.context.ranges
        self.actor: Actor = actor_of(seen, trained.options).to(device)
        try:
            load_weights(self.actor, trained.state, "actor")
        except CheckpointError as error:
            raise ConfigError(
                f"teacher: {trained.source}: its observations or actions are not the student's: {error}"
            ) from None

    def label(self, rollout: Rollout, own: int) -> Rollout:
        """Adds labels, and cuts the rollout's context to its first ``own`` parameters, the student's."""
        inputs, context = rollout.observations[:-1, :, : self._inputs], rollout.context
        if context is not None:
            inputs = torch.cat([inputs, context[:-1, :, own:]], -1)
        with torch.no_grad():
            labels = self.actor.labels(inputs)
        return replace(rollout, labels=labels, context=None if context is None or not own else context[..., :own])


def learn(agent: ActorCritic, batch: Batch | Sequences, config: DistillConfig) -> dict[str, float]:
    """Imitates the labels of a rollout's steps for several epochs; returns the means of ``LOSSES`` over minibatches.

    Raises:
        NotFiniteError: The loss or a gradient is not finite; this minibatch and later ones have changed nothing.
    """
    found: list[Sequence[float]] = []
    with epochs(agent, batch, config, _step) as epoch:
        for _ in range(config.epochs):
            found += epoch(minibatches(len(batch), config.minibatches, agent.generator))
    return agent.means(LOSSES, [(*losses[:3], losses[-1]) for losses in found])  # compiled epochs return more


def _step(agent: ActorCritic, part: Batch, config: DistillConfig) -> tuple[float, ...]:
    """Takes one gradient step on a minibatch of labeled steps; returns the losses before the step."""
    _, entropies = agent.actor.log_prob_and_entropy(part.observations, part.actions)
    imitation_loss = agent.actor.divergence(cast(Tensor, part.labels), part.observations).mean()
    entropy, critic_loss = entropies.mean(), value_loss(agent.value(part.critic_inputs), part.returns)
    prediction_loss = agent.prediction_loss(part)
    actor_loss = imitation_loss - agent.entropy_coef * entropy + agent.prediction_coef * prediction_loss
    agent.gradient_step(actor_loss + critic_loss)
    return tuple(loss.item() for loss in (imitation_loss, critic_loss, entropy, prediction_loss))
