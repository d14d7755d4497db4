"""As little as an environment needs: no derived constants, noise, pushes or pictures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box

import gym_dr
from gym_dr import Param

ID = "tests/Bare-v0"


class Depth(NamedTuple):
    depth: float  # m


gym_dr.register_equations(
    ID,
    params=[Param(name="rate", nominal=0.1, low=0.0, high=1.0, unit="m", doc="of sinking in one step")],
    observation_space=Box(-np.inf, np.inf, (1,)),
    action_space=Box(-1.0, 1.0, (1,)),
    start={"depth": (0.0, 1.0)},
    begin=lambda p, u: Depth(u.depth),
    step=lambda p, s, lift: (Depth(s.depth + p.rate * (1.0 - lift)), -s.depth, s.depth > 2.0),
    observe=lambda p, s: (s.depth,),
    presets={"default": {"rate": (0.05, 0.5)}},
)
