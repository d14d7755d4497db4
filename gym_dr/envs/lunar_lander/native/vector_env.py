"""The native LunarLander: the compiled physics behind the vector environment of all families."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.compiled.pcg64 import generator, seeded
from gym_dr.envs.backend import Backend, Outcome, Rollout
from gym_dr.envs.lunar_lander import constants as lander
from gym_dr.envs.lunar_lander.native.layout import BODIES, BODY, VELOCITY_X, VELOCITY_Y
from gym_dr.envs.lunar_lander.native.physics import Physics, bytes_needed
from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.native import NativeVectorEnv
from gym_dr.envs.vector_arguments import check_choices, check_numbers
from gym_dr.errors import ConfigError
from gym_dr.randomization.table import ParamTable

# Gymnasium's bounds: position, velocity, angle, angular velocity, legs.
_OBSERVATION_HIGH = np.array([2.5, 2.5, 10.0, 10.0, 2 * math.pi, 10.0, 1.0, 1.0], np.float32)
_OBSERVATION_LOW = np.array([-2.5, -2.5, -10.0, -10.0, -2 * math.pi, -10.0, 0.0, 0.0], np.float32)


class LunarLanderBackend(Backend):
    """Many landers in compiled code."""

    space = LUNAR_LANDER
    push_size = 2
    metadata = {"render_modes": ["rgb_array"], "render_fps": lander.FPS}

    def __init__(self, *, continuous: bool = False) -> None:
        """Makes the spaces."""
        self.continuous = bool(continuous)
        self.observation_space = gym.spaces.Box(_OBSERVATION_LOW, _OBSERVATION_HIGH)
        self.action_space = gym.spaces.Box(-1, +1, (2,), np.float32) if continuous else gym.spaces.Discrete(4)
        self.physics: Physics | Any = None
        self._canvas: Any = None  # the Box2D environment that draws

    def allocate(self, num_envs: int, num_threads: int | None) -> Array:
        _check_memory(num_envs)
        self.physics = Physics(num_envs, continuous=self.continuous, num_threads=num_threads)
        self.num_threads = self.physics.threads
        self.observations = self.physics.memory.observations
        self._all: Indices = np.arange(num_envs)
        memory: Array = self.physics.memory.params.T
        return memory

    @property
    def rollout(self) -> Rollout | None:
        """See ``Backend.rollout``; threads share the work of one step, not of many."""
        return self.physics.rollout if self.num_threads == 1 else None

    def check_actions(self, actions: Any) -> npt.NDArray[Any]:
        num_envs = len(self._all)
        return check_numbers(actions, (num_envs, 2)) if self.continuous else check_choices(actions, (num_envs,), 0, 4)

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        for i, seed in zip(envs, seeds, strict=True):
            self.physics.memory.streams[i] = seeded(seed)

    def generators(self) -> tuple[np.random.Generator, ...]:
        """See ``Backend.generators``; drawing from them changes nothing."""
        return tuple(map(generator, self.physics.memory.streams))

    def reset(self, envs: Indices, table: ParamTable, options: Any = None) -> None:
        """See ``Backend.reset``; as in Gymnasium, an episode begins with a step without thrust."""
        self.physics.begin(envs)
        self.physics.step(envs)

    def begin(self, envs: Indices) -> None:
        self.physics.begin(envs)

    def step(self, actions: npt.NDArray[Any], begun: Indices | None, table: ParamTable) -> Outcome:
        physics = self.physics
        if self.continuous:
            physics.throttles[:] = actions
        else:
            physics.choices[:] = actions
        if begun is not None:
            physics.begin(begun)
        physics.step(self._all)
        return Outcome(physics.memory.rewards.copy(), physics.memory.terminations.copy(), {})

    def push(self, velocities: Array, envs: Indices) -> None:
        """Moves hulls and legs at once."""
        rows = self.physics.memory.rows
        for body in range(BODIES):
            for axis, place in enumerate((VELOCITY_X, VELOCITY_Y)):
                # rounded once, as where Box2D takes a number from Python
                rows[envs, body * BODY + place] = rows[envs, body * BODY + place] + velocities[:, axis]

    def render(self, env: int) -> Any:
        """An array ``(400, 600, 3)`` uint8 by Gymnasium's own drawing, without the engines' sparks."""
        from gym_dr.envs.lunar_lander.native.drawing import Canvas

        if self._canvas is None:
            self._canvas = Canvas()
        return self._canvas.draw(self.physics.memory, env)

    def close(self) -> None:
        if self.physics is not None:
            self.physics.close()
        if self._canvas is not None:
            self._canvas.close()


class LunarLanderVectorEnv(NativeVectorEnv):
    """Many LunarLander-v3 with randomized physics; its own keyword is ``continuous``, as in Gymnasium."""

    def _make_backend(self, render_mode: str | None, **kwargs: Any) -> LunarLanderBackend:
        return LunarLanderBackend(**kwargs)


def _check_memory(num_envs: int) -> None:
    """Raises ConfigError if ``num_envs`` environments do not fit into the machine's free memory."""
    needed = bytes_needed(num_envs)
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        free = max(free, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)  # caches can be given up
    except (AttributeError, ValueError, OSError):  # no such question on this system
        free = 2**36
    if needed > free:
        raise ConfigError(
            f"Expected num_envs that fit into memory: {num_envs} need {needed / 2**30:.1f} GiB, "
            f"there are {free / 2**30:.1f} GiB."
        )
