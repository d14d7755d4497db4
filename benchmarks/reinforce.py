"""REINFORCE against the loop of Gymnasium's tutorial, with the same number of episodes.

One seed on one core, then the tutorial's five seeds: its loop trains one after the other, gym_dr one per core. Every
side counts steps of complete episodes per second, including updates but not the start of processes. Networks, optimizer
and hyperparameters are the tutorial's, except where a side is called ``gymdr train reinforce``: that has its defaults.

Run it with:  python -m benchmarks.reinforce [--episodes 300] [--rounds 3]     steps per second, side by side
              python -m benchmarks.reinforce --whole 1,2                       all 5,000 episodes of these seeds
"""

from __future__ import annotations

import argparse
import csv
import functools
import multiprocessing
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import alternate, report, seconds
from gym_dr import EpisodeRecord, RecordEpisodes
from gym_dr.bench import temporary_session
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.configure import build_config
from gym_dr.runs.train import limited_threads
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.registry import find_algorithm
from gym_dr.training.reinforce import learn, make_agent
from gym_dr.training.rollout import collect_episodes

ENV_ID = "InvertedPendulum-v5"
NATIVE = "gym_dr/InvertedPendulumDR-v5"
SEEDS = (1, 2, 3, 5, 8)  # the tutorial's
EPISODES = 5000  # per seed, as in the tutorial
CONFIG = ReinforceConfig(lr=1e-4, schedule="constant", gamma=0.99, baseline="none")


class Played(NamedTuple):
    """What a side has played."""

    lengths: list[int]  # steps of each complete episode, which are its return
    seconds: float

    @property
    def rate(self) -> float:
        """Steps per second."""
        return sum(self.lengths) / self.seconds


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


def tutorial_loop(episodes: int, seed: int = 1) -> Played:
    """One sample at a time with its own graph, one update per episode."""
    torch.manual_seed(seed)
    env = gym.make(ENV_ID)
    policy = TutorialPolicy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=CONFIG.lr)
    lengths = []

    def play() -> None:
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
            lengths.append(len(rewards))
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
    return Played(lengths, spent)


@limited_threads(1)  # in worker processes too
def ours(num_envs: int, env_id: str, mode: str | None, episodes: int, seed: int = 1) -> Played:
    """gym_dr's loop: each update learns from an episode of each environment."""
    records: list[EpisodeRecord] = []
    nominal = {"randomization": "none"} if env_id == NATIVE else {}
    envs = RecordEpisodes(gym.make_vec(env_id, num_envs, vectorization_mode=mode, **nominal), records.append)
    agent = make_agent(envs, CONFIG, seed, "cpu")

    def play() -> None:
        for update in range(episodes // num_envs):
            rollout = collect_episodes(envs, agent.behavior, 1, seed=seed if update == 0 else None, device="cpu")
            learn(agent, rollout, CONFIG)

    spent = seconds(play)
    envs.close()
    return Played([record.length for record in records], spent)


def with_defaults(episodes: int, seed: int = 1) -> Played:
    """``gymdr train reinforce`` as it is: other hyperparameters, and its logs and checkpoints."""
    algorithm = find_algorithm("reinforce")
    settings = {"env": NATIVE, "seed": seed, "eval_episodes": 0}
    num_envs = build_config(algorithm, settings, randomization="none").settings.num_envs
    config = build_config(algorithm, {**settings, "updates": episodes // num_envs}, randomization="none")
    with temporary_session(config) as session:
        spent = seconds(lambda: algorithm.train_function()(session, config.options))
        with open(session.folder.draws, newline="") as file:
            lengths = [int(row["steps"]) for row in csv.DictReader(file)]
    return Played(lengths, spent)


def all_seeds(pool: ProcessPoolExecutor, num_envs: int, episodes: int) -> float:
    """Trains the tutorial's seeds in the processes of ``pool``; returns their total steps per second."""
    results: list[Played] = []
    train = functools.partial(ours, num_envs, NATIVE, None, episodes)
    spent = seconds(lambda: results.extend(pool.map(train, SEEDS)))
    return sum(sum(played.lengths) for played in results) / spent


def compare_whole_jobs(seeds: list[int]) -> None:
    """Prints what each side takes for all of the tutorial's episodes, on one core."""
    sides = {
        "tutorial's loop": functools.partial(tutorial_loop, EPISODES),
        "ours, 10 environments": functools.partial(ours, 10, NATIVE, None, EPISODES),
        "gymdr train reinforce": functools.partial(with_defaults, EPISODES),
    }
    ours(10, NATIVE, None, 20)  # compiles
    with_defaults(64)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for seed in seeds:
        for name, side in sides.items():
            played = side(seed)
            rates[name].append(played.rate)
            last = statistics.mean(played.lengths[-100:])
            print(
                f"{name}, seed {seed}: {sum(played.lengths):,} steps in {played.seconds:.1f} s, {played.rate:,.0f} "
                f"steps/s, mean return of the last 100 episodes {last:.0f}",
                flush=True,
            )
    report("Steps per second, of one seed after the other", rates, "tutorial's loop", "steps/s")


def compare_speed(episodes: int, rounds: int) -> None:
    """Prints two tables of steps per second."""
    measured = alternate(
        {
            "tutorial's loop": lambda: tutorial_loop(episodes).rate,
            "ours, 1 environment, sync": lambda: ours(1, ENV_ID, "sync", episodes).rate,
            "ours, 1 environment, native": lambda: ours(1, NATIVE, None, episodes).rate,
            "ours, 10 environments, native": lambda: ours(10, NATIVE, None, episodes).rate,
        },
        rounds,
    )
    report(f"REINFORCE, {episodes} episodes of {ENV_ID}", measured, "tutorial's loop", "steps/s")

    def series() -> float:
        played = [tutorial_loop(episodes, seed) for seed in SEEDS]
        return sum(sum(each.lengths) for each in played) / sum(each.seconds for each in played)

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        measured = alternate(  # the round that does not count starts the processes
            {
                "tutorial's loop, in series": series,
                "ours, 1 environment each": lambda: all_seeds(pool, 1, episodes),
                "ours, 10 environments each": lambda: all_seeds(pool, 10, episodes),
            },
            rounds,
        )
    title = f"REINFORCE, {episodes} episodes of each of {len(SEEDS)} seeds, {cores} processes"
    report(title, measured, "tutorial's loop, in series", "steps/s")


@limited_threads(1)
def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=300, help="of each seed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whole", metavar="SEEDS", help="the tutorial's whole job instead, of these seeds")
    arguments = parser.parse_args()
    load_plugins()
    if arguments.whole:
        compare_whole_jobs([int(seed) for seed in arguments.whole.split(",")])
    else:
        compare_speed(arguments.episodes, arguments.rounds)


if __name__ == "__main__":
    main()
