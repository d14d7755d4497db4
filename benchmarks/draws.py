"""Speed of draws against numpy's generator, and the cost of re-drawing a vector environment.

Run it with: python -m benchmarks.draws
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr
from benchmarks.timing import alternate, report, seconds
from gym_dr import Bernoulli, Randomization, ResampleParams
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER, PRESETS
from gym_dr.randomization.sampler import draw, uniforms

SUB_ENVS = 100_000
ROUNDS = 9


def steps_per_second(env: gym.Env[Any, Any], steps: int = 3000) -> float:
    """Steps per second of whole episodes with actions in turn, including resets."""
    env.reset(seed=1)
    done = 0

    def play() -> None:
        nonlocal done
        while done < steps:
            env.reset()
            over = False
            while not over:
                _, _, terminated, truncated, _ = env.step(done % 4)
                over = terminated or truncated
                done += 1

    spent = seconds(play)
    return done / spent


def main() -> None:
    """Prints three tables."""
    names = list(LUNAR_LANDER)
    seeds = np.arange(SUB_ENVS, dtype=np.uint64)
    all_ten = Randomization(
        {name: (p.low, p.high) if p.kind == "float" else Bernoulli(0.5) for name, p in LUNAR_LANDER.items()}
    )
    correlation = {"names": ["gravity", "wind_power"], "matrix": [[1.0, 0.5], [0.5, 1.0]]}
    correlated = Randomization(dict(all_ten), correlation=correlation)
    rng = np.random.default_rng(0)
    measured = alternate(
        {
            "numpy Generator, not keyed": lambda: 1e3 * seconds(lambda: rng.random((len(names), SUB_ENVS))),
            "keyed uniforms": lambda: 1e3 * seconds(lambda: uniforms(seeds, 0, names)),
            "draw, ten uniform": lambda: 1e3 * seconds(lambda: draw(all_ten, LUNAR_LANDER, seeds, 0)),
            "draw, two of ten correlated": lambda: 1e3 * seconds(lambda: draw(correlated, LUNAR_LANDER, seeds, 0)),
            "draw, preset extreme": lambda: 1e3 * seconds(lambda: draw(PRESETS["extreme"], LUNAR_LANDER, seeds, 0)),
        },
        ROUNDS,
    )
    report(f"10 parameters for {SUB_ENVS:,} sub-environments", measured, "keyed uniforms", "ms")

    envs = ResampleParams(
        gym.make_vec("gym_dr/LunarLanderDR-v3", 1000, vectorization_mode="sync"), rollout_steps=128, every=4
    )
    envs.reset(seed=0)
    measured = alternate({"resample": lambda: 1e3 * seconds(envs.resample)}, ROUNDS)
    report("ResampleParams, 1,000 sub-environments, sync", measured, "resample", "ms")
    envs.close()

    sides = {
        "gymnasium LunarLander-v3": gym.make("LunarLander-v3"),
        "gym_dr, nominal": gym.make("gym_dr/LunarLanderDR-v3", randomization="none"),
        "gym_dr, default draws": gym.make("gym_dr/LunarLanderDR-v3"),
    }

    measured = alternate({name: partial(steps_per_second, env) for name, env in sides.items()}, ROUNDS)
    report("Single environment, resets included", measured, "gymnasium LunarLander-v3", "steps/s")
    print(f"\ngym_dr {gym_dr.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
