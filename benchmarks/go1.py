"""How well policies of the Go1 follow commands, and how often they fall.

Run it with:  python -m benchmarks.go1 [RUN ...] [--preset default] [--episodes 1000] [--seed 2026]

Each row is a policy over one episode on each of so many fresh draws: the mean over steps of the error of the velocity
in the plane, m/s, and of the rate of turning, rad/s, both without the noise that the policy sees, and the part of
episodes that end in a fall. Runs take their most likely actions. The last row is a robot that stands still,
whose errors are the commands, in episodes with actions of 0; whether it falls is not asked.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr

ID = "gym_dr/Go1JoystickDR-v0"


def tracking(policy: Callable[[Any], Any] | None, preset: str, episodes: int, seed: int) -> tuple[float, float, float]:
    """Mean errors, m/s and rad/s, and the part of episodes that end in a fall; None stands still."""
    envs = gym_dr.DisturbVector(gym.make_vec(ID, episodes, randomization=preset), preset)
    with contextlib.closing(envs):
        observations, info = envs.reset(seed=seed)
        playing, fallen = np.ones(episodes, bool), np.zeros(episodes, bool)
        errors = []
        while playing.any():
            commands = info["critic"][:, 3:6]  # during the step, after which they may change, without ramps
            actions = np.zeros((episodes, 12), np.float32) if policy is None else policy(observations)
            observations, _, terminated, truncated, info = envs.step(actions)
            off = (0.0 if policy is None else info["critic"][:, :3]) - commands
            errors.append(np.stack([np.hypot(off[:, 0], off[:, 1]), np.abs(off[:, 2])], axis=1)[playing])
            fallen |= playing & terminated
            playing &= ~(terminated | truncated)
    velocity, turn = np.concatenate(errors).mean(axis=0)
    return float(velocity), float(turn), float(fallen.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    runs = {path: gym_dr.load_run(path) for path in options.runs}
    policies: dict[str, Callable[[Any], Any] | None] = {
        path: run.policy(deterministic=True) for path, run in runs.items() if isinstance(run, gym_dr.Run)
    }
    policies["standing still"] = None
    print(f"{'policy':30} {'m/s':>7} {'rad/s':>7} {'falls':>7}   {options.episodes} draws of {options.preset!r}")
    for name, policy in policies.items():
        velocity, turn, falls = tracking(policy, options.preset, options.episodes, options.seed)
        fallen = "-" if policy is None else f"{falls:.1%}"
        print(f"{name:30} {velocity:7.3f} {turn:7.3f} {fallen:>7}", flush=True)


if __name__ == "__main__":
    main()
