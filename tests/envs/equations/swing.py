"""A pendulum to be registered with one thing wrong in it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

import gym_dr
from gym_dr import Param


class Swing(NamedTuple):
    angle: float
    speed: float


def begin(p: Any, u: Any) -> Swing:
    return Swing(u.angle, 0.0)


def step(p: Any, s: Swing, action: float) -> tuple[Swing, float, bool]:
    speed = s.speed + 0.02 * (action - 1.0 - 9.81 / p.length * math.sin(s.angle))
    return Swing(s.angle + 0.02 * speed, speed), -abs(s.angle), False


def observe(p: Any, s: Swing) -> tuple[float, float]:
    return s.angle, s.speed


RIGHT: dict[str, Any] = {
    "params": [Param(name="length", nominal=1.0, low=0.1, high=10.0, unit="m")],
    "observation_space": Box(-np.inf, np.inf, (2,)),
    "action_space": Discrete(3),
    "start": {"angle": (-1.0, 1.0)},
    "begin": begin,
    "step": step,
    "observe": observe,
    "presets": {"default": {"length": (0.5, 2.0)}},
}


def register(env_id: str = "tests/Swing-v0", **changed: Any) -> None:
    gym_dr.register_equations(env_id, **{**RIGHT, **changed})
