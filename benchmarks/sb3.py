"""Stable-Baselines3's A2C and PPO on native landers and on its ``DummyVecEnv`` of single ones, on one core.

Run it with:  python -m benchmarks.sb3 [--rounds 3] [--steps 65536] [--envs 16 256] [--algorithms A2C PPO]

Both sides train identically, with the same settings, seed and episodes; at the end their weights are compared. Times
``learn`` as a whole, including gradients. Needs stable-baselines3.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env as make_dummy
from stable_baselines3.common.utils import set_random_seed
from torch.nn.utils import parameters_to_vector

from benchmarks.timing import NO_RENDERING, alternate, report, seconds
from gym_dr.integrations.sb3 import make_vec_env
from gym_dr.runs.train import limited_threads

ENV = "gym_dr/LunarLanderDR-v3"
ALGORITHMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "A2C": (A2C, {}),
    "PPO": (PPO, {"n_steps": 128, "n_epochs": 4}),  # and 4 minibatches, as in CleanRL's ppo.py
    "PPO-defaults": (PPO, {}),  # 2,048 steps, ten epochs of batches of 64, which take most of the time
}
TARGETS = {("A2C", 16): 1.5, ("A2C", 256): 5, ("PPO", 16): 1.5, ("PPO", 256): 3}


def settings_of(algorithm: str, num_envs: int) -> dict[str, Any]:
    """Keywords of the algorithm; PPO has 4 minibatches per epoch."""
    settings = ALGORITHMS[algorithm][1]
    return {**settings, "batch_size": num_envs * settings["n_steps"] // 4} if algorithm == "PPO" else settings


def make_model(algorithm: str, num_envs: int, native: bool) -> Any:
    make, keywords = (make_vec_env, {"num_threads": 1}) if native else (make_dummy, NO_RENDERING)
    envs = make(ENV, num_envs, env_kwargs=keywords)
    return ALGORITHMS[algorithm][0]("MlpPolicy", envs, seed=1, device="cpu", **settings_of(algorithm, num_envs))


def compare(algorithm: str, num_envs: int, steps: int, rounds: int) -> None:
    """Prints one table."""
    models = {name: make_model(algorithm, num_envs, name == "native") for name in ("DummyVecEnv", "native")}

    def side(model: Any) -> Callable[[], float]:
        def learn() -> float:
            begun = model.num_timesteps
            set_random_seed(begun)  # so that one side's samples do not depend on the other's
            spent = seconds(lambda: model.learn(steps, reset_num_timesteps=False))
            return (model.num_timesteps - begun) / spent

        return learn

    measured = alternate({name: side(model) for name, model in models.items()}, rounds)
    target = TARGETS.get((algorithm, num_envs))
    title = f"{algorithm}.learn, {num_envs} landers" + (f" (target: {target}x)" if target else "")
    report(title, measured, "DummyVecEnv", "steps/s")
    weights = [parameters_to_vector(model.policy.parameters()) for model in models.values()]
    print(f"  equal weights: {torch.equal(*weights)}", flush=True)


@limited_threads(1)
def main() -> None:
    """Reads the options and prints one table per job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2**16, help="smallest number of steps of each side per round")
    parser.add_argument("--envs", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--algorithms", nargs="+", choices=sorted(ALGORITHMS), default=sorted(ALGORITHMS))
    arguments = parser.parse_args()
    for algorithm in arguments.algorithms:
        for num_envs in arguments.envs:
            compare(algorithm, num_envs, arguments.steps, arguments.rounds)


if __name__ == "__main__":
    main()
