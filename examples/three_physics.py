"""Flies a trained lander under three settings of the physics, side by side, as in the README.

gymdr train a2c --run-dir runs/lander
python examples/three_physics.py runs/lander lander.gif [SEED]
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image, ImageDraw

import gym_dr

PHYSICS: dict[str, dict[str, float]] = {  # caption -> values that differ from nominal
    "nominal": {},
    "strong wind": {"enable_wind": 1.0, "wind_power": 18.0, "turbulence_power": 1.8},
    "low gravity, weak engine": {"gravity": -6.0, "main_engine_power": 11.0},
}
SIZE = (280, 187)  # pixels of one picture
EVERY = 4  # steps per frame, which are 0.08 s
PAUSE = 1500  # ms at the end


def fly(run: str, seed: int) -> list[Image.Image]:
    """Frames of one episode under each setting, all with the same terrain; finished landers stay in the picture."""
    envs: Any = gym.make_vec("gym_dr/LunarLanderDR-v3", len(PHYSICS), randomization="none", render_mode="rgb_array")
    policy = gym_dr.load_run(run).policy()
    params = {
        name: [physics.get(name, nominal) for physics in PHYSICS.values()]
        for name, nominal in envs.param_space.nominal.items()
    }
    observations, _ = envs.reset(seed=[seed] * len(PHYSICS), options={"params": params})
    flying = np.ones(len(PHYSICS), np.bool_)
    pictures = [draw(name, picture) for name, picture in zip(PHYSICS, envs.render(), strict=True)]
    frames, step = [beside(pictures)], 0
    while flying.any():
        observations, _, terminated, truncated, _ = envs.step(policy(observations))
        step += 1
        if step % EVERY == 0:
            for i in np.flatnonzero(flying):
                pictures[i] = draw(list(PHYSICS)[i], envs.render([i])[0])
            frames.append(beside(pictures))
        flying &= ~(terminated | truncated)
    envs.close()
    return frames


def draw(name: str, picture: Any) -> Image.Image:
    """A small picture of one lander with a caption."""
    image = Image.fromarray(picture).resize(SIZE, Image.Resampling.LANCZOS)
    ImageDraw.Draw(image).text((8, 6), name, fill="white")
    return image


def beside(pictures: list[Image.Image]) -> Image.Image:
    """One frame with few colors, for a GIF."""
    frame = Image.new("RGB", (SIZE[0] * len(pictures), SIZE[1]))
    for place, picture in enumerate(pictures):
        frame.paste(picture, (place * SIZE[0], 0))
    return frame.quantize(24, dither=Image.Dither.NONE)


def main() -> None:
    """Reads the run and the output file from the command line."""
    run, output = sys.argv[1:3]
    frames = fly(run, seed=int(sys.argv[3]) if len(sys.argv) > 3 else 9)
    durations = [80] * (len(frames) - 1) + [PAUSE]
    frames[0].save(output, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)
    print(f"{output}: {len(frames)} frames")


if __name__ == "__main__":
    main()
