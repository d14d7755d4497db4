"""A robot in one file beside its model: a motor turns a rod on a hinge, which should stand upright."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_dr import Scale, register_robot


def observe(state: Any) -> Any:
    return np.concatenate([np.cos(state.qpos), np.sin(state.qpos), state.qvel], axis=1)


def reward(before: Any, after: Any) -> Any:
    return np.cos(after.qpos[:, 0]) - 0.01 * np.square(after.ctrl[:, 0])


def reset(state: Any, rng: Any) -> Any:
    return rng.uniform("angle", -np.pi, np.pi, 1), state.qvel


register_robot(
    "parts/Rod-v0",
    model="rod.xml",
    observe=observe,
    reward=reward,
    reset=reset,
    frame_skip=2,
    max_episode_steps=50,
    presets={"default": {"body_mass:rod": Scale((0.5, 2.0)), "dof_damping": Scale((0.5, 1.5))}},
)
