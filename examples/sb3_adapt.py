"""Stable-Baselines3's PPO with draws that adapt to its success rate: python examples/sb3_adapt.py [STEPS]."""

from __future__ import annotations

import sys

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from gym_dr import AdaptParams
from gym_dr.integrations.sb3 import GymnasiumVecEnv, make_vec_env

ENV = "gym_dr/LunarLanderDR-v3"
BOX = {
    "gravity": (-11.9, -1),
    "enable_wind": True,
    "wind_power": (0, 20),
    "main_engine_power": (8, 18),
    "lander_density": (3, 9),
}


def main(steps: int = 1_000_000) -> None:
    def show(row: dict) -> None:
        print(f"{row['success_rate']:.0%} of {row['episodes']} episodes succeeded: the sampler {row['did']}")

    envs = gym.make_vec(ENV, num_envs=16, randomization=BOX, autoreset_mode="SameStep")
    envs = AdaptParams(envs, "doraemon", success=200, start="default", on_update=show)
    bridge = GymnasiumVecEnv(envs)
    bridge.seed(1)
    model = PPO("MlpPolicy", bridge, n_steps=1024, gae_lambda=0.98, gamma=0.999, ent_coef=0.01, n_epochs=4, verbose=1)
    model.learn(steps)
    bridge.close()

    fresh = make_vec_env(ENV, n_envs=16, seed=1_000_000, env_kwargs={"randomization": BOX})
    mean, deviation = evaluate_policy(model, fresh, n_eval_episodes=100)
    print(f"Return over 100 draws of the whole box: mean {mean:.0f}, standard deviation {deviation:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
