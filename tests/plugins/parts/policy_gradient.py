"""An algorithm in one file, on the pieces that those of gym_dr share: an agent, rollouts, advantages, losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from gymnasium.vector import VectorEnv

from gym_dr.options import expect, option
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.training.actor_critic import ActorCritic, load_policy
from gym_dr.training.api import Algorithm, Session
from gym_dr.training.batch import Batch, advantages_of, make_batch
from gym_dr.training.config import AgentConfig
from gym_dr.training.losses import normalize, policy_gradient_loss, value_loss
from gym_dr.training.optimizers import without_compiler
from gym_dr.training.rollout import RolloutCollector

LOSSES = ("actor_loss", "critic_loss")


@dataclass(frozen=True, kw_only=True)
class PolicyGradientConfig(AgentConfig):
    """Options."""

    hidden_sizes = (16,)

    updates: int = option(100, "number of updates")
    rollout_steps: int = option(16, "steps of each sub-environment between two updates")
    lr: float = option(0.01, "learning rate of actor and critic")
    discount: float = option(0.99, "discount factor")

    def __post_init__(self) -> None:
        expect(self.updates >= 1, "updates", "at least 1", self.updates)
        expect(self.rollout_steps >= 2, "rollout_steps", "at least 2", self.rollout_steps)


def train(session: Session, config: PolicyGradientConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(config.rollout_steps)
    agent = make_agent(envs, config, session.seed, session.device)
    if session.restored is not None:
        agent.load_state(session.restored)
    collector = RolloutCollector(envs, config.rollout_steps, session.device)
    for update in range(session.first_update, config.updates):
        seed = session.segment_seed(update)
        if seed is not None:
            collector.reset(seed)
        rollout = collector.collect(agent.behavior)
        values = agent.values_of(rollout)
        advantages = advantages_of(rollout, values, gamma=config.discount, gae_lambda=1.0, reward_scale=1.0)
        losses = learn(agent, make_batch(rollout, values, advantages))
        session.log(update, steps=int(rollout.valid.sum()), **losses)
        session.save(update, agent.state)


def make_agent(envs: VectorEnv[Any, Any, Any], config: PolicyGradientConfig, seed: int, device: str) -> ActorCritic:
    """Builds the networks."""
    optimizer = without_compiler(torch.optim.Adam)
    rates = {"actor_lr": config.lr, "critic_lr": config.lr}
    return ActorCritic(envs, config, seed, device, make_optimizer=optimizer, **rates)


def learn(agent: ActorCritic, batch: Batch) -> dict[str, float]:
    """One gradient step with each network."""
    log_probs, _ = agent.actor.log_prob_and_entropy(batch.observations, batch.actions)
    actor_loss = policy_gradient_loss(log_probs, normalize(batch.advantages))
    critic_loss = value_loss(agent.value(batch.critic_inputs), batch.returns)
    agent.gradient_step(actor_loss + critic_loss)
    return dict(zip(LOSSES, (actor_loss.item(), critic_loss.item()), strict=True))


@hookimpl
def gym_dr_register_algorithms(register: Callable[[Algorithm], None]) -> None:
    """Registers ``policy-gradient``."""
    register(
        Algorithm(
            name="policy-gradient",
            summary="Policy gradient with a critic.",
            config=PolicyGradientConfig,
            train=train,
            load_policy=load_policy,
        )
    )
