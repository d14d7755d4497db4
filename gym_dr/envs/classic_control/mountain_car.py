"""MountainCar: a weak engine must swing out of a valley (Moore 1990), step by step as in Gymnasium."""

from __future__ import annotations

from math import cos
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from gym_dr.envs.classic_control.reset_options import low_and_high
from gym_dr.envs.equations.family import equations_family
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.randomization.distributions import Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

# the track of both mountain cars; lengths are in units of the drawing, time in steps. The observation space ends at the
# nominal limits, so values cannot exceed them
GRAVITY = Param(name="gravity", nominal=0.0025, low=0.0, high=0.02, unit="1/step^2", doc="pull down the steepest slope")
MAX_SPEED = Param(name="max_speed", nominal=0.07, low=0.01, high=0.07, unit="1/step", doc="limit of the velocity")
MIN_POSITION = Param(name="min_position", nominal=-1.2, low=-1.2, high=-0.7, doc="position of the left wall")
GOAL_VELOCITY = Param(name="goal_velocity", nominal=0.0, low=0.0, high=0.07, unit="1/step", doc="speed needed at goal")

SPACE = ParamSpace(
    "MountainCar",
    [
        Param(name="force", nominal=0.001, low=0.0, high=0.02, unit="1/step^2", doc="push of the engine"),
        GRAVITY,
        MAX_SPEED,
        MIN_POSITION,
        Param(name="goal_position", nominal=0.5, low=0.0, high=0.6, doc="position at which the episode ends"),
        GOAL_VELOCITY,
    ],
)

PRESETS = {
    "default": Randomization({"force": Uniform(0.0008, 0.0012), "gravity": Uniform(0.002, 0.003)}),
    "wide": Randomization({"force": Uniform(0.0006, 0.0014), "gravity": Uniform(0.0015, 0.0035)}),
    "random": Randomization({"force": Uniform(0.0005, 0.005), "gravity": Uniform(0.001, 0.005)}),  # Packer et al. 2018
    "extreme": Randomization(
        {
            "force": uniform_outside(0.0001, 0.0005, 0.005, 0.01),
            "gravity": uniform_outside(0.0005, 0.001, 0.005, 0.01),  # their "mass"
        }
    ),
}

MAX_POSITION = 0.6  # the right wall, at or behind every goal


class State(NamedTuple):
    """The car."""

    position: float
    velocity: float


def begin(c: Any, u: Any) -> State:
    """The car stands in the valley."""
    return State(u.position, 0.0)


def step(c: Any, s: State, action: float) -> tuple[State, float, bool]:
    """One step; actions are 0 (left), 1 (nothing) and 2 (right)."""
    velocity = s.velocity + ((action - 1.0) * c.force + cos(3.0 * s.position) * -c.gravity)
    velocity = min(max(velocity, -c.max_speed), c.max_speed)
    position = min(max(s.position + velocity, c.min_position), MAX_POSITION)
    if position == c.min_position and velocity < 0.0:
        velocity = 0.0
    return State(position, velocity), -1.0, position >= c.goal_position and velocity >= c.goal_velocity


def observe(c: Any, s: Any) -> tuple[float, float]:
    """Position and velocity, for both mountain cars."""
    return s.position, s.velocity


OBSERVATION = (
    Quantity("position; the valley is at -pi/6, about -0.52", name="position"),
    Quantity("velocity", "1/step", name="velocity"),
)  # of both cars, as is their space
OBSERVATION_SPACE = Box(
    low=np.array([MIN_POSITION.nominal, -MAX_SPEED.nominal], np.float32),
    high=np.array([MAX_POSITION, MAX_SPEED.nominal], np.float32),
)
START = {"position": (-0.6, -0.4)}

FAMILY = equations_family(
    "gym_dr/MountainCarDR-v0",
    name=SPACE.name,
    reference="MountainCar-v0",
    params=SPACE,
    observation_space=OBSERVATION_SPACE,
    action_space=Discrete(3),
    keywords=("goal_velocity",),
    interface=Interface(
        observation=OBSERVATION,
        actions=(Quantity("push to the left"), Quantity("no push"), Quantity("push to the right")),
    ),
    presets=PRESETS,
    returns=(-200.0, 0.0),
    max_episode_steps=200,
    reward_threshold=-110.0,
    keys={(): 1, ("left",): 0, ("right",): 2},
    start=START,
    pushed=("velocity",),
    reset_options=low_and_high,
    begin=begin,
    step=step,
    observe=observe,
)
