"""Draws two Go1s under the same draw of `harder`, the same commands and the same pushes.

gymdr train ppo --env gym_dr/Go1JoystickDR-v0 --randomization none --run-dir runs/go1_nominal
gymdr train ppo --env gym_dr/Go1JoystickDR-v0 --run-dir runs/go1_draws
MUJOCO_GL=egl python docs/environments/draw_go1.py runs/go1_nominal runs/go1_draws
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
from PIL import Image, ImageDraw

import gym_dr
from gym_dr.envs.family import point_camera

SEED = 10  # of the draw, the commands and the pushes
STEPS, EVERY = 200, 5  # 4 s, a frame each 0.1 s
SIZE = (300, 260)  # pixels of one picture
CAPTIONS = ("trained without draws", "trained with draws")


def walk(run: str) -> tuple[list[Any], bool]:
    """Pictures of an episode, and whether it ends in a fall."""
    env: Any = gym.make("gym_dr/Go1JoystickDR-v0", randomization="harder", render_mode="rgb_array")
    point_camera(env)
    env, trained = gym_dr.Disturb(env, "harder"), gym_dr.load_run(run)
    assert isinstance(trained, gym_dr.Run)
    policy = trained.policy(deterministic=True)
    observation, _ = env.reset(seed=SEED)
    pictures, fell = [env.render()], False
    for step in range(1, STEPS + 1):
        observation, _, fell, _, _ = env.step(policy(observation))
        if fell or step % EVERY == 0:
            pictures.append(env.render())
        if fell:
            break
    env.close()
    return pictures, fell


def beside(walks: list[tuple[list[Any], bool]], moment: int) -> Image.Image:
    """One frame; a robot that fell lies there."""
    frame = Image.new("RGB", (2 * SIZE[0], SIZE[1]))
    for place, ((pictures, fell), caption) in enumerate(zip(walks, CAPTIONS, strict=True)):
        image = Image.fromarray(pictures[min(moment, len(pictures) - 1)])
        height = image.width * SIZE[1] // SIZE[0]
        top = (image.height - height) // 2
        image = image.crop((0, top, image.width, top + height)).resize(SIZE, Image.Resampling.LANCZOS)
        pen = ImageDraw.Draw(image)
        pen.text((8, 6), caption, fill="black", font_size=16)
        if fell and moment >= len(pictures) - 1:
            pen.text((8, SIZE[1] - 36), "fell", fill="orange", font_size=26)
        frame.paste(image, (place * SIZE[0], 0))
    return frame


def main() -> None:
    """Reads the two runs from the command line."""
    walks = [walk(run) for run in sys.argv[1:3]]
    last = max(len(pictures) for pictures, _ in walks) - 1
    frames = [beside(walks, moment) for moment in range(last + 1)]
    palette = frames[last].quantize(64)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    path = Path(__file__).parent / "pictures" / "go1.gif"
    durations = [100] * last + [2000]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)


if __name__ == "__main__":
    main()
