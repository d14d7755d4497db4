"""Pendulum: a weak motor swings a pendulum up and holds it there, step by step as in Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from math import atan2, cos, nan, pi, pow, sin
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from gym_dr.envs.classic_control.reset_options import number_option
from gym_dr.envs.equations.equations import Bounds, single
from gym_dr.envs.equations.family import equations_family
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.randomization.distributions import Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

SPACE = ParamSpace(
    "Pendulum",
    [
        Param(name="g", nominal=10.0, low=0.0, high=50.0, unit="m/s^2", doc="positive is down"),
        Param(name="m", nominal=1.0, low=0.01, high=100.0, unit="kg", doc="mass of the pendulum"),
        Param(name="l", nominal=1.0, low=0.01, high=10.0, unit="m", doc="length of the pendulum"),
        # these two bound the spaces, which are fixed, so their nominal values are the largest
        Param(name="max_torque", nominal=2.0, low=0.0, high=2.0, unit="N m", doc="limit of the motor"),
        Param(name="max_speed", nominal=8.0, low=0.1, high=8.0, unit="rad/s", doc="limit of the angular velocity"),
        Param(name="dt", nominal=0.05, low=0.001, high=0.2, unit="s", doc="time of a step"),
    ],
)

PRESETS = {
    "default": Randomization({"g": Uniform(8.0, 12.0), "m": Uniform(0.8, 1.2), "l": Uniform(0.8, 1.2)}),
    "wide": Randomization({"g": Uniform(5.0, 15.0), "m": Uniform(0.5, 1.5), "l": Uniform(0.5, 1.5)}),
    "random": Randomization({"m": Uniform(0.75, 1.25), "l": Uniform(0.75, 1.25)}),  # Packer et al. 2018
    "extreme": Randomization({"m": uniform_outside(0.5, 0.75, 1.25, 1.5), "l": uniform_outside(0.5, 0.75, 1.25, 1.5)}),
}


_WIDTHS = ("x_init", "y_init")  # rad, rad/s


class Physics(NamedTuple):
    """Constants of a step."""

    fall: float  # 1/s^2, angular acceleration by gravity when the pendulum is level
    inverse_inertia: float  # 1/(kg m^2)
    max_torque: float
    max_speed: float
    dt: float
    two: float  # an exponent: see ``step``


class State(NamedTuple):
    """The pendulum."""

    theta: float  # rad, 0 is upright
    theta_dot: float  # rad/s
    last_u: float  # N m, torque of the last step, for rendering; nan before the first


def derive(p: Any) -> Physics:
    """A rod that turns about its end."""
    return Physics(3.0 * p.g / (2.0 * p.l), 3.0 / (p.m * (p.l * p.l)), p.max_torque, p.max_speed, p.dt, 2.0)


def begin(c: Physics, u: Any) -> State:
    """Any angle, with a small velocity."""
    return State(u.theta, u.theta_dot, nan)


def bounds(options: Mapping[str, Any], start: Bounds) -> Bounds:
    """Gymnasium's options, which are half the widths.

    Raises:
        RandomizationError: An option is not a number >= 0.
    """
    ends = zip(_WIDTHS, (high for _, high in start), strict=True)
    widths = [number_option(name, options.get(name, high), low=0.0) for name, high in ends]
    return tuple((-width, width) for width in widths)


def step(c: Physics, s: State, action: float) -> tuple[State, float, bool]:
    """One step of semi-implicit Euler; the action is a torque.

    Gymnasium holds the torque in float32 and squares it with the C library's powf. A compiler that knew the exponent
    would multiply instead, which in float32 does not always give the same result.
    """
    torque = np.float32(min(max(single(action), -c.max_torque), c.max_torque))
    tilt = (s.theta + pi) % (2.0 * pi) - pi
    effort = np.float32(0.001) * np.float32(pow(torque, np.float32(c.two)))
    costs = tilt * tilt + 0.1 * (s.theta_dot * s.theta_dot) + np.float64(effort)
    acceleration = c.fall * sin(s.theta) + np.float64(np.float32(c.inverse_inertia) * torque)
    theta_dot = min(max(s.theta_dot + acceleration * c.dt, -c.max_speed), c.max_speed)
    return State(s.theta + theta_dot * c.dt, theta_dot, np.float64(torque)), -costs, False


def observe(c: Physics, s: State) -> tuple[float, float, float]:
    """The direction of the pendulum, and its velocity."""
    return cos(s.theta), sin(s.theta), s.theta_dot


def state_from(o: tuple[float, ...]) -> State:
    """The state; the torque of the last step, which is only rendered, is unknown."""
    return State(atan2(o[1], o[0]), o[2], nan)


_HIGH = np.array([1.0, 1.0, SPACE["max_speed"].nominal], np.float32)

FAMILY = equations_family(
    "gym_dr/PendulumDR-v1",
    name=SPACE.name,
    reference="Pendulum-v1",
    params=SPACE,
    observation_space=Box(-_HIGH, _HIGH),
    action_space=Box(-2.0, 2.0, (1,)),
    keywords=("g",),
    interface=Interface(
        observation=(
            Quantity("cosine of the angle, which is 0 if the pendulum is upright", name="cos_theta"),
            Quantity("sine of the angle", name="sin_theta"),
            Quantity("angular velocity", "rad/s", name="theta_dot"),
        ),
        actions=(Quantity("torque, clipped to `max_torque`", "N m"),),
    ),
    presets=PRESETS,
    returns=(-np.inf, 0.0),
    max_episode_steps=200,
    keys={("left",): (2.0,), ("right",): (-2.0,)},
    clip_actions=False,
    start={"theta": (-pi, pi), "theta_dot": (-1.0, 1.0)},
    pushed=("theta_dot",),
    reset_options=bounds,
    derive=derive,
    begin=begin,
    step=step,
    observe=observe,
    state_from=state_from,
    time_step="dt",
)
