"""Stable-Baselines3's A2C and PPO on native landers and on its own ``DummyVecEnv`` of single ones, on one core.

Run it with:  python -m benchmarks.sb3 [--rounds 3] [--seconds 4] [--envs 16 256] [--algorithms A2C PPO]

Both sides have the same algorithm, settings, seed and episodes; what is measured is ``learn`` as a whole, gradients
included. Needs stable-baselines3.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env as make_dummy

from benchmarks.timing import alternate, report, seconds
from gym_dr.integrations.sb3 import make_vec_env

ENV = "gym_dr/LunarLanderDR-v3"
ALGORITHMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "A2C": (A2C, {}),
    # as many minibatches an update whatever the number of environments: what a user of many would set
    "PPO": (PPO, {"n_steps": 128, "n_epochs": 4}),
}
TARGETS = {("A2C", 16): 4, ("A2C", 256): 15, ("PPO", 16): 3, ("PPO", 256): 8}


def settings_of(algorithm: str, num_envs: int) -> dict[str, Any]:
    """PPO has 8 minibatches an epoch."""
    settings = ALGORITHMS[algorithm][1]
    return {**settings, "batch_size": num_envs * settings["n_steps"] // 8} if algorithm == "PPO" else settings


def learner(algorithm: str, num_envs: int, native: bool, duration: float) -> Callable[[], float]:
    """A function that goes on learning for about ``duration`` seconds and returns its steps a second."""
    envs = make_vec_env(ENV, num_envs, env_kwargs={"num_threads": 1}) if native else make_dummy(ENV, num_envs)
    make_model = ALGORITHMS[algorithm][0]
    model = make_model("MlpPolicy", envs, seed=1, device="cpu", **settings_of(algorithm, num_envs))
    rollout = model.n_steps * num_envs
    model.learn(rollout)  # compiled now, if need be
    rollouts = max(1, round(duration / seconds(lambda: model.learn(rollout, reset_num_timesteps=False))))

    def learn() -> float:
        spent = seconds(lambda: model.learn(rollouts * rollout, reset_num_timesteps=False))
        return rollouts * rollout / spent

    return learn


def main() -> None:
    """Reads the options and prints one table a job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each side in each round")
    parser.add_argument("--envs", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--algorithms", nargs="+", choices=sorted(ALGORITHMS), default=sorted(ALGORITHMS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for algorithm in arguments.algorithms:
        for num_envs in arguments.envs:
            sides = {
                name: learner(algorithm, num_envs, native, arguments.seconds)
                for name, native in (("DummyVecEnv", False), ("native", True))
            }
            target = TARGETS.get((algorithm, num_envs))
            title = f"{algorithm}.learn, {num_envs} landers" + (f" (target: {target}x)" if target else "")
            report(title, alternate(sides, arguments.rounds), "DummyVecEnv", "steps/s")


if __name__ == "__main__":
    main()
