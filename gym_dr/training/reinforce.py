"""REINFORCE (Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
Learning").

One update: every sub-environment plays the same number of complete episodes, log-probabilities are recomputed in one
batch and weighted by the returns, and the policy takes one gradient step.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from gym_dr.training.actor_critic import ActorCritic, restore
from gym_dr.training.api import Session
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.losses import normalize, policy_gradient_loss, value_loss
from gym_dr.training.optimizers import without_compiler
from gym_dr.training.returns import discounted_returns
from gym_dr.training.rollout import Rollout, collect_episodes

_MAX_HORIZON = 1000.0  # steps; gamma may be 1


def train(session: Session, config: ReinforceConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(rollout_steps=None)  # a rollout is as long as its longest episode
    agent = make_agent(envs, config, session.seed, session.device)
    restore(agent, session, config)
    for update in range(session.first_update, config.updates):
        agent.anneal(config.schedule, update / config.updates)
        seed = session.segment_seed(update)
        episodes = collect_episodes(envs, agent.behavior, config.episodes_per_env, seed, session.device)
        losses = learn(agent, episodes, config)
        session.log(update, steps=int(episodes.valid.sum()), **losses)
        session.save(update, agent.state)


def make_agent(envs: VectorEnv[Any, Any, Any], config: ReinforceConfig, seed: int, device: str) -> ActorCritic:
    """Builds the policy, and a critic as the learned baseline; see ``ActorCritic``."""
    optimizer = partial(without_compiler(torch.optim.AdamW), fused=True)
    return ActorCritic(envs, config, seed, device, make_optimizer=optimizer, actor_lr=config.lr, critic_lr=config.lr)


def learn(agent: ActorCritic, episodes: Rollout, config: ReinforceConfig) -> dict[str, float]:
    """Takes one gradient step with each network; returns the losses, the critic's only with a learned baseline.

    Raises:
        NotFiniteError: The loss or its gradient is not finite; the networks are unchanged.
    """
    learned = config.baseline == "learned"
    # the critic predicts returns in units of the return of a constant reward of 1, so outputs stay near 1, which it
    # learns in a few dozen updates. Returns of 100 would take it hundreds; meanwhile every action would look good and
    # every truncation bad, and the policy would collapse
    horizon = 1.0 / max(1.0 - config.gamma, 1.0 / _MAX_HORIZON)
    final_values = np.zeros_like(episodes.rewards)
    if learned:  # bootstrap truncated episodes from their final observation
        with torch.no_grad():
            final_values = (horizon * agent.value(episodes.observations[1:])).cpu().numpy() * episodes.truncated
    ends = episodes.terminated | episodes.truncated
    all_returns = discounted_returns(episodes.rewards, ends, final_values, gamma=config.gamma)

    valid = torch.as_tensor(episodes.valid, device=episodes.observations.device)
    observations, actions = episodes.observations[:-1][valid], episodes.actions[valid]
    returns = torch.as_tensor(all_returns, device=valid.device)[valid]
    values = horizon * agent.value(observations) if learned else torch.zeros_like(returns)
    weights = returns - values.detach()
    if config.baseline == "normalize":
        weights = normalize(weights)

    log_probs, entropies = agent.actor.log_prob_and_entropy(observations, actions)
    entropy = entropies.mean()
    policy_loss = policy_gradient_loss(log_probs, weights, episodes=int((ends & episodes.valid).sum()))
    actor_loss, critic_loss = policy_loss - agent.entropy_coef * entropy, value_loss(values, returns)
    agent.gradient_step(actor_loss + critic_loss if learned else actor_loss)  # the networks share no weights
    critic = {"critic_loss": critic_loss.item()} if learned else {}
    return {"actor_loss": actor_loss.item(), "entropy": entropy.item(), **critic}
