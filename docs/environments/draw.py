"""Draws the picture of each family's page: MUJOCO_GL=egl python docs/environments/draw.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
from PIL import Image

from gym_dr.envs.family import FAMILIES, point_camera

STEPS = {"LunarLander": 60}  # after the reset, where 12 are not enough
SIZE = (420, 420)  # pixels at most
COLORS = 64


def main() -> None:
    """Draws all of them."""
    folder = Path(__file__).parent / "pictures"
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


if __name__ == "__main__":
    main()
