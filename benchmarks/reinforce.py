"""REINFORCE against the loop of Gymnasium's tutorial: the same episodes, networks and optimizer, on one core.

Run it with: python -m benchmarks.reinforce [episodes]
"""

from __future__ import annotations

import sys

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import alternate, report, seconds
from gym_dr import EpisodeRecord, RecordDraws
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.reinforce import Reinforce
from gym_dr.training.rollout import collect_episodes

ENV_ID = "InvertedPendulum-v5"
CONFIG = ReinforceConfig(lr=1e-4, gamma=0.99, baseline="none")


class TutorialPolicy(nn.Module):
    """Two shared tanh layers and two heads, each a layer of its own, as in the tutorial."""

    def __init__(self) -> None:
        """Builds the network for four observations and one action."""
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 32), nn.Tanh())
        self.mean, self.spread = nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, observation: torch.Tensor) -> torch.distributions.Normal:
        """The distribution of the action."""
        features = self.shared(observation)
        spread = torch.log(1 + torch.exp(self.spread(features)))
        return torch.distributions.Normal(self.mean(features) + 1e-6, spread + 1e-6)


def tutorial_loop(episodes: int) -> float:
    """One sample at a time with its own graph, one update an episode; returns steps per second."""
    torch.manual_seed(1)
    env = gym.make(ENV_ID)
    policy = TutorialPolicy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=CONFIG.lr)
    steps = 0

    def play() -> None:
        nonlocal steps
        for episode in range(episodes):
            observation, _ = env.reset(seed=1 if episode == 0 else None)
            log_probs, rewards, over = [], [], False
            while not over:
                distribution = policy(torch.tensor(np.array([observation]), dtype=torch.float32))
                action = distribution.sample()
                log_probs.append(distribution.log_prob(action))
                observation, reward, terminated, truncated, _ = env.step(action[0].numpy())
                rewards.append(float(reward))
                over = terminated or truncated
                steps += 1
            running, returns = 0.0, []
            for reward in reversed(rewards):
                running = reward + CONFIG.gamma * running
                returns.insert(0, running)
            loss = torch.zeros(())
            for log_prob, value in zip(log_probs, returns, strict=True):
                loss = loss + log_prob.mean() * value * -1
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    spent = seconds(play)
    return steps / spent


def ours(episodes: int, num_envs: int, env_id: str, mode: str | None) -> float:
    """gym_dr's loop, as many updates as episodes with one environment; returns steps per second that count."""
    records: list[EpisodeRecord] = []
    envs = RecordDraws(gym.make_vec(env_id, num_envs, vectorization_mode=mode), records.append)
    agent = Reinforce(envs, CONFIG, seed=1, device="cpu")
    steps = 0

    def play() -> None:
        nonlocal steps
        for update in range(episodes // num_envs):
            rollout = collect_episodes(envs, agent.sampler, 1, seed=1 if update == 0 else None, device="cpu")
            agent.update(rollout)
            steps += int(rollout.valid.sum())

    spent = seconds(play)
    envs.close()
    return steps / spent


def main() -> None:
    """Prints one table."""
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    torch.set_num_threads(1)
    native = "gym_dr/InvertedPendulumDR-v5"
    measured = alternate(
        {
            "tutorial's loop": lambda: tutorial_loop(episodes),
            "ours, 1 environment, sync": lambda: ours(episodes, 1, ENV_ID, "sync"),
            "ours, 1 environment, native": lambda: ours(episodes, 1, native, None),
            "ours, 10 environments, native": lambda: ours(episodes, 10, native, None),
        },
        rounds=3,
    )
    report(f"REINFORCE, {episodes} episodes of {ENV_ID}", measured, "tutorial's loop", "steps/s")


if __name__ == "__main__":
    main()
