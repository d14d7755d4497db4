"""The job of Gymnasium's A2C tutorial, by the tutorial's loop, Stable-Baselines3 and gym_dr, on one core.

Run it with:  python -m benchmarks.a2c [--updates 50] [--rounds 3]      steps per second, side by side
              python -m benchmarks.a2c --curves 10 [--output FOLDER]    learning curves of whole runs, plotted

The job: LunarLander with nominal physics, 10 environments x 128 steps x 1000 updates, networks of 32-32 units,
RMSprop. Stable-Baselines3 takes part if it is installed (extra gym-dr[bench]).
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import NO_RENDERING, alternate, report, seconds
from gym_dr import EpisodeRecord, RecordEpisodes
from gym_dr.runs.configure import build_config
from gym_dr.runs.train import limited_threads
from gym_dr.training.a2c import learn, make_agent
from gym_dr.training.batch import advantages_of, make_batch
from gym_dr.training.config import A2CConfig
from gym_dr.training.registry import find_algorithm
from gym_dr.training.rollout import RolloutCollector

CONFIG_FILE = Path(__file__).parent.parent / "examples" / "tutorial_a2c.toml"
JOB = build_config(find_algorithm("a2c"), {}, config=CONFIG_FILE)
TUTORIAL: A2CConfig = JOB.options
NUM_ENVS, STEPS, UPDATES = JOB.settings.num_envs, TUTORIAL.rollout_steps, TUTORIAL.updates
Episode = tuple[int, float]  # environment steps so far, return


def tutorial_loop(updates: int, seed: int) -> list[Episode]:
    """One graph per step, distributions from torch, one update per rollout; returns the finished episodes."""
    torch.manual_seed(seed)
    envs = RecordEpisodeStatistics(gym.make_vec("LunarLander-v3", NUM_ENVS, vectorization_mode="sync"))
    critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    actor = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    critic_optimizer = torch.optim.RMSprop(critic.parameters(), lr=TUTORIAL.critic_lr)
    actor_optimizer = torch.optim.RMSprop(actor.parameters(), lr=TUTORIAL.actor_lr)
    observations, _ = envs.reset(seed=seed)
    episodes: list[Episode] = []
    for update in range(updates):
        values, rewards, log_probs, masks = (torch.zeros(STEPS, NUM_ENVS) for _ in range(4))
        entropies = []
        for t in range(STEPS):
            inputs = torch.as_tensor(observations, dtype=torch.float32)
            distribution = torch.distributions.Categorical(logits=actor(inputs))
            actions = distribution.sample()
            values[t] = critic(inputs).squeeze(-1)
            log_probs[t] = distribution.log_prob(actions)
            entropies.append(distribution.entropy())
            observations, reward, terminated, truncated, info = envs.step(actions.numpy())
            rewards[t] = torch.as_tensor(reward)
            masks[t] = torch.as_tensor(~terminated)
            for i in np.flatnonzero(terminated | truncated):
                episodes.append(((update * STEPS + t + 1) * NUM_ENVS, float(info["episode"]["r"][i])))
        advantages, following = torch.zeros(STEPS, NUM_ENVS), torch.zeros(NUM_ENVS)
        for t in reversed(range(STEPS - 1)):
            delta = rewards[t] + TUTORIAL.gamma * masks[t] * values[t + 1] - values[t]
            following = delta + TUTORIAL.gamma * TUTORIAL.gae_lambda * masks[t] * following
            advantages[t] = following
        critic_loss = advantages.pow(2).mean()
        actor_loss = -(advantages.detach() * log_probs).mean() - TUTORIAL.entropy_coef * torch.cat(entropies).mean()
        for loss, optimizer in ((critic_loss, critic_optimizer), (actor_loss, actor_optimizer)):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    envs.close()
    return episodes


def their_a2c(updates: int, seed: int) -> list[Episode]:
    """Stable-Baselines3's A2C with the same numbers of environments and steps, and otherwise its own defaults."""
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env("LunarLander-v3", n_envs=NUM_ENVS, seed=seed, env_kwargs=NO_RENDERING)
    model = stable_baselines3.A2C(
        "MlpPolicy", envs, n_steps=STEPS, seed=seed, device="cpu", policy_kwargs={"net_arch": [32, 32]}
    )
    model.learn(updates * STEPS * NUM_ENVS)
    envs.close()
    return []


def ours(updates: int, seed: int) -> list[Episode]:
    """Like ``gymdr train a2c --config examples/tutorial_a2c.toml --randomization none``, without a run folder."""
    episodes: list[Episode] = []
    steps = 0

    def record(episode: EpisodeRecord) -> None:
        episodes.append((steps, episode.episode_return))

    envs = RecordEpisodes(
        gym.make_vec("gym_dr/LunarLanderDR-v3", NUM_ENVS, randomization="none", num_threads=1), record
    )
    agent = make_agent(envs, TUTORIAL, seed, "cpu")
    collector = RolloutCollector(envs, STEPS, "cpu")
    collector.reset(seed)
    for update in range(updates):
        steps = (update + 1) * STEPS * NUM_ENVS
        rollout = collector.collect(agent.behavior)
        values = agent.values_of(rollout)
        advantages = advantages_of(
            rollout,
            values,
            gamma=TUTORIAL.gamma,
            gae_lambda=TUTORIAL.gae_lambda,
            reward_scale=TUTORIAL.reward_scale,
        )
        learn(agent, make_batch(rollout, values, advantages), TUTORIAL)
    envs.close()
    return episodes


SIDES: dict[str, Callable[[int, int], list[Episode]]] = {"tutorial's loop": tutorial_loop, "gym_dr": ours}
if importlib.util.find_spec("stable_baselines3"):
    SIDES["Stable-Baselines3"] = their_a2c


def compare_speed(updates: int, rounds: int) -> None:
    """Prints one table. gym_dr makes ten times the updates, to be measurable."""
    work = {name: updates * (10 if name == "gym_dr" else 1) for name in SIDES}

    def side(name: str) -> Callable[[], float]:
        return lambda: work[name] * STEPS * NUM_ENVS / seconds(lambda: SIDES[name](work[name], 1))

    measured = alternate({name: side(name) for name in SIDES}, rounds)
    report(f"A2C, {NUM_ENVS} environments x {STEPS} steps an update", measured, "tutorial's loop", "steps/s")


def write_curves(seeds: int, output: Path) -> None:
    """Trains to the end with every seed, appends episodes to ``curves.csv`` and draws ``curves.png``."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / "curves.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["side", "seed", "steps", "return"])
        for seed in range(1, seeds + 1):
            for name in ("gym_dr", "tutorial's loop"):
                rows.writerows([name, seed, *episode] for episode in SIDES[name](UPDATES, seed))
                file.flush()
                print(f"{name}, seed {seed}: done", flush=True)
    draw_curves(output)


def draw_curves(output: Path) -> None:
    """Plots means over seeds with 95 % bands, in 20 parts of training; prints where gym_dr is below the tutorial's."""
    import pandas as pd
    from matplotlib.figure import Figure

    table = pd.read_csv(output / "curves.csv")
    stretch = UPDATES * STEPS * NUM_ENVS / 20
    table["steps"] = (np.ceil(table["steps"] / stretch) * stretch).astype(int)
    by_seed = table.groupby(["side", "seed", "steps"], as_index=False)["return"].mean()
    summary = by_seed.groupby(["side", "steps"])["return"].agg(["mean", "sem"])
    theirs: Any = summary.loc["tutorial's loop"]
    mine: Any = summary.loc["gym_dr"]
    low = theirs["mean"] - 1.96 * theirs["sem"]
    print(pd.DataFrame({"gym_dr": mine["mean"], "tutorial": theirs["mean"], "band's lower end": low}).round(1))
    below = mine.index[mine["mean"] < low]
    print("gym_dr is below the tutorial's 95 % band at:", list(below) or "no point")
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, side in summary.groupby(level="side"):
        x, mean, half = side.index.get_level_values("steps"), side["mean"], 1.96 * side["sem"]
        axes.plot(x, mean, label=name)
        axes.fill_between(x, mean - half, mean + half, alpha=0.2)
    axes.legend()
    axes.set(xlabel="environment steps", ylabel="training return", title="The tutorial's job, mean over seeds")
    figure.savefig(output / "curves.png", dpi=150)


@limited_threads(1)
def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--curves", type=int, metavar="SEEDS", help="whole runs with this many seeds instead of speed")
    parser.add_argument("--output", type=Path, default=Path("curves"))
    arguments = parser.parse_args()
    if arguments.curves:
        write_curves(arguments.curves, arguments.output)
    else:
        compare_speed(arguments.updates, arguments.rounds)


if __name__ == "__main__":
    main()
