"""Draws the pictures of environments in these pages: MUJOCO_GL=egl python docs/environments/draw.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

from gym_dr import RandomizeAttributes
from gym_dr.envs.family import FAMILIES, point_camera

STEPS = {"LunarLander": 60}  # after the reset, where 12 are not enough
SIZE = (420, 420)  # pixels at most
COLORS = 64


def main() -> None:
    """Draws all of them."""
    docs = Path(__file__).parents[1]
    draw_families(docs / "environments" / "pictures")
    draw_poles(docs / "tutorials" / "pictures")


def draw_families(folder: Path) -> None:
    """One picture for each family's page."""
    for family in FAMILIES.values():
        env: Any = gym.make(family.ids[0].id, render_mode="rgb_array", randomization="none")
        point_camera(env)
        env.reset(seed=3)
        env.action_space.seed(1)
        for _ in range(STEPS.get(family.name, 12)):
            env.step(env.action_space.sample())
        picture = Image.fromarray(env.render())
        env.close()
        picture.thumbnail(SIZE)
        picture.quantize(COLORS).save(folder / f"{family.name}.png", optimize=True)


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
