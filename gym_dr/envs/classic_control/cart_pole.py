"""CartPole: pushes on a cart keep a pole upright (Barto, Sutton and Anderson 1983), step by step as in Gymnasium."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from gym_dr.envs.classic_control.reset_options import low_and_high
from gym_dr.envs.equations.family import equations_family
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.randomization.distributions import Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

SPACE = ParamSpace(
    "CartPole",
    [
        Param(name="gravity", nominal=9.8, low=0.0, high=50.0, unit="m/s^2", doc="positive is down"),
        Param(name="masscart", nominal=1.0, low=0.01, high=100.0, unit="kg", doc="mass of the cart"),
        Param(name="masspole", nominal=0.1, low=0.001, high=100.0, unit="kg", doc="mass of the pole"),
        Param(name="length", nominal=0.5, low=0.01, high=10.0, unit="m", doc="half the length of the pole"),
        Param(name="force_mag", nominal=10.0, low=0.0, high=1000.0, unit="N", doc="push on the cart"),
        Param(name="tau", nominal=0.02, low=0.001, high=0.1, unit="s", doc="time of a step"),
        # the observation space extends to twice these two
        Param(
            name="theta_threshold_radians",
            nominal=12 * 2 * pi / 360,
            low=0.01,
            high=0.4,
            unit="rad",
            doc="tilt of the pole at which the episode ends",
        ),
        Param(name="x_threshold", nominal=2.4, low=0.1, high=4.5, unit="m", doc="distance at which the episode ends"),
    ],
)


def _spread(share: float) -> Randomization:
    around = {name: SPACE[name].nominal for name in ("gravity", "masscart", "masspole", "length", "force_mag")}
    return Randomization({name: Uniform((1 - share) * v, (1 + share) * v) for name, v in around.items()})


PRESETS = {
    "default": _spread(0.2),
    "wide": _spread(0.5),
    "random": Randomization(  # Packer et al. 2018
        {"force_mag": Uniform(5.0, 15.0), "length": Uniform(0.25, 0.75), "masspole": Uniform(0.05, 0.5)}
    ),
    "extreme": Randomization(
        {
            "force_mag": uniform_outside(1.0, 5.0, 15.0, 20.0),
            "length": uniform_outside(0.05, 0.25, 0.75, 1.0),
            "masspole": uniform_outside(0.01, 0.05, 0.5, 1.0),
        }
    ),
}


class State(NamedTuple):
    """Cart and pole."""

    x: float  # m
    x_dot: float  # m/s
    theta: float  # rad, 0 is upright
    theta_dot: float  # rad/s


def begin(c: Any, u: Any) -> State:
    """Near the middle, nearly upright."""
    return State(u.x, u.x_dot, u.theta, u.theta_dot)


def step(c: Any, s: State, action: float) -> tuple[State, float, bool]:
    """One Euler step; action 1 pushes to the right, 0 to the left."""
    total_mass, polemass_length = c.masspole + c.masscart, c.masspole * c.length
    force = c.force_mag if action == 1.0 else -c.force_mag
    cosine, sine = cos(s.theta), sin(s.theta)
    push = (force + polemass_length * (s.theta_dot * s.theta_dot) * sine) / total_mass
    theta_acc = (c.gravity * sine - cosine * push) / (
        c.length * (4.0 / 3.0 - c.masspole * (cosine * cosine) / total_mass)
    )
    x_acc = push - polemass_length * theta_acc * cosine / total_mass
    x, theta = s.x + c.tau * s.x_dot, s.theta + c.tau * s.theta_dot
    fallen = abs(x) > c.x_threshold or abs(theta) > c.theta_threshold_radians
    state = State(x, s.x_dot + c.tau * x_acc, theta, s.theta_dot + c.tau * theta_acc)
    return state, 1.0 - c.sutton_barto_reward * (2.0 if fallen else 1.0), fallen


def observe(c: Any, s: State) -> tuple[float, float, float, float]:
    """The state itself."""
    return s.x, s.x_dot, s.theta, s.theta_dot


_FARTHEST, _STEEPEST = (2 * SPACE[name].nominal for name in ("x_threshold", "theta_threshold_radians"))
_HIGH = np.array([_FARTHEST, np.inf, _STEEPEST, np.inf], np.float32)

FAMILY = equations_family(
    "gym_dr/CartPoleDR-v1",
    name=SPACE.name,
    reference="CartPole-v1",
    params=SPACE,
    observation_space=Box(-_HIGH, _HIGH),
    action_space=Discrete(2),
    options={"sutton_barto_reward": 0.0},
    interface=Interface(
        observation=(
            Quantity("position of the cart", "m", name="x"),
            Quantity("velocity of the cart", "m/s", name="x_dot"),
            Quantity("angle of the pole, 0 is upright, positive is to the right", "rad", name="theta"),
            Quantity("angular velocity of the pole", "rad/s", name="theta_dot"),
        ),
        actions=(Quantity("push to the left"), Quantity("push to the right")),
    ),
    presets=PRESETS,
    returns=(0.0, 500.0),
    max_episode_steps=500,
    reward_threshold=475.0,
    keys={("left",): 0, ("right",): 1},
    start=dict.fromkeys(State._fields, (-0.05, 0.05)),
    pushed=("x_dot",),
    reset_options=low_and_high,
    begin=begin,
    step=step,
    observe=observe,
    time_step="tau",
)
