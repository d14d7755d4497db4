"""InvertedPendulum's equations of motion: a pole of any shape on a cart, as long as no joint is beyond its limit.

The pole's center of mass is at ``(px, pz)`` in its own frame; turned by ``theta``, it is ``out`` beside the hinge::

    out = px cos(theta) + pz sin(theta)        along = d out / d theta = pz cos(theta) - px sin(theta)

    (m + M) x''     + m along theta'' = m out theta'^2 + (m + M) gx - kx x - dx x' + gear control
    m along x''     + J theta''       = m (gx along - gz out) - kt theta - dt theta'

where J is the pole's moment about the hinge, and the armatures of the joints add to ``m + M`` and J. MuJoCo integrates
this with its classical Runge-Kutta method of order 4, two steps for each of the environment's.
"""

from __future__ import annotations

from collections import namedtuple
from math import cos, pi, sin
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from gym_dr.compiled.play import UNFINISHED
from gym_dr.envs.equations.equations import Equations
from gym_dr.randomization.distributions import Uniform

FRAME_SKIP = 2
FALLEN = 0.2  # rad, as in Gymnasium
# constants of Gymnasium's model, which no parameter changes
_TIMESTEP = 0.02  # s
_CONTROL = 3.0  # largest control
_RAIL = 1.0  # m, half its length
_RIGHT_ANGLE = pi / 2  # largest angle of the hinge
_TOO_FAST = 1e9  # m/s, rad/s: MuJoCo gives up at ten times this


# parameter of the equations -> field of the model, and place in it, flattened
PLACES: dict[str, tuple[str, int]] = {
    "gravity_x": ("gravity", 0),
    "gravity_z": ("gravity", 2),
    "density": ("density", 0),
    "viscosity": ("viscosity", 0),
    "mass_cart": ("body_mass", 1),
    "mass_pole": ("body_mass", 2),
    "inertia": ("body_inertia", 7),  # of the pole about the axis of the hinge, which is a principal axis
    "pole_x": ("body_ipos", 6),  # center of mass in the pole's frame
    "pole_z": ("body_ipos", 8),
    "stiffness_slider": ("jnt_stiffness", 0),
    "stiffness_hinge": ("jnt_stiffness", 1),
    "damping_slider": ("dof_damping", 0),
    "damping_hinge": ("dof_damping", 1),
    "friction_slider": ("dof_frictionloss", 0),
    "friction_hinge": ("dof_frictionloss", 1),
    "armature_slider": ("dof_armature", 0),
    "armature_hinge": ("dof_armature", 1),
    "gear": ("actuator_gear", 0),
}
OTHERS = "others"  # a parameter that is 1 if other numbers of the model vary, which these equations lack


class Physics(NamedTuple):
    """Constants of a step."""

    mass: float  # kg, of all sliding parts
    moment: float  # kg m^2, about the hinge
    lever_x: float  # kg m
    lever_z: float
    pull: float  # N, of gravity along the rail
    gravity_x: float
    gravity_z: float
    stiffness_slider: float
    stiffness_hinge: float
    damping_slider: float
    damping_hinge: float
    gear: float
    covered: float  # 0 if there is something that these equations lack: dry friction, drag, another timestep, ...


class State(NamedTuple):
    """Positions, velocities, and accelerations for MuJoCo's warm start."""

    x: float  # m
    theta: float  # rad, 0 is upright
    v: float  # m/s
    w: float  # rad/s
    x_acceleration: float
    theta_acceleration: float


def derive(p: Any) -> Physics:
    """Masses and moments of the moving parts."""
    mass = p.mass_cart + p.mass_pole
    missing = p.friction_slider + p.friction_hinge + p.density + p.viscosity + p.others
    return Physics(
        mass + p.armature_slider,
        p.inertia + p.mass_pole * (p.pole_x * p.pole_x + p.pole_z * p.pole_z) + p.armature_hinge,
        p.mass_pole * p.pole_x,
        p.mass_pole * p.pole_z,
        mass * p.gravity_x,
        p.gravity_x,
        p.gravity_z,
        p.stiffness_slider,
        p.stiffness_hinge,
        p.damping_slider,
        p.damping_hinge,
        p.gear,
        1.0 if missing == 0.0 else 0.0,
    )


def begin(c: Physics, u: Any) -> State:
    """MuJoCo's solver begins with zeros."""
    return State(u.x, u.theta, u.v, u.w, 0.0, 0.0)


def accelerations(c: Physics, x: float, theta: float, v: float, w: float, force: float) -> tuple[float, float]:
    """The equations of motion, solved for x'' and theta''."""
    sine, cosine = sin(theta), cos(theta)
    along = c.lever_z * cosine - c.lever_x * sine
    out = c.lever_x * cosine + c.lever_z * sine
    push = out * (w * w) + c.pull - c.stiffness_slider * x - c.damping_slider * v + force
    torque = c.gravity_x * along - c.gravity_z * out - c.stiffness_hinge * theta - c.damping_hinge * w
    determinant = c.mass * c.moment - along * along
    return (c.moment * push - along * torque) / determinant, (c.mass * torque - along * push) / determinant


def within(x: float, theta: float) -> bool:
    """Whether no joint is beyond its limit, where MuJoCo applies a limit force; False for nan."""
    return abs(x) <= _RAIL and abs(theta) <= _RIGHT_ANGLE


def integrate(c: Physics, s: State, force: float) -> tuple[State, bool]:
    """One step of Runge-Kutta 4, with the accelerations of its last stage, and whether none was beyond a limit."""
    h = _TIMESTEP
    half = 0.5 * h
    a1, b1 = accelerations(c, s.x, s.theta, s.v, s.w, force)
    x2, theta2, v2, w2 = s.x + half * s.v, s.theta + half * s.w, s.v + half * a1, s.w + half * b1
    a2, b2 = accelerations(c, x2, theta2, v2, w2, force)
    x3, theta3, v3, w3 = s.x + half * v2, s.theta + half * w2, s.v + half * a2, s.w + half * b2
    a3, b3 = accelerations(c, x3, theta3, v3, w3, force)
    x4, theta4, v4, w4 = s.x + h * v3, s.theta + h * w3, s.v + h * a3, s.w + h * b3
    a4, b4 = accelerations(c, x4, theta4, v4, w4, force)
    sixth = h / 6.0
    after = State(
        s.x + sixth * (s.v + 2.0 * (v2 + v3) + v4),
        s.theta + sixth * (s.w + 2.0 * (w2 + w3) + w4),
        s.v + sixth * (a1 + 2.0 * (a2 + a3) + a4),
        s.w + sixth * (b1 + 2.0 * (b2 + b3) + b4),
        a4,
        b4,
    )
    return after, within(s.x, s.theta) and within(x2, theta2) and within(x3, theta3) and within(x4, theta4)


def step(c: Physics, s: State, action: float) -> tuple[State, float, bool]:
    """Two steps of the integrator; none, left unfinished, if only MuJoCo can make them."""
    force = c.gear * min(max(action, -_CONTROL), _CONTROL)
    m, free = integrate(c, s, force)
    n, still_free = integrate(c, m, force)
    ours = c.covered == 1.0 and free and still_free and abs(n.v) < _TOO_FAST and abs(n.w) < _TOO_FAST
    fallen = abs(n.theta) > FALLEN
    after = State(
        n.x if ours else s.x,
        n.theta if ours else s.theta,
        n.v if ours else s.v,
        n.w if ours else s.w,
        n.x_acceleration if ours else s.x_acceleration,
        n.theta_acceleration if ours else s.theta_acceleration,
    )
    reward = 0.0 if fallen else 1.0
    return after, reward if ours else UNFINISHED, fallen and ours


def observe(c: Physics, s: State) -> tuple[float, float, float, float]:
    """Positions and velocities."""
    return s.x, s.theta, s.v, s.w


EQUATIONS = Equations(
    name="InvertedPendulum",
    observation_space=Box(-np.inf, np.inf, (4,), np.float64),
    action_space=Box(-3.0, 3.0, (1,)),
    params=namedtuple("Params", [*PLACES, OTHERS]),
    physics=Physics,
    state=State,
    start={name: Uniform(-0.01, 0.01) for name in ("x", "theta", "v", "w")},
    pushed=("v",),
    clip_actions=False,
    derive=derive,
    begin=begin,
    step=step,
    observe=observe,
)
