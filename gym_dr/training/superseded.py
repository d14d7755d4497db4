"""What algorithms of plugins could use in 0.2, and what ``actor_critic.py`` offers with a warning until 0.4."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gymnasium.vector import VectorEnv

from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.api import Session
from gym_dr.training.batch import Batch, advantages_of, make_batch
from gym_dr.training.rollout import Rollout, RolloutCollector
from gym_dr.training.update import training_update


def shared_options(config: Any) -> dict[str, Any]:
    """The options of a configuration that ``ActorCritic`` takes as keywords of the same name; without a memory's."""
    known = inspect.signature(ActorCritic).parameters.keys() - {"memory_size", "sequence_length", "predict_draw"}
    return {name: value for name, value in vars(config).items() if name in known}


def train_on_rollouts(
    session: Session,
    config: Any,
    make_agent: Callable[[VectorEnv[Any, Any, Any], Any, int, str], ActorCritic],
    learn: Callable[[ActorCritic, Batch, Any], dict[str, float]],
    losses: Sequence[str],
) -> None:
    """Trains as ``ppo.train`` does, with functions that make the agent and learn from a rollout's steps."""
    envs = session.make_envs(config.rollout_steps)
    agent = make_agent(envs, config, session.seed, session.device)
    collector = RolloutCollector(envs, config.rollout_steps, session.device, agent.critic_context)

    def play(seed: int | None) -> Rollout:
        if seed is not None:
            collector.reset(seed)
        return collector.collect(agent.behavior)

    def learn_from(agent: ActorCritic, rollout: Rollout, config: Any) -> dict[str, float]:
        values = agent.values_of(rollout)
        advantages = advantages_of(
            rollout, values, gamma=config.gamma, gae_lambda=config.gae_lambda, reward_scale=agent.reward_scale
        )
        batch = make_batch(rollout, values, advantages)
        return learn(agent, batch, config) if len(batch) else {}

    train_agent(session, config, agent, play, learn_from, losses)


def train_agent(
    session: Session,
    config: Any,
    agent: ActorCritic,
    play: Callable[[int | None], Rollout],
    learn: Callable[[ActorCritic, Rollout, Any], dict[str, float]],
    losses: Sequence[str],
) -> None:
    """Trains as ``reinforce.train`` does, with functions that collect a rollout and learn from it."""
    if session.restored is not None:
        agent.load_state(session.restored)
    for update in range(session.first_update, config.updates):
        agent.anneal(config.schedule, update / config.updates)
        with training_update(session, update, agent, losses) as row:
            seed = session.segment_seed(update)
            rollout = play(seed)
            agent.observe_rewards(rollout, fresh=seed is not None)
            found = learn(agent, rollout, config)
            agent.observe_observations(rollout)
            row.update(found, steps=int(rollout.valid.sum()))
