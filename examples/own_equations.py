"""Your own environment from equations: a quadrotor in a vertical plane hovers, or follows a point on a circle, in wind.

    python examples/own_equations.py runs/quadrotor                   # trains, and evaluates on draws
    PYTHONPATH=examples gymdr play runs/quadrotor --trust own_equations --set pace=0.8 --video flight.gif

or from the command line alone: PYTHONPATH=examples gymdr train ppo --env own_equations:mine/Quadrotor-v0
"""

import sys
from math import cos, exp, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box

import gym_dr
from gym_dr import Normal, Param

ID, DT = "mine/Quadrotor-v0", 0.02  # s
PEAK = 10.0  # N, full thrust of a rotor
SIZE, SCALE = 160, 40.0  # pixels of a picture, and of a meter


class Constants(NamedTuple):  # of an episode
    mass: float
    lever: float  # 1/(kg m), angular acceleration for a difference of thrusts
    drag: float
    wind: float
    gust: float
    gain: float  # how much of a command a rotor follows in one step
    turn: float  # rad, of the point on its circle in one step


class State(NamedTuple):  # of the quadrotor, and the point that it follows
    x: float  # m
    y: float
    tilt: float  # rad, positive is to the left
    vx: float  # m/s
    vy: float
    spin: float  # rad/s
    left: float  # N, thrust of each rotor
    right: float
    phase: float  # rad, where the point is on a circle of radius 1 m


def derive(p):
    inertia = p.mass * p.arm * p.arm  # half of the mass is at each rotor
    return Constants(p.mass, p.arm / inertia, p.drag, p.wind, p.gust, 1.0 - exp(-DT / p.lag), p.pace * DT)


def begin(c, u):  # at rest near the point, at hovering thrust
    hover = 0.5 * c.mass * 9.81
    return State(cos(u.phase) + u.x, sin(u.phase) + u.y, u.tilt, 0.0, 0.0, 0.0, hover, hover, u.phase)


def step(c, s, action, w):
    left = s.left + c.gain * (0.5 * PEAK * (1.0 + action[0]) - s.left)
    right = s.right + c.gain * (0.5 * PEAK * (1.0 + action[1]) - s.right)
    push, air = (left + right) / c.mass, c.drag / c.mass
    vx = s.vx + DT * (-push * sin(s.tilt) + air * (c.wind + c.gust * w.x - s.vx))
    vy = s.vy + DT * (push * cos(s.tilt) - 9.81 + air * (c.gust * w.y - s.vy))
    spin = s.spin + DT * c.lever * (right - left)
    phase = s.phase + c.turn
    after = State(s.x + DT * vx, s.y + DT * vy, s.tilt + DT * spin, vx, vy, spin, left, right, phase)
    to_x, to_y = cos(phase) - after.x, sin(phase) - after.y
    away = sqrt(to_x * to_x + to_y * to_y)
    return after, 1.0 / (1.0 + 5.0 * away + 0.02 * spin * spin), away > 3.0


def observe(c, s):
    to_x, to_y, pace = cos(s.phase) - s.x, sin(s.phase) - s.y, c.turn / DT
    return to_x, to_y, s.vx, s.vy, cos(s.tilt), sin(s.tilt), s.spin, -pace * sin(s.phase), pace * cos(s.phase)


def render(c, s):
    rows, columns = np.mgrid[:SIZE, :SIZE]
    x, y = (columns - SIZE / 2) / SCALE, (SIZE / 2 - rows) / SCALE
    along = (x - s.x) * cos(s.tilt) + (y - s.y) * sin(s.tilt)
    above = (y - s.y) * cos(s.tilt) - (x - s.x) * sin(s.tilt)
    picture = np.full((SIZE, SIZE, 3), 255, np.uint8)
    picture[(np.hypot(x - cos(s.phase), y - sin(s.phase)) < 0.08)] = (214, 39, 40)
    picture[(abs(along) < 0.3) & (abs(above) < 0.04)] = (31, 119, 180)
    for side, thrust in ((-0.25, s.left), (0.25, s.right)):  # a flame as long as the thrust
        picture[(abs(along - side) < 0.03) & (above < -0.04) & (above > -0.04 - 0.06 * thrust)] = (255, 127, 14)
    return picture


gym_dr.register_equations(
    ID,
    params=[
        Param(name="mass", nominal=1.0, low=0.2, high=1.8, unit="kg", doc="of the quadrotor"),
        Param(name="arm", nominal=0.25, low=0.1, high=0.5, unit="m", doc="from the middle to each rotor"),
        Param(name="drag", nominal=0.3, low=0.0, high=2.0, unit="kg/s", doc="force of air at 1 m/s"),
        Param(name="wind", nominal=0.0, low=-12.0, high=12.0, unit="m/s", doc="positive blows to the right"),
        Param(name="gust", nominal=1.0, low=0.0, high=10.0, unit="m/s", doc="deviation of the wind in each step"),
        Param(name="lag", nominal=0.05, low=0.01, high=0.5, unit="s", doc="time constant of the rotors"),
        Param(name="pace", nominal=0.0, low=-2.0, high=2.0, unit="rad/s", doc="of the point on its circle"),
    ],
    observation_space=Box(-np.inf, np.inf, (9,)),
    action_space=Box(-1.0, 1.0, (2,)),  # thrust of each rotor, from none to full
    start={"x": (-1.0, 1.0), "y": (-1.0, 1.0), "tilt": (-0.5, 0.5), "phase": (-pi, pi)},
    process_noise={"x": Normal(0, 1), "y": Normal(0, 1)},
    derive=derive,
    begin=begin,
    step=step,
    observe=observe,
    render=render,
    pushed=["vx", "vy", "spin"],
    presets={
        "default": {"mass": (0.8, 1.2), "lag": (0.03, 0.1), "wind": (-4, 4), "pace": (-1, 1)},
        "wide": {"mass": (0.5, 1.5), "arm": (0.15, 0.4), "lag": (0.02, 0.2), "wind": (-8, 8), "pace": (-1, 1)},
    },
    max_episode_steps=500,
    defaults={"ppo": {"num_envs": 32, "minibatches": 32, "epochs": 4, "lr": 0.001, "clip_range": 0.1, "updates": 400}},
)

if __name__ == "__main__":
    run = gym_dr.train("ppo", env=f"own_equations:{ID}", run_dir=sys.argv[1], updates=int((sys.argv[2:] or [400])[0]))
    print(gym_dr.evaluate(run, episodes=100).episodes.groupby("set")["return"].mean())
