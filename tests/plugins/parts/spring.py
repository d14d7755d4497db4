"""A family of environments as equations, in one file: a force holds a mass on a spring in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from gym_dr import Param, ParamSpace, Randomization, Uniform
from gym_dr.envs.equations.backend import EquationsBackend
from gym_dr.envs.equations.equations import Equations
from gym_dr.envs.family import EnvFamily, EnvId
from gym_dr.envs.native import NativeVectorEnv
from gym_dr.envs.single import CompiledEnv
from gym_dr.plugins.hookspecs import hookimpl

MASS = Param(name="mass", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="at the end of the spring")
STIFFNESS = Param(name="stiffness", nominal=4.0, low=0.0, high=100.0, unit="N/m", doc="of the spring")
SPACE = ParamSpace("Spring", [MASS, STIFFNESS])
DEFAULT = Randomization({"mass": Uniform(0.5, 2.0), "stiffness": Uniform(2.0, 8.0)})


class Params(NamedTuple):
    mass: float
    stiffness: float


class Physics(NamedTuple):
    rate: float  # 1/s^2
    push: float  # m/s^2


class State(NamedTuple):
    position: float  # m
    velocity: float  # m/s


def derive(p: Params) -> Physics:
    return Physics(p.stiffness / p.mass, 3.0 / p.mass)


def step(c: Physics, s: State, action: float) -> tuple[State, float, bool]:
    """0.05 s later; actions are 0 (-3 N), 1 (nothing) and 2 (3 N)."""
    velocity = s.velocity + 0.05 * ((action - 1.0) * c.push - c.rate * s.position)
    position = s.position + 0.05 * velocity
    return State(position, velocity), 1.0 - abs(position), abs(position) > 3.0


def observe(s: State) -> tuple[float, float]:
    return s.position, s.velocity


EQUATIONS = Equations(
    name=SPACE.name,
    observation_space=Box(-np.inf, np.inf, (2,), np.float32),
    action_space=Discrete(3),
    params=Params,
    physics=Physics,
    state=State,
    start=((-1.0, 1.0), (-0.5, 0.5)),
    pushed=("velocity",),
    derive=derive,
    begin=State,
    step=step,
    observe=observe,
)


class SpringBackend(EquationsBackend):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self) -> None:
        super().__init__(EQUATIONS, SPACE)

    def render(self, env: int) -> Any:
        """A frame ``(20, 61, 3)`` with a white column where the mass is."""
        column = np.arange(61) == np.clip(30 + 10 * self.simulation.state(env)[0], 0, 60).round()
        return np.tile(np.uint8(255) * column[:, None], (20, 1, 3))


class Spring(CompiledEnv):
    backend_class = SpringBackend


class SpringVectorEnv(NativeVectorEnv):
    backend_class = SpringBackend


@hookimpl
def gym_dr_register_environments(register: Callable[[EnvFamily], None]) -> None:
    """Registers ``parts/Spring-v0``."""
    entry_points = {"entry_point": f"{__name__}:Spring", "vector_entry_point": f"{__name__}:SpringVectorEnv"}
    spring = EnvId(id="parts/Spring-v0", max_episode_steps=50, discrete=True, **entry_points)
    register(EnvFamily(name=SPACE.name, ids=(spring,), space=SPACE, presets={"default": DEFAULT}))
