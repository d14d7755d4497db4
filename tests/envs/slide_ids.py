"""Registers the functions of ``slide.py``; imported by name, so that other tests do not meet the ids."""

from __future__ import annotations

import gym_dr
from tests.envs.slide import make, make_pendulum

gym_dr.register(
    "tests/Slide-v0", make, presets={"wide": {"mass": (0.2, 5.0), "slope": (0.0, 0.5)}}, reward_threshold=-15.0
)
gym_dr.register("tests/Pendulum-v0", make_pendulum, randomization={"body_mass:*": gym_dr.Scale((0.5, 2.0))})
