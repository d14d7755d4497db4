"""A family of environments as equations, in one file: a force holds a mass on a spring in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from gym_dr import Param, Uniform, equations_family
from gym_dr.envs.family import EnvFamily
from gym_dr.plugins.hookspecs import hookimpl


class Physics(NamedTuple):
    rate: float  # 1/s^2
    push: float  # m/s^2


class State(NamedTuple):
    position: float  # m
    velocity: float  # m/s


def derive(p: Any) -> Physics:
    return Physics(p.stiffness / p.mass, 3.0 / p.mass)


def begin(c: Physics, u: Any) -> State:
    return State(u.position, u.velocity)


def step(c: Physics, s: State, action: float) -> tuple[State, float, bool]:
    """0.05 s later; actions are 0 (-3 N), 1 (nothing) and 2 (3 N)."""
    velocity = s.velocity + 0.05 * ((action - 1.0) * c.push - c.rate * s.position)
    position = s.position + 0.05 * velocity
    return State(position, velocity), 1.0 - abs(position), abs(position) > 3.0


def observe(c: Physics, s: State) -> tuple[float, float]:
    return s.position, s.velocity


def render(c: Physics, s: State) -> npt.NDArray[np.uint8]:
    """A frame ``(20, 61, 3)`` with a white column where the mass is."""
    column = np.arange(61) == np.clip(30 + 10 * s.position, 0, 60).round()
    return np.tile(np.uint8(255) * column[:, None], (20, 1, 3))


SPRING = equations_family(
    "parts/Spring-v0",
    params=[
        Param(name="mass", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="at the end of the spring"),
        Param(name="stiffness", nominal=4.0, low=0.0, high=100.0, unit="N/m", doc="of the spring"),
    ],
    observation_space=Box(-np.inf, np.inf, (2,), np.float32),
    action_space=Discrete(3),
    start={"position": (-1.0, 1.0), "velocity": (-0.5, 0.5)},
    derive=derive,
    begin=begin,
    step=step,
    observe=observe,
    render=render,
    render_fps=20,
    pushed=("velocity",),
    presets={"default": {"mass": Uniform(0.5, 2.0), "stiffness": Uniform(2.0, 8.0)}},
    max_episode_steps=50,
)


@hookimpl
def gym_dr_register_environments(register: Callable[[EnvFamily], None]) -> None:
    """Registers ``parts/Spring-v0``."""
    register(SPRING)
