"""REINFORCE against the loop of Gymnasium's tutorial, with the same number of episodes, networks and optimizer.

One seed on one core, then the tutorial's five seeds: its loop trains one after the other, gym_dr one per core. Every
side counts steps of complete episodes per second, including updates but not the start of processes.

Run it with: python -m benchmarks.reinforce [episodes] [rounds]     (episodes per seed; the tutorial has 5000, which
take its loop four minutes per seed)
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import alternate, report, seconds
from gym_dr import EpisodeRecord, RecordEpisodes
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.reinforce import learn, make_agent
from gym_dr.training.rollout import collect_episodes

ENV_ID = "InvertedPendulum-v5"
NATIVE = "gym_dr/InvertedPendulumDR-v5"
SEEDS = (1, 2, 3, 5, 8)  # the tutorial's
CONFIG = ReinforceConfig(lr=1e-4, schedule="constant", gamma=0.99, baseline="none")


class TutorialPolicy(nn.Module):
    """Two shared tanh layers and two heads of one layer each, as in the tutorial."""

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


def tutorial_loop(episodes: int, seed: int = 1) -> tuple[int, float]:
    """One sample at a time with its own graph, one update per episode; returns steps and seconds."""
    torch.manual_seed(seed)
    env = gym.make(ENV_ID)
    policy = TutorialPolicy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=CONFIG.lr)
    steps = 0

    def play() -> None:
        nonlocal steps
        for episode in range(episodes):
            observation, _ = env.reset(seed=seed if episode == 0 else None)
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
    return steps, spent


def ours(num_envs: int, env_id: str, mode: str | None, episodes: int, seed: int = 1) -> tuple[int, float]:
    """gym_dr's loop, with one episode per environment in each update; returns valid steps and seconds."""
    torch.set_num_threads(1)  # again, for worker processes
    records: list[EpisodeRecord] = []
    envs = RecordEpisodes(gym.make_vec(env_id, num_envs, vectorization_mode=mode), records.append)
    agent = make_agent(envs, CONFIG, seed, "cpu")
    steps = 0

    def play() -> None:
        nonlocal steps
        for update in range(episodes // num_envs):
            rollout = collect_episodes(envs, agent.sampler, 1, seed=seed if update == 0 else None, device="cpu")
            learn(agent, rollout, CONFIG)
            steps += int(rollout.valid.sum())

    spent = seconds(play)
    envs.close()
    return steps, spent


def rate(measured: tuple[int, float]) -> float:
    """Steps per second."""
    return measured[0] / measured[1]


def all_seeds(pool: ProcessPoolExecutor, num_envs: int, episodes: int) -> float:
    """Trains the tutorial's seeds in the processes of ``pool``; returns their total steps per second."""
    results: list[tuple[int, float]] = []
    train = functools.partial(ours, num_envs, NATIVE, None, episodes)
    spent = seconds(lambda: results.extend(pool.map(train, SEEDS)))
    return sum(steps for steps, _ in results) / spent


def main() -> None:
    """Prints two tables."""
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.set_num_threads(1)
    measured = alternate(
        {
            "tutorial's loop": lambda: rate(tutorial_loop(episodes)),
            "ours, 1 environment, sync": lambda: rate(ours(1, ENV_ID, "sync", episodes)),
            "ours, 1 environment, native": lambda: rate(ours(1, NATIVE, None, episodes)),
            "ours, 10 environments, native": lambda: rate(ours(10, NATIVE, None, episodes)),
        },
        rounds,
    )
    report(f"REINFORCE, {episodes} episodes of {ENV_ID}", measured, "tutorial's loop", "steps/s")

    def series() -> float:
        steps, spent = zip(*(tutorial_loop(episodes, seed) for seed in SEEDS), strict=True)
        return rate((sum(steps), sum(spent)))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        measured = alternate(  # the first round, which does not count, starts the processes
            {
                "tutorial's loop, in series": series,
                "ours, 1 environment each": lambda: all_seeds(pool, 1, episodes),
                "ours, 10 environments each": lambda: all_seeds(pool, 10, episodes),
            },
            rounds,
        )
    title = f"REINFORCE, {episodes} episodes of each of {len(SEEDS)} seeds, {cores} processes"
    report(title, measured, "tutorial's loop, in series", "steps/s")


if __name__ == "__main__":
    main()
