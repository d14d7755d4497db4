"""Draws the pictures of environments in these pages: MUJOCO_GL=egl python docs/environments/draw.py [RUN...].

With runs, only the pictures of their environments, from their policies: so for the zoo, which has no other ones.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

import gym_dr
from gym_dr import RandomizeAttributes
from gym_dr.envs.family import FAMILIES, point_camera

STEPS = {"LunarLander": 60}  # after the reset, where 12 are not enough
SIZE = (420, 420)  # pixels at most
COLORS = 64


def main() -> None:
    """Draws all of them."""
    docs = Path(__file__).parents[1]
    for given in sys.argv[1:]:
        run: Any = gym_dr.load_run(given)
        env_id = run.config.settings.env
        path = docs / "environments" / "pictures" / f"{env_id.rpartition('/')[2]}.png"
        draw(env_id, path, 60, run.policy(deterministic=True))
    if not sys.argv[1:]:
        draw_families(docs / "environments" / "pictures")
        draw_poles(docs / "tutorials" / "pictures")


def draw_families(folder: Path) -> None:
    """One picture for each family's page."""
    for family in FAMILIES.values():
        if "/" not in family.name:
            draw(family.ids[0].id, folder / f"{family.name}.png", STEPS.get(family.name, 12))


def draw(env_id: str, path: Path, steps: int, policy: Any = None) -> None:
    """What an environment looks like after some steps, with random actions or a policy's."""
    env: Any = gym.make(env_id, render_mode="rgb_array", randomization="none")
    point_camera(env)
    observation, _ = env.reset(seed=3)
    env.action_space.seed(1)
    for _ in range(steps):
        observation, *_ = env.step(env.action_space.sample() if policy is None else policy(observation))
    picture = Image.fromarray(env.render())
    env.close()
    picture.thumbnail(SIZE)
    picture.quantize(COLORS).save(path, optimize=True)


def draw_poles(folder: Path) -> None:
    """CartPole with half, all and twice of its nominal length."""
    pictures = []
    for length in (0.25, 0.5, 1.0):
        env: Any = RandomizeAttributes(gym.make("CartPole-v1", render_mode="rgb_array"), {"length": (0.25, 1.0)})
        env.reset(seed=1, options={"params": {"length": length}})
        pictures.append(env.render()[:330, 150:450])
        env.close()
    picture = Image.fromarray(np.concatenate(pictures, axis=1))
    picture.quantize(COLORS).save(folder / "poles.png", optimize=True)


if __name__ == "__main__":
    main()
