"""Acrobot: a motor between two links swings the lower one up (Sutton 1996), step by step as in Gymnasium."""

from __future__ import annotations

from math import atan2, copysign, cos, floor, pi, sin
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from gym_dr.envs.classic_control.reset_options import low_and_high
from gym_dr.envs.equations.equations import single
from gym_dr.envs.equations.family import equations_family
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.randomization.distributions import Distribution, Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Correlation, Randomization

SPACE = ParamSpace(
    "Acrobot",
    [
        Param(name="gravity", nominal=9.8, low=0.0, high=50.0, unit="m/s^2", doc="positive is down"),
        Param(name="link_length_1", nominal=1.0, low=0.1, high=10.0, unit="m", doc="length of the upper link"),
        Param(name="link_length_2", nominal=1.0, low=0.1, high=10.0, unit="m", doc="lower link; visual only"),
        Param(name="link_mass_1", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="mass of the upper link"),
        Param(name="link_mass_2", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="mass of the lower link"),
        Param(name="link_com_pos_1", nominal=0.5, low=0.05, high=5.0, unit="m", doc="axis to its center of mass"),
        Param(name="link_com_pos_2", nominal=0.5, low=0.05, high=5.0, unit="m", doc="elbow to its center of mass"),
        Param(name="link_moi", nominal=1.0, low=0.1, high=10.0, unit="kg m^2", doc="moment of inertia of each link"),
        Param(name="torque", nominal=1.0, low=0.0, high=10.0, unit="N m", doc="torque of the motor"),
        # these two bound the observations; the space is fixed, so their nominal values are the largest
        Param(name="max_vel_1", nominal=4 * pi, low=pi, high=4 * pi, unit="rad/s", doc="limit of the upper link"),
        Param(name="max_vel_2", nominal=9 * pi, low=pi, high=9 * pi, unit="rad/s", doc="limit of the lower link"),
        Param(name="dt", nominal=0.2, low=0.01, high=0.4, unit="s", doc="time of a step"),
    ],
)


def _links(mass: Distribution, length: Distribution, inertia: Distribution, alike: bool) -> Randomization:
    """Masses, lengths and inertia of the links; with ``alike`` both links get the same values, up to 0.1 %."""
    names = ("link_mass_1", "link_mass_2", "link_length_1", "link_length_2")
    same, none = (1.0, 1.0 - 1e-6), (0.0, 0.0)
    matrix = ((*same, *none), (*same[::-1], *none), (*none, *same), (*none, *same[::-1]))
    rules = {**dict(zip(names, (mass, mass, length, length), strict=True)), "link_moi": inertia}
    return Randomization(rules, correlation=Correlation(names, matrix) if alike else None)


_OUTSIDE = uniform_outside(0.5, 0.75, 1.25, 1.5)

PRESETS = {
    "default": _links(Uniform(0.8, 1.2), Uniform(0.8, 1.2), Uniform(0.8, 1.2), alike=False),
    "wide": _links(Uniform(0.5, 1.5), Uniform(0.5, 1.5), Uniform(0.5, 1.5), alike=False),
    # Packer et al. 2018, who draw one mass and one length for both links
    "random": _links(Uniform(0.75, 1.25), Uniform(0.75, 1.25), Uniform(0.75, 1.25), alike=True),
    "extreme": _links(_OUTSIDE, _OUTSIDE, _OUTSIDE, alike=True),
}


class Physics(NamedTuple):
    """Constants of a step; the symbols are those of Sutton and Barto's book: m1, lc1, I1, ..."""

    inertia_1: float  # m1 lc1^2
    arms: float  # l1^2 + lc2^2
    twice_arm: float  # 2 l1 lc2
    arm: float  # l1 lc2
    m2: float
    lc2_squared: float
    inertia_2: float  # m2 lc2^2
    moi: float  # I1 = I2
    coupling: float  # m2 l1 lc2
    weight_1: float  # (m1 lc1 + m2 l1) g
    weight_2: float  # m2 lc2 g
    torque: float
    max_vel_1: float
    max_vel_2: float
    dt: float


class State(NamedTuple):
    """The two links."""

    theta1: float  # rad, of the upper link; 0 hangs down
    theta2: float  # rad, of the lower link, relative to the upper one
    dtheta1: float  # rad/s
    dtheta2: float


def derive(p: Any) -> Physics:
    """The constants of the equations of motion, multiplied in Gymnasium's order."""
    l1, lc1, lc2, m1, m2 = p.link_length_1, p.link_com_pos_1, p.link_com_pos_2, p.link_mass_1, p.link_mass_2
    return Physics(
        m1 * (lc1 * lc1),
        l1 * l1 + lc2 * lc2,
        2.0 * l1 * lc2,
        l1 * lc2,
        m2,
        lc2 * lc2,
        m2 * (lc2 * lc2),
        p.link_moi,
        m2 * l1 * lc2,
        (m1 * lc1 + m2 * l1) * p.gravity,
        m2 * lc2 * p.gravity,
        p.torque,
        p.max_vel_1,
        p.max_vel_2,
        p.dt,
    )


def begin(c: Physics, u: Any) -> State:
    """The initial state, rounded to float32 as in Gymnasium."""
    return State(single(u.theta1), single(u.theta2), single(u.dtheta1), single(u.dtheta2))


def rates(c: Physics, s: State, torque: float) -> State:
    """Time derivatives of the state, by the equations of the book."""
    sin1, cos1, sin2, cos2 = sin(s.theta1), cos(s.theta1), sin(s.theta2), cos(s.theta2)
    d1 = c.inertia_1 + c.m2 * (c.arms + c.twice_arm * cos2) + c.moi + c.moi
    d2 = c.m2 * (c.lc2_squared + c.arm * cos2) + c.moi
    phi2 = c.weight_2 * (sin1 * cos2 + cos1 * sin2)  # of both angles together
    phi1 = -c.coupling * s.dtheta2 * (s.dtheta2 + 2.0 * s.dtheta1) * sin2 + c.weight_1 * sin1 + phi2
    acceleration2 = (torque + d2 / d1 * phi1 - c.coupling * s.dtheta1 * s.dtheta1 * sin2 - phi2) / (
        c.inertia_2 + c.moi - d2 * d2 / d1
    )
    return State(s.dtheta1, s.dtheta2, -(d2 * acceleration2 + phi1) / d1, acceleration2)


def moved(s: State, time: float, k: State) -> State:
    """The state after some time at constant rates."""
    return State(
        s.theta1 + time * k.theta1,
        s.theta2 + time * k.theta2,
        s.dtheta1 + time * k.dtheta1,
        s.dtheta2 + time * k.dtheta2,
    )


def weighted(k1: float, k2: float, k3: float, k4: float) -> float:
    """Runge-Kutta's sum of the four rates: six times their weighted mean."""
    return k1 + 2.0 * k2 + 2.0 * k3 + k4


def wrap(angle: float) -> float:
    """The same angle in [-pi, pi], subtracting one turn after the other, as Gymnasium does.

    More than seven turns in one step, which only a diverging solver makes, are subtracted at once, since SIMD needs a
    loop of fixed length.
    """
    size = abs(angle)
    size = size - 2.0 * pi * max(floor(size / (2.0 * pi)) - 6.0, 0.0)
    for _ in range(7):
        size = size - 2.0 * pi if size > pi else size
    return copysign(1.0, angle) * size


def step(c: Physics, s: State, action: float) -> tuple[State, float, bool]:
    """One step of Runge-Kutta 4; actions are 0 (-1 N m), 1 (nothing) and 2 (1 N m)."""
    torque, half = (action - 1.0) * c.torque, c.dt / 2.0
    k1 = rates(c, s, torque)
    k2 = rates(c, moved(s, half, k1), torque)
    k3 = rates(c, moved(s, half, k2), torque)
    k4 = rates(c, moved(s, c.dt, k3), torque)
    k = State(
        weighted(k1.theta1, k2.theta1, k3.theta1, k4.theta1),
        weighted(k1.theta2, k2.theta2, k3.theta2, k4.theta2),
        weighted(k1.dtheta1, k2.dtheta1, k3.dtheta1, k4.dtheta1),
        weighted(k1.dtheta2, k2.dtheta2, k3.dtheta2, k4.dtheta2),
    )
    end = moved(s, c.dt / 6.0, k)
    theta1, theta2 = wrap(end.theta1), wrap(end.theta2)
    dtheta1 = min(max(end.dtheta1, -c.max_vel_1), c.max_vel_1)
    dtheta2 = min(max(end.dtheta2, -c.max_vel_2), c.max_vel_2)
    up = -cos(theta1) - cos(theta2 + theta1) > 1.0
    return State(theta1, theta2, dtheta1, dtheta2), 0.0 if up else -1.0, up


def observe(c: Physics, s: State) -> tuple[float, float, float, float, float, float]:
    """The directions of the links, and their velocities."""
    return cos(s.theta1), sin(s.theta1), cos(s.theta2), sin(s.theta2), s.dtheta1, s.dtheta2


def state_from(o: tuple[float, ...]) -> State:
    """The angles of the links from their directions."""
    return State(atan2(o[1], o[0]), atan2(o[3], o[2]), o[4], o[5])


_HIGH = np.array([1.0, 1.0, 1.0, 1.0, SPACE["max_vel_1"].nominal, SPACE["max_vel_2"].nominal], np.float32)

FAMILY = equations_family(
    "gym_dr/AcrobotDR-v1",
    name=SPACE.name,
    reference="Acrobot-v1",
    params=SPACE,
    observation_space=Box(-_HIGH, _HIGH),
    action_space=Discrete(3),
    interface=Interface(
        observation=(
            Quantity("cosine of the upper link's angle, which is 0 if it hangs down", name="cos_theta1"),
            Quantity("sine of that angle", name="sin_theta1"),
            Quantity("cosine of the lower link's angle, relative to the upper link", name="cos_theta2"),
            Quantity("sine of that angle", name="sin_theta2"),
            Quantity("angular velocity of the upper link", "rad/s", name="dtheta1"),
            Quantity("angular velocity of the lower link, relative to the upper link", "rad/s", name="dtheta2"),
        ),
        actions=(
            Quantity("torque -1 at the elbow, times `torque`", "N m"),
            Quantity("no torque", "N m"),
            Quantity("torque 1 at the elbow, times `torque`", "N m"),
        ),
    ),
    presets=PRESETS,
    returns=(-500.0, 0.0),
    max_episode_steps=500,
    reward_threshold=-100.0,
    keys={(): 1, ("left",): 0, ("right",): 2},
    start=dict.fromkeys(State._fields, (-0.1, 0.1)),
    pushed=("dtheta1", "dtheta2"),
    reset_options=low_and_high,
    derive=derive,
    begin=begin,
    step=step,
    observe=observe,
    state_from=state_from,
    time_step="dt",
)
