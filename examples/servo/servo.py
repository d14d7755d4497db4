"""A servo that holds a pendulum, as equations: a position controller, a motor, friction and gravity.

The motor is the simplest model of https://github.com/Rhoban/bam. Parameters start from the data sheet of a Dynamixel
XL330-M288: a stall torque of 0.52 N m at 5 V, and 103 turns a minute without load.
"""

from math import cos, pi, sin, tanh
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box

import gym_dr
from gym_dr import Param

ID = "servo/Pendulum-v0"
PER_RADIAN = 4096 / (2 * pi) / (256 * 885)  # duty per unit of kp and radian, as the log's column load shows
CREEP = 0.05  # rad/s, at which friction has most of its size
SUBSTEPS = 5


class State(NamedTuple):
    q: float  # rad, 0 hangs down
    w: float  # rad/s


def begin(c, u):
    return State(u.q, 0.0)


def step(c, s, goal):
    q, w, h = s.q, s.w, c.dt / SUBSTEPS
    for _ in range(SUBSTEPS):
        duty = min(max(c.kp * PER_RADIAN * (goal - q), -1.0), 1.0)
        motor = c.enabled * (c.strength * c.volts * duty - c.braking * w)
        brake = c.viscous * w + c.friction * tanh(w / CREEP)
        w += h * (motor - brake - c.mass * 9.81 * c.arm * sin(q - c.offset)) / (c.armature + c.mass * c.arm * c.arm)
        q += h * w
    return State(q, w), 0.5 * (1.0 - cos(q)) - 0.001 * w * w, abs(q) > 5.0  # high and slow; the cable is short


def observe(c, s):
    return s.q, s.w


gym_dr.register_equations(
    ID,
    params=[
        Param(name="strength", nominal=0.104, low=0.0, high=1.0, unit="N m/V", doc="torque at rest for a volt"),
        Param(name="braking", nominal=0.048, low=0.0, high=1.0, unit="N m s/rad", doc="of the motor under voltage"),
        Param(name="viscous", nominal=0.0, low=0.0, high=1.0, unit="N m s/rad", doc="of the gears"),
        Param(name="friction", nominal=0.0, low=0.0, high=1.0, unit="N m", doc="of the gears, at any speed"),
        Param(name="armature", nominal=0.0, low=0.0, high=0.1, unit="kg m^2", doc="the rotor's inertia at the horn"),
        Param(name="offset", nominal=0.0, low=-1.0, high=1.0, unit="rad", doc="reading where the pendulum hangs"),
        Param(name="mass", nominal=0.49, low=0.01, high=5.0, unit="kg", doc="at the end of the arm"),
        Param(name="arm", nominal=0.1, low=0.01, high=1.0, unit="m", doc="from the horn to the mass"),
        Param(name="kp", nominal=400.0, low=0.0, high=2000.0, unit="", doc="gain of the controller"),
        Param(name="volts", nominal=6.0, low=0.0, high=20.0, unit="V", doc="of the supply"),
        Param(name="enabled", nominal=1.0, low=0.0, high=1.0, unit="", doc="1 under voltage, 0 switched off"),
        Param(name="dt", nominal=0.02, low=0.0, high=0.1, unit="s", doc="duration of a step"),
    ],
    observation_space=Box(-np.inf, np.inf, (2,)),
    action_space=Box(-7.0, 7.0, (1,)),  # rad, the goal of the controller
    start={"q": (-0.1, 0.1)},
    begin=begin,
    step=step,
    observe=observe,
    time_step="dt",
    max_episode_steps=250,
    defaults={"ppo": {"num_envs": 32, "minibatches": 32, "epochs": 4, "lr": 0.001, "updates": 150}},
)
