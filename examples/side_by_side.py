"""Flies two trained landers through the same strong wind and high gravity, side by side, as in the README.

gymdr train a2c --randomization none --run-dir runs/nominal
gymdr train a2c --run-dir runs/robust
python examples/side_by_side.py wind.gif "trained without draws"=runs/nominal "trained with draws"=runs/robust
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from PIL import Image, ImageDraw

import gym_dr

WIND = {"gravity": -11.0, "enable_wind": 1.0, "wind_power": 20.0, "turbulence_power": 1.0}
SIZE = (360, 240)  # pixels of one picture
SEED = 21  # of the ground and the wind
EVERY = 4  # steps per frame, which are 0.08 s
PAUSE = 2500  # ms at the end
GROUND = 200  # of 255, on white pages
GREEN, RED = (120, 220, 120), (255, 110, 110)


def fly(run: str, seed: int) -> tuple[list[Any], str]:
    """Pictures of one episode in the wind, and how it ends. The same seed has the same ground and the same wind."""
    env = gym.make("gym_dr/LunarLanderDR-v3", randomization="none", render_mode="rgb_array")
    trained: Any = gym_dr.load_run(run)
    policy = trained.policy(deterministic=True)
    observation, _ = env.reset(seed=seed, options={"params": WIND})
    pictures, score, ended, steps = [env.render()], 0.0, False, 0
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(int(policy(observation)))
        ended, score, steps = terminated or truncated, score + float(reward), steps + 1
        if ended or steps % EVERY == 0:
            pictures.append(env.render())
    env.close()
    return pictures, "crashed" if terminated and reward == -100 else "landed" if terminated else "still in the air"


def beside(pictures: Sequence[Any], lines: Sequence[str], ends: Sequence[str]) -> Image.Image:
    """One frame with few colors, for a GIF; ``ends`` are empty as long as a lander flies."""
    frame = Image.new("RGB", (SIZE[0] * len(pictures), SIZE[1]))
    for place, (picture, line, end) in enumerate(zip(pictures, lines, ends, strict=True)):
        image = Image.fromarray(picture).resize(SIZE, Image.Resampling.LANCZOS).point(lambda value: min(value, GROUND))
        pen = ImageDraw.Draw(image)
        pen.text((8, 6), line, fill="white", font_size=16)
        pen.text((8, 28), end, fill=GREEN if end == "landed" else RED, font_size=24)
        frame.paste(image, (place * SIZE[0], 0))
    return frame.quantize(32, dither=Image.Dither.NONE)


def main() -> None:
    """Reads the output file and the runs with their captions from the command line."""
    output, *named = sys.argv[1:]
    captions, runs = zip(*(argument.rsplit("=", 1) for argument in named), strict=True)
    flights = [fly(run, SEED) for run in runs]
    last = max(len(pictures) for pictures, _ in flights) - 1
    frames = []
    for moment in range(last + 1):
        now = [pictures[min(moment, len(pictures) - 1)] for pictures, _ in flights]
        ends = [end if moment >= len(pictures) - 1 else "" for pictures, end in flights]
        frames.append(beside(now, captions, ends))
    durations = [80] * last + [PAUSE]
    frames[0].save(output, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)
    print(f"{output}:", *(f"{line} {end}," for line, (_, end) in zip(captions, flights, strict=True)), f"{last} frames")


if __name__ == "__main__":
    main()
