"""Stable-Baselines3's PPO on randomized native landers: python examples/sb3_ppo.py [STEPS]."""

from __future__ import annotations

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from gym_dr.integrations.sb3 import make_vec_env

ENV = "gym_dr/LunarLanderDR-v3"
DRAWN = {"gravity": (-11.5, -5), "wind_power": (0, 20), "enable_wind": True}


def main(steps: int = 1_000_000) -> None:
    envs = make_vec_env(ENV, n_envs=16, seed=1, env_kwargs={"randomization": DRAWN})
    model = PPO("MlpPolicy", envs, n_steps=1024, gae_lambda=0.98, gamma=0.999, ent_coef=0.01, n_epochs=4, verbose=1)
    model.learn(steps)
    envs.close()

    fresh = make_vec_env(ENV, n_envs=16, seed=1_000_000, env_kwargs={"randomization": DRAWN})
    flown = []

    def note(scope: dict, _: dict) -> None:
        if scope["done"]:
            flown.append((scope["info"]["episode"]["r"], scope["info"]["params"]))

    mean, deviation = evaluate_policy(model, fresh, n_eval_episodes=100, callback=note)
    print(f"Return over 100 draws: mean {mean:.0f}, standard deviation {deviation:.0f}")
    for what, (episode_return, params) in {"Worst": min(flown, key=first), "Best": max(flown, key=first)}.items():
        print(f"{what}: {episode_return:.0f} with", ", ".join(f"{name} {params[name]:.3g}" for name in DRAWN))


def first(pair: tuple) -> float:
    return pair[0]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
