"""A family of environments in one file: a force holds a mass near the middle of a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr import Param, ParamSpace, Randomization, Uniform
from gym_dr.envs.backend import Backend, Outcome
from gym_dr.envs.family import EnvFamily, EnvId
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.envs.vector_arguments import check_actions
from gym_dr.errors import EnvStateError
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.randomization.episode import RandomizedEnv

MASS = Param(name="mass", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="of the point")
FRICTION = Param(name="friction", nominal=0.2, low=0.0, high=5.0, unit="kg/s", doc="force at 1 m/s")
SPACE = ParamSpace("PointMass", [MASS, FRICTION])
DEFAULT = Randomization({"mass": Uniform(0.5, 2.0), "friction": Uniform(0.0, 1.0)})
OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)  # position (m) and velocity (m/s)
ACTIONS = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)  # the force, up to 5 N


def advance(state: Any, actions: Any, params: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """States ``(..., 2)`` 0.05 s later, rewards and terminations ``(...)``."""
    force = 5.0 * np.clip(actions[..., 0], -1.0, 1.0, dtype=np.float64)
    velocity = state[..., 1] + 0.05 * (force - params["friction"] * state[..., 1]) / params["mass"]
    position = state[..., 0] + 0.05 * velocity
    return np.stack([position, velocity], -1), 1.0 - abs(position), abs(position) > 3.0


def picture(state: Any) -> Any:
    """A frame ``(20, 61, 3)`` with a white column where the mass is."""
    column = np.arange(61) == np.clip(30 + 10 * state[0], 0, 60).round()
    return np.tile(np.uint8(255) * column[:, None], (20, 1, 3))


class PointMass(RandomizedEnv, gym.Env[Any, Any]):
    """One mass."""

    metadata, action_space, push_size = {"render_modes": ["rgb_array"], "render_fps": 20}, ACTIONS, 1
    state: Any = None

    def __init__(self, render_mode: str | None = None, **keywords: Any) -> None:
        self._randomize(SPACE, **keywords)  # randomization, context, context_params
        self.render_mode, self.observation_space = render_mode, self.context.extend_space(OBSERVATIONS)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._begin_episode(seed, options)
        self.state = self.np_random.uniform(-1.0, 1.0, 2)
        return self._visible(self.state.astype(np.float32), {})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.state, reward, terminated = advance(self.state, check_actions(action, ACTIONS), self.params)
        observation, info = self._visible(self.state.astype(np.float32), {})
        return observation, float(reward), bool(terminated), False, info

    def push(self, velocity: Any) -> None:
        if self.state is None:
            raise EnvStateError("Expected reset() before push().")
        self.state[1] += velocity[0]

    def render(self) -> Any:
        return picture(self.state) if self.render_mode else None


class PointMasses(Backend):
    """Many masses, the physics of the native vector environment."""

    space, observation_space, action_space, push_size = SPACE, OBSERVATIONS, ACTIONS, 1
    metadata = PointMass.metadata

    def allocate(self, num_envs: int, num_threads: int | None) -> None:
        self.state = np.zeros((num_envs, 2))
        self.rngs: list[Any] = [None] * num_envs

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        for i, seed in zip(envs, seeds, strict=True):
            self.rngs[i], _ = gym.utils.seeding.np_random(seed)

    def generators(self) -> Any:
        return tuple(self.rngs)

    def reset(self, envs: Any, options: Any = None) -> None:
        self.state[envs] = [self.rngs[i].uniform(-1.0, 1.0, 2) for i in envs]
        self.observations = self.state.astype(np.float32)

    def step(self, actions: Any, skip: Any = None) -> Outcome:
        state, rewards, terminations = advance(self.state, actions, self.table.params())
        if skip is not None:
            state[skip], rewards[skip], terminations[skip] = self.state[skip], 0.0, False
        self.state, self.observations = state, state.astype(np.float32)
        return Outcome(rewards, terminations, {})

    def push(self, velocities: Any, envs: Any) -> None:
        self.state[envs, 1] += velocities[:, 0]

    def render(self, env: int) -> Any:
        return picture(self.state[env])


class PointMassVectorEnv(NativeVectorEnv, VectorEnv[Any, Any, Any]):
    """Many masses."""

    backend_class = PointMasses


@hookimpl
def gym_dr_register_environments(register: Callable[[EnvFamily], None]) -> None:
    """Registers ``parts/PointMass-v0``."""
    entry_points = {"entry_point": f"{__name__}:PointMass", "vector_entry_point": f"{__name__}:PointMassVectorEnv"}
    mass = EnvId(id="parts/PointMass-v0", max_episode_steps=50, **entry_points)
    register(EnvFamily(name=SPACE.name, ids=(mass,), presets={"default": DEFAULT}))
