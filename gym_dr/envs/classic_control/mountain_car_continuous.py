"""MountainCarContinuous: the mountain car with a throttle, step by step as in Gymnasium.

Gymnasium keeps the state in float32 from the first step on, so each of its operations rounds to float32. Sums and
products of two float32 numbers are exact enough when computed in float64 and then rounded.
"""

from __future__ import annotations

from math import cos
from typing import Any, NamedTuple

from gymnasium.spaces import Box

from gym_dr.envs.classic_control.mountain_car import (
    GOAL_VELOCITY,
    GRAVITY,
    MAX_POSITION,
    MAX_SPEED,
    MIN_POSITION,
    OBSERVATION,
    OBSERVATION_SPACE,
    START,
    observe,
)
from gym_dr.envs.classic_control.reset_options import low_and_high
from gym_dr.envs.equations.equations import single
from gym_dr.envs.equations.family import equations_family
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.randomization.distributions import Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

SPACE = ParamSpace(
    "MountainCarContinuous",
    [
        Param(
            name="power", nominal=0.0015, low=0.0, high=0.02, unit="1/step^2", doc="push of the engine at full throttle"
        ),
        GRAVITY,
        MAX_SPEED,
        MIN_POSITION,
        Param(name="goal_position", nominal=0.45, low=0.0, high=0.6, doc="position at which the episode ends"),
        GOAL_VELOCITY,
    ],
)

# "random" and "extreme" have the ranges of Packer et al. 2018 for MountainCar, with the engine's range times 1.5, since
# this engine is stronger by that factor
PRESETS = {
    "default": Randomization({"power": Uniform(0.0012, 0.0018), "gravity": Uniform(0.002, 0.003)}),
    "wide": Randomization({"power": Uniform(0.0009, 0.0021), "gravity": Uniform(0.0015, 0.0035)}),
    "random": Randomization({"power": Uniform(0.00075, 0.0075), "gravity": Uniform(0.001, 0.005)}),
    "extreme": Randomization(
        {
            "power": uniform_outside(0.00015, 0.00075, 0.0075, 0.015),
            "gravity": uniform_outside(0.0005, 0.001, 0.005, 0.01),
        }
    ),
}


class State(NamedTuple):
    """The car."""

    position: float
    velocity: float
    rounded: float  # 1 once the state is float32, 0 before the first step


def begin(c: Any, u: Any) -> State:
    """The car stands in the valley."""
    return State(u.position, 0.0, 0.0)


def step(c: Any, s: State, action: float) -> tuple[State, float, bool]:
    """One step; the action is a throttle, clipped to [-1, 1] for the force but not for the cost."""
    action, rounded = single(action), s.rounded != 0.0
    angle = single(3.0 * s.position) if rounded else 3.0 * s.position
    pull = c.gravity * cos(angle)
    # Gymnasium turns a clipped throttle into a Python number, which is multiplied in float64
    if abs(action) > 1.0:
        push = (c.power if action > 0.0 else -c.power) - pull
        push = single(push) if rounded else push
    else:
        push = single(single(action * single(c.power)) - single(pull))
    velocity = single(s.velocity + push) if rounded else s.velocity + push
    fastest = single(c.max_speed) if rounded else c.max_speed
    velocity = min(max(velocity, -fastest), fastest)
    position = single(s.position + single(velocity)) if rounded else s.position + velocity
    lowest = single(c.min_position) if rounded else c.min_position
    position = min(max(position, lowest), single(MAX_POSITION) if rounded else MAX_POSITION)
    if position == lowest and velocity < 0.0:
        velocity = 0.0
    goal = single(c.goal_position) if rounded else c.goal_position
    least = single(c.goal_velocity) if rounded else c.goal_velocity
    ended = position >= goal and velocity >= least
    reward = (100.0 if ended else 0.0) - action * action * 0.1
    return State(single(position), single(velocity), 1.0), reward, ended


def state_from(o: tuple[float, ...]) -> State:
    """The observed state, which is float32."""
    return State(o[0], o[1], 1.0)


FAMILY = equations_family(
    "gym_dr/MountainCarContinuousDR-v0",
    name=SPACE.name,
    reference="MountainCarContinuous-v0",
    params=SPACE,
    observation_space=OBSERVATION_SPACE,
    action_space=Box(-1.0, 1.0, (1,)),
    keywords=("goal_velocity",),
    interface=Interface(
        observation=OBSERVATION,
        actions=(Quantity("throttle: share of `power`, positive is to the right"),),
    ),
    presets=PRESETS,
    returns=(-100.0, 100.0),
    max_episode_steps=999,
    reward_threshold=90.0,
    keys={("left",): (-1.0,), ("right",): (1.0,)},
    clip_actions=False,
    start=START,
    pushed=("velocity",),
    reset_options=low_and_high,
    begin=begin,
    step=step,
    observe=observe,
    state_from=state_from,
)
