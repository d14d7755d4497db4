"""Environments that are only fitted to logs: no presets, no reward, no random start."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from gym_dr import Param, register_equations, register_robot
from tests.fitting.cart_on_rail import STEP, State, observe, state_from

CART, POLE = "tests/OnlyFitted-v0", "tests/OnlyFittedPole-v0"
MODEL = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body>
      <joint name="hinge" axis="0 1 0" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


def begin(c: Any, u: Any) -> State:
    return State(0.0, 0.0)


def step(c: Any, s: State, action: float) -> State:
    v = s.v + STEP * (c.gain * action - c.drag * s.v)
    return State(s.x + STEP * v, v)


def register() -> None:
    """Registers both ids."""
    register_equations(
        CART,
        params=[
            Param(name="gain", nominal=1.0, low=-9.0, high=9.0),
            Param(name="drag", nominal=0.5, low=0.0, high=9.0),
        ],
        observation_space=Box(-np.inf, np.inf, (1,)),
        action_space=Box(-1.0, 1.0, (1,)),
        begin=begin,
        step=step,
        observe=observe,
        state_from=state_from,
        time_step=STEP,
    )
    register_robot(
        POLE,
        model=MODEL,
        observe=lambda state: state.qpos,
        state_from=lambda observations: (observations, np.full_like(observations, np.nan)),
    )
