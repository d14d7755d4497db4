"""The native LunarLander: the backend of its compiled physics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.compiled.play import StepBuffers
from gym_dr.envs.backend import check_within
from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.backend import Box2DBackend
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.constants import WIND_INDEX_HIGH, WIND_INDEX_LOW
from gym_dr.envs.box2d.lunar_lander.native.arrays import Actions, Landers, allocate
from gym_dr.envs.box2d.lunar_lander.native.layout import BLOCK, BODIES, S_TURBULENCE, S_WIND
from gym_dr.envs.box2d.lunar_lander.native.step import step
from gym_dr.envs.box2d.lunar_lander.native.topology import TOPOLOGY
from gym_dr.envs.box2d.lunar_lander.params import KEYWORDS, LUNAR_LANDER
from gym_dr.envs.box2d.lunar_lander.physics import wind_strength
from gym_dr.envs.box2d.lunar_lander.replay import LanderLogReplay
from gym_dr.envs.box2d.solver.arrays import Scratch
from gym_dr.envs.replay import LogReplay
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.envs.vector_arguments import check_keywords

# Gymnasium's bounds: position, velocity, angle, angular velocity, legs.
_OBSERVATION_HIGH = np.array([2.5, 2.5, 10.0, 10.0, 2 * math.pi, 10.0, 1.0, 1.0], np.float32)
_OBSERVATION_LOW = np.array([-2.5, -2.5, -10.0, -10.0, -2 * math.pi, -10.0, 0.0, 0.0], np.float32)
_GUST_STEPS = 2000  # steps of an episode for which wind is looked up instead of computed


@cache
def _gusts() -> Array:
    """Strength of the wind at every index from ``WIND_INDEX_LOW`` on."""
    return np.array([wind_strength(i) for i in range(WIND_INDEX_LOW, WIND_INDEX_HIGH + _GUST_STEPS)])


class LunarLanderBackend(Box2DBackend):
    """Many landers in compiled code."""

    name, bodies, kernel, topology = "LunarLander", BODIES, step, TOPOLOGY
    metadata = {"render_modes": ["rgb_array"], "render_fps": lander.FPS}

    def __init__(self, *, continuous: bool = False, **constants: float) -> None:
        """Makes the spaces.

        Args:
            continuous: As in Gymnasium.
            **constants: Gymnasium's other keywords: nominal values, which presets do not vary.

        Raises:
            TypeError: There is no such keyword.
            RandomizationError: A value is impossible.
        """
        check_keywords(LUNAR_LANDER, constants, KEYWORDS)
        self.space = LUNAR_LANDER.with_constants(constants)
        self.continuous = bool(continuous)
        self.observation_space = gym.spaces.Box(_OBSERVATION_LOW, _OBSERVATION_HIGH)
        self.action_space = gym.spaces.Box(-1, +1, (2,), np.float32) if continuous else gym.spaces.Discrete(4)

    def _allocate(self, num_envs: int) -> tuple[Environments, Array]:
        return allocate(num_envs), np.zeros((num_envs, 2))

    def _group(self, buffers: StepBuffers) -> Landers:
        actions = Actions(buffers.discrete, buffers.continuous, self.continuous)
        return Landers(self.arrays, actions, _gusts(), Scratch.allocate(BLOCK), self.envs)

    def check_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        super().check_state(state)
        check_within("physics/world, wind", state["world.status"][:, [S_WIND, S_TURBULENCE]], WIND_INDEX_LOW, 2**31)

    def replay(self) -> LogReplay:
        """See ``Backend.replay``; flights up to the first touch."""
        return LanderLogReplay(self, _gusts())

    def render(self, env: int) -> Any:
        """An array ``(400, 600, 3)`` uint8 of Gymnasium's scene, without the engines' sparks."""
        from gym_dr.envs.box2d.lunar_lander.native.rendering import render  # heavy: pygame

        return render(self.arrays, env)


class LunarLanderVectorEnv(NativeVectorEnv, gym.vector.VectorEnv[Any, Any, Any]):
    """Many LunarLander-v3 with randomized physics; also takes Gymnasium's keywords."""

    backend_class = LunarLanderBackend


class LunarLanderDR(CompiledEnv, gym.Env[Any, Any]):
    """One LunarLander-v3 with randomized physics, where Box2D is not installed."""

    backend_class = LunarLanderBackend
