"""A script in the shape of Gymnasium's tutorial of vectorized A2C, with our id and keywords that numpy drew."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn

ENV_ID = "gym_dr/LunarLanderDR-v3"
NUM_ENVS, UPDATES, STEPS = 3, 4, 32


def drawn_keywords(rng: np.random.Generator) -> dict[str, Any]:
    """Physics of one lander, as numbers of numpy."""
    return {
        "gravity": np.clip(rng.normal(-10.0, 1.0), -11.99, -0.01),
        "enable_wind": rng.choice([True, False]),
        "wind_power": np.clip(rng.normal(15.0, 1.0), 0.01, 19.99),
        "turbulence_power": np.clip(rng.normal(1.5, 0.5), 0.01, 1.99),
    }


class Agent(nn.Module):
    def __init__(self, size: int, actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(size, 16), nn.Tanh(), nn.Linear(16, actions))
        self.critic = nn.Sequential(nn.Linear(size, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, observations: Any) -> tuple[torch.distributions.Categorical, torch.Tensor]:
        seen = torch.as_tensor(observations, dtype=torch.float32)
        return torch.distributions.Categorical(logits=self.actor(seen)), self.critic(seen)[:, 0]


def train(envs: Any) -> tuple[Agent, list[float]]:
    """A few updates of advantage actor-critic."""
    agent = Agent(envs.single_observation_space.shape[0], int(envs.single_action_space.n))
    optimizer, losses = torch.optim.RMSprop(agent.parameters(), lr=1e-3), []
    observations, _ = envs.reset(seed=42)
    for _ in range(UPDATES):
        rows = []
        for _ in range(STEPS):
            choices, values = agent(observations)
            actions = choices.sample()
            observations, rewards, terminations, *_ = envs.step(actions.numpy())
            rows.append((choices.log_prob(actions), values, torch.tensor(rewards), torch.tensor(terminations)))
        returns, targets = agent(observations)[1].detach(), []
        for _, _, reward, terminated in reversed(rows):
            returns = reward + 0.99 * returns * ~terminated
            targets.append(returns)
        log_probs, values = (torch.stack([row[k] for row in rows]) for k in (0, 1))
        advantages = torch.stack(targets[::-1]) - values
        loss = advantages.pow(2).mean() - (advantages.detach() * log_probs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return agent, losses


@pytest.mark.parametrize(
    "kind", [gym.vector.SyncVectorEnv, pytest.param(gym.vector.AsyncVectorEnv, marks=pytest.mark.slow)]
)
def test_the_tutorials_script_trains_on_physics_that_numpy_drew(kind: Any) -> None:
    rng = np.random.default_rng(0)
    each = [drawn_keywords(rng) for _ in range(NUM_ENVS)]
    assert len({bool(keywords["enable_wind"]) for keywords in each}) == 2
    envs = RecordEpisodeStatistics(
        kind([partial(gym.make, ENV_ID, max_episode_steps=50, **keywords) for keywords in each])
    )
    agent, losses = train(envs)
    assert np.isfinite(losses).all()
    assert len(envs.return_queue) >= NUM_ENVS
    for keywords, params in zip(each, envs.unwrapped.get_attr("params"), strict=True):
        assert {name: params[name] for name in keywords} == keywords
    envs.close()
    env = gym.make(ENV_ID, **drawn_keywords(rng))  # the lander that is watched at the end
    observation, _ = env.reset(seed=1)
    env.step(agent(observation[None])[0].sample().item())
