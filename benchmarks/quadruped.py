"""A quadruped with servos, for the benchmarks: it is rewarded for walking along x and falls below a height."""

from __future__ import annotations

from typing import Any

import numpy as np

import gym_dr

ID = "benchmarks/Quadruped-v0"
FRAME_SKIP, MAX_STEPS, FALLEN = 5, 250, 0.18  # steps of a control, controls of an episode, m
STANCE = np.array([0.0, 0.0, 0.32, 1.0, 0.0, 0.0, 0.0] + 4 * [0.0, 0.75, -1.5])


def observe(state: Any) -> Any:
    return np.concatenate([state.qpos[:, 7:], state.qvel[:, 6:], state.sensordata], axis=1)


def reward(before: Any, after: Any) -> Any:
    return after.qvel[:, 0] - 0.01 * np.square(after.ctrl).sum(axis=1)


def terminated(state: Any) -> Any:
    return state.qpos[:, 2] < FALLEN


def reset(state: Any, rng: Any) -> Any:
    qpos = np.tile(STANCE, (len(state.qpos), 1))
    qpos[:, 7:] += rng.uniform("joints", -0.05, 0.05, 12)
    return qpos, rng.uniform("velocities", -0.05, 0.05, state.model.nv)


gym_dr.register_robot(
    ID,
    model="quadruped.xml",
    observe=observe,
    reward=reward,
    terminated=terminated,
    reset=reset,
    frame_skip=FRAME_SKIP,
    max_episode_steps=MAX_STEPS,
    actuator_history=6,
)
