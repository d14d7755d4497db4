"""As little as an environment needs, and nothing random: episodes begin alike, and the default draws nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

import gym_dr
from gym_dr import Param

ID = "tests/Still-v0"


class Rung(NamedTuple):
    height: float  # m


gym_dr.register_equations(
    ID,
    params=[Param(name="rung", nominal=0.3, low=0.1, high=1.0, unit="m", doc="between two rungs of the ladder")],
    observation_space=Box(-np.inf, np.inf, (1,)),
    action_space=Discrete(2),
    start={},
    begin=lambda p, u: Rung(0.0),
    step=lambda p, s, up: (Rung(s.height + p.rung * up), p.rung * up, s.height > 2.0),
    observe=lambda p, s: (s.height,),
    presets={"default": {}},
)
