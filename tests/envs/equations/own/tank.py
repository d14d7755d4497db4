"""A heated tank: three choices of power keep it warm while the weather changes at random and somebody draws water."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

import gym_dr
from gym_dr import Interface, LogUniform, Normal, Param, Quantity, Uniform

ID = "tests/Tank-v0"
GOAL = 60.0  # degrees C
STEP = 10.0  # s


class Tank(NamedTuple):
    warmth: float  # degrees C
    outside: float
    steps: int


def decay(time: float, constant: float) -> float:
    return math.exp(-time / constant)


def begin(p: Any, u: Any) -> Tank:
    return Tank(GOAL + u.off, p.weather + 3.0 * u.mood, 0)


def step(p: Any, s: Tank, power: int, w: Any) -> tuple[Tank, float, bool]:
    """Water is drawn in a tenth of the steps; choices are 1 (off), 2 (1 kW) and 3 (2 kW)."""
    heated = s.warmth + STEP * 1000.0 * (power - 1) / (4186.0 * p.mass)
    warmth = s.outside + (heated - s.outside) * decay(STEP, p.hours * 3600.0)
    if w.tap < 0.1:
        warmth = 0.95 * warmth + 0.05 * s.outside
    outside = s.outside + 0.2 * w.weather
    miss = abs(warmth - GOAL)
    return Tank(warmth, min(max(outside, -40.0), 50.0), s.steps + 1), -miss / 10.0, miss > 30.0


def observe(p: Any, s: Tank) -> tuple[float, float, float]:
    return (s.warmth - GOAL) / 10.0, s.outside / 10.0, math.sin(0.1 * s.steps)


def render(p: Any, s: Tank) -> npt.NDArray[np.uint8]:
    picture = np.zeros((20, 101, 3), np.uint8)
    picture[:, : int(np.clip(s.warmth, 0, 100)) + 1] = (200, 80, 0)
    return picture


gym_dr.register_equations(
    ID,
    params=[
        Param(name="mass", nominal=50.0, low=1.0, high=500.0, unit="kg", doc="water in the tank"),
        Param(name="hours", nominal=5.0, low=0.1, high=100.0, unit="h", doc="time constant of its losses"),
        Param(name="weather", nominal=10.0, low=-30.0, high=40.0, unit="degrees C", doc="outside, when it begins"),
    ],
    observation_space=Box(-10.0, 10.0, (3,), np.float64),
    action_space=Discrete(3, start=1),
    start={"off": Uniform(-5.0, 5.0), "mood": Normal(0.0, 1.0)},
    process_noise={"tap": (0.0, 1.0), "weather": Normal(0.0, 1.0)},
    begin=begin,
    step=step,
    observe=observe,
    render=render,
    render_fps=10,
    pushed=("warmth",),
    presets={"default": {"mass": (30.0, 80.0), "weather": (-10.0, 25.0)}, "old": {"hours": LogUniform(0.5, 5.0)}},
    max_episode_steps=100,
    keys={(): 1, ("up",): 3},
    interface=Interface(
        observation=(Quantity("warmth above 60 degrees", "10 degrees C"), Quantity("outside"), Quantity("a clock")),
        actions=(Quantity("off"), Quantity("1 kW"), Quantity("2 kW")),
    ),
)
