"""A pole on a cart; its observation has what a reset must clear (actions, sensors) and what is derived (a site)."""

from __future__ import annotations

from typing import Any

import numpy as np

import gym_dr
from gym_dr import Scale


def observe(state: Any) -> Any:
    tip = state.site_xpos[:, state.model.site("tip").id]
    return np.concatenate([state.qpos, state.qvel, state.ctrl, tip, state.sensor("speed")], axis=1)


def reward(before: Any, after: Any) -> Any:
    gone = after.qpos[:, 0] - before.qpos[:, 0]
    return after.site_xpos[:, 0, 2] - 0.1 * abs(gone) - 0.01 * np.square(after.ctrl).sum(axis=1)


def terminated(state: Any) -> Any:
    return abs(state.qpos[:, 1]) > 0.3


def reset(state: Any, rng: Any) -> Any:
    up = state.model.key("up").qpos
    return up + rng.uniform("positions", -0.1, 0.1, 2), rng.uniform("velocities", -0.1, 0.1, 2)


gym_dr.register_robot(
    "tests/Swing-v0",
    model="swing.xml",
    observe=observe,
    reward=reward,
    terminated=terminated,
    reset=reset,
    fields=["site_xpos"],
    frame_skip=2,
    max_episode_steps=50,
    presets={"heavy": {"body_mass": Scale((1.0, 2.0))}},
    camera="side",
)
