"""REINFORCE (Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
Learning").

One update: every sub-environment plays the same number of complete episodes, log-probabilities are recomputed in one
batch and weighted with the returns, and the policy takes one gradient step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from gym_dr.training.api import Policy, Session, seed_for
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.networks import (
    TwoHeadedGaussianActor,
    gradient_step,
    load_optimizers,
    load_weights,
    make_actor,
    mlp,
    observation_size,
    set_learning_rates,
)
from gym_dr.training.returns import discounted_returns
from gym_dr.training.rollout import Rollout, collect_episodes
from gym_dr.training.sampling import make_sampler, trained_policy

_SHORTEST_DISCOUNT = 1e-3  # at which values are still scaled by the horizon: gamma may be 1


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The steps of complete episodes, B of them."""

    observations: Tensor  # (B, obs)
    actions: Tensor  # (B, ...)
    returns: Tensor  # (B,) discounted, Monte Carlo
    episodes: int


class Reinforce:
    """Policy, baseline, their optimizers and the generator that samples actions."""

    def __init__(self, envs: VectorEnv[Any, Any, Any], config: ReinforceConfig, seed: int, device: str) -> None:
        """Builds networks for the environment's spaces, initialised from ``seed``.

        Raises:
            ConfigError: The spaces are not of a kind that the networks know.
        """
        self.config = config
        with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global generator
            torch.manual_seed(seed_for(seed, stream=2, index=0))
            self.actor = make_actor(envs, config.hidden_sizes, "tanh", TwoHeadedGaussianActor).to(device)
            self.critic = mlp(observation_size(envs), config.hidden_sizes, 1, "tanh").to(device)
        self.actor_optimizer = torch.optim.AdamW(self.actor.parameters(), lr=config.lr, fused=True)
        self.critic_optimizer = torch.optim.AdamW(self.critic.parameters(), lr=config.lr, fused=True)
        self.generator = torch.Generator().manual_seed(seed_for(seed, stream=2, index=1))
        self.sampler = make_sampler(self.actor, self.generator, device, envs.num_envs)
        self.entropy_coef = config.entropy_coef
        # what a reward of 1 for ever is worth: the network's outputs stay near 1, where it is after some dozen updates.
        # To reach returns of 100 itself takes hundreds, in which every action looks good and every truncation bad, and
        # the policy collapses
        self._horizon = 1.0 / max(1.0 - config.gamma, _SHORTEST_DISCOUNT)

    def value(self, observations: Tensor) -> Tensor:
        """The baseline's values, shape of ``observations`` without its last axis."""
        values: Tensor = self._horizon * self.critic(observations).squeeze(-1)
        return values

    def update(self, episodes: Rollout) -> dict[str, float]:
        """One gradient step for each network; returns losses and mean entropy.

        Raises:
            NotFiniteError: The loss or its gradient is not finite; the networks are unchanged then.
        """
        learned = self.config.baseline == "learned"
        batch = make_batch(episodes, self.value if learned else None, self.config.gamma)
        values = self.value(batch.observations) if learned else torch.zeros_like(batch.returns)
        weights = batch.returns - values.detach()
        if self.config.baseline == "normalize":
            weights = (weights - weights.mean()) / (weights.std(correction=0) + 1e-8)
        log_probs, entropies = self.actor.log_prob_and_entropy(batch.observations, batch.actions)
        entropy = entropies.mean()
        actor_loss = -(log_probs * weights).sum() / batch.episodes - self.entropy_coef * entropy
        critic_loss = (batch.returns - values).pow(2).mean()
        loss = actor_loss + critic_loss if learned else actor_loss
        trained = [(self.actor_optimizer, self.actor), (self.critic_optimizer, self.critic)][: 1 + learned]
        gradient_step(loss, trained, self.config.max_grad_norm)  # no weight is in both
        values_of = {"actor_loss": actor_loss, "entropy": entropy, "critic_loss": critic_loss}
        return {name: values_of[name].item() for name in losses_of(self.config)}

    def schedule(self, update: int) -> None:
        """Sets the learning rates and the entropy's weight for an update."""
        left = 1.0 - update / self.config.updates if self.config.schedule == "linear" else 1.0
        self.entropy_coef = self.config.entropy_coef * left
        set_learning_rates([(self.actor_optimizer, self.config.lr), (self.critic_optimizer, self.config.lr)], left)

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


def losses_of(config: ReinforceConfig) -> tuple[str, ...]:
    """The columns of the metrics; without a learned baseline there is no critic."""
    return ("actor_loss", "entropy", "critic_loss") if config.baseline == "learned" else ("actor_loss", "entropy")


def make_batch(episodes: Rollout, value: Callable[[Tensor], Tensor] | None, gamma: float) -> Batch:
    """Discounted returns of complete episodes, in one pass.

    Args:
        episodes: What the sub-environments played.
        value: Maps observations to values; with it a truncated episode's rest is worth that of its final observation.
        gamma: Discount factor.
    """
    final_values = np.zeros_like(episodes.rewards)
    if value is not None:
        with torch.no_grad():
            final_values = value(episodes.observations[1:]).cpu().numpy() * episodes.truncated
    ends = episodes.terminated | episodes.truncated
    returns = discounted_returns(episodes.rewards, ends, final_values, gamma=gamma)
    device = episodes.observations.device
    valid = torch.as_tensor(episodes.valid, device=device)
    return Batch(
        observations=episodes.observations[:-1][valid],
        actions=episodes.actions[valid],
        returns=torch.as_tensor(returns, device=device)[valid],
        episodes=int((ends & episodes.valid).sum()),
    )


def train(session: Session, config: ReinforceConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(rollout_steps=None)  # a rollout is as long as its longest episode
    agent = Reinforce(envs, config, session.seed, session.device)
    if session.restored is not None:
        agent.load_state(session.restored)
    for update in range(session.first_update, config.updates):
        seed = session.segment_seed(update)
        agent.schedule(update)
        steps, losses = 0, dict.fromkeys(losses_of(config), math.nan)
        with session.attempt(update):
            episodes = collect_episodes(envs, agent.sampler, config.episodes_per_env, seed, session.device)
            steps, losses = int(episodes.valid.sum()), agent.update(episodes)
        session.log(update, steps=steps, **losses)
        session.save(update, agent.state)


def load_policy(state: Mapping[str, Any], envs: VectorEnv[Any, Any, Any], config: ReinforceConfig) -> Policy:
    """The trained policy; see ``trained_policy``.

    Raises:
        CheckpointError: The weights do not fit the configuration or the environment.
    """
    actor = make_actor(envs, config.hidden_sizes, "tanh", TwoHeadedGaussianActor)
    load_weights(actor, state, "actor")
    return trained_policy(actor)
