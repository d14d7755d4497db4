"""The native BipedalWalker: the backend of its compiled physics."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Floats
from gym_dr.compiled.play import StepBuffers
from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.backend import Box2DBackend
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.native.arrays import Walkers, allocate
from gym_dr.envs.box2d.bipedal_walker.native.layout import ACTIONS, BLOCK, BODIES
from gym_dr.envs.box2d.bipedal_walker.native.step import step
from gym_dr.envs.box2d.bipedal_walker.native.topology import TOPOLOGY
from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE
from gym_dr.envs.box2d.solver.arrays import Scratch
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.vector import NativeVectorEnv

# Gymnasium's bounds: the hull, then each leg, then the lidar
_LEG = [math.pi, 5.0, math.pi, 5.0, 5.0]
_HIGH = np.array([math.pi, 5.0, 5.0, 5.0, *_LEG, *_LEG, *[1.0] * walker.LIDAR_RAYS], np.float32)
_LOW = -_HIGH
_LOW[[8, 13]] = -0.0


class BipedalWalkerBackend(Box2DBackend):
    """Many walkers in compiled code."""

    name, bodies, kernel, topology = "BipedalWalker", BODIES, step, TOPOLOGY
    random_steps = False
    metadata = {"render_modes": ["rgb_array"], "render_fps": walker.FPS}

    def __init__(self, *, hardcore: bool = False) -> None:
        """Makes the spaces."""
        self.hardcore = bool(hardcore)
        self.space = BIPEDAL_WALKER_HARDCORE if hardcore else BIPEDAL_WALKER
        self.observation_space = gym.spaces.Box(_LOW, _HIGH)
        self.action_space = gym.spaces.Box(-1, +1, (ACTIONS,), np.float32)

    def _allocate(self, num_envs: int) -> tuple[Environments, Floats]:
        arrays = allocate(num_envs, len(self.space), self.hardcore)
        return arrays, np.zeros((num_envs, ACTIONS), np.float32)

    def _group(self, buffers: StepBuffers) -> Walkers:
        boxes = np.zeros((ground.MAX_BOXES, 4))
        heights, scratch = np.zeros(ground.LENGTH), Scratch.allocate(BLOCK)
        return Walkers(self.arrays, buffers.continuous, heights, boxes, scratch, self.envs)

    def set_actions(self, actions: npt.NDArray[Any]) -> None:
        with np.errstate(over="ignore"):  # beyond float32 is beyond the bounds too
            super().set_actions(actions)

    def render(self, env: int) -> Any:
        """An array ``(400, 600, 3)`` uint8 of Gymnasium's scene."""
        from gym_dr.envs.box2d.bipedal_walker.native.rendering import render  # heavy: pygame

        return render(self.arrays, env)


class BipedalWalkerVectorEnv(NativeVectorEnv, gym.vector.VectorEnv[Any, Any, Any]):
    """Many BipedalWalker-v3 with randomized physics; also takes Gymnasium's keyword ``hardcore``."""

    backend_class = BipedalWalkerBackend


class BipedalWalkerDR(CompiledEnv, gym.Env[Any, Any]):
    """One BipedalWalker-v3 with randomized physics, where Box2D is not installed."""

    backend_class = BipedalWalkerBackend
