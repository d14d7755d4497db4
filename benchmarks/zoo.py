"""How well policies of the zoo do what their tasks ask for, over 1,000 episodes of fresh draws of a preset.

Run it with: python -m benchmarks.zoo [--preset default] [--seed 777] RUN...
For those of the Go1: python -m benchmarks.go1 RUN...

What is measured comes from ``info`` (terms of the reward, the critic), so noise does not touch it. An episode
that has ended early keeps its last value.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr
from gym_dr.arrays import Array, Mask

EPISODES = 1000
Measure = Callable[[Mapping[str, Any]], Array]
MEASURES: dict[str, dict[str, Measure]] = {
    "gym_dr/UR5eReachDR-v0": {"distance (m)": lambda info: -info["reward_distance"]},
    "gym_dr/CrazyflieHoverDR-v0": {"distance (m)": lambda info: -info["reward_distance"]},
    "gym_dr/G1WalkDR-v0": {
        "too fast (m/s)": lambda info: info["critic"][:, 0] - info["params"]["command_speed"],
    },
}


def measured(env_id: str, policy: Callable[..., Any], preset: str, seed: int) -> tuple[dict[str, Array], Mask]:
    """Each measure at each step ``(steps, episodes)``, and which episodes terminated ``(episodes,)``."""
    measures = MEASURES[env_id]
    envs = gym.make_vec(env_id, EPISODES, randomization=preset)
    with contextlib.closing(gym_dr.DisturbVector(envs, preset)) as disturbed:
        observations, _ = disturbed.reset(seed=seed)
        steps = gym.spec(env_id).max_episode_steps or 0
        found = {name: np.zeros((steps, EPISODES)) for name in measures}
        over = np.zeros(EPISODES, np.bool_)
        for step in range(steps):
            observations, _, terminations, _, info = disturbed.step(policy(observations))
            for name, measure in measures.items():
                found[name][step] = np.where(over, found[name][step - 1], measure(info))
            over |= terminations
    return found, over


def main() -> None:
    """Prints a line for each run and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seed", type=int, default=777, help="far from those of trainings")
    arguments = parser.parse_args()
    for path in arguments.runs:
        run: Any = gym_dr.load_run(path)
        policy = run.policy(deterministic=True)
        found, over = measured(run.config.settings.env, policy, arguments.preset, arguments.seed)
        for name, values in found.items():
            halves = np.array_split(values, 2)
            ends = f"at the end {values[-1].mean():.4f}, 95 % below {np.quantile(values[-1], 0.95):.4f}"
            off = np.abs(values.mean(axis=0))
            print(f"{path}, {name}: off by {off.mean():.4f} over an episode, 95 % below {np.quantile(off, 0.95):.4f}")
            print(f"{path}, {name}: mean {values.mean():.4f}, second half {halves[1].mean():.4f}, {ends}")
        print(f"{path}, ended early: {100 * over.mean():.1f} %")


if __name__ == "__main__":
    main()
