"""The arrays of native Box2D environments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.compiled.pcg64 import STREAM
from gym_dr.envs.box2d.solver.arrays import World


class Environments(NamedTuple):
    """State of every sub-environment between steps; first axis: sub-environment."""

    world: World
    params: npt.NDArray[np.float64]  # (N, parameters) of the current episodes
    shaping: npt.NDArray[np.float64]  # (N,) potential after the last step
    streams: npt.NDArray[np.uint64]  # (N, STREAM) random streams
    observations: npt.NDArray[np.float32]  # (N, observation)
    rewards: npt.NDArray[np.float64]  # (N,)
    terminations: npt.NDArray[np.bool_]  # (N,)

    @staticmethod
    def around(world: World, *, parameters: int, observation: int) -> Environments:
        """Worlds with zeros for the rest."""
        num_envs = len(world.rows)
        return Environments(
            world=world,
            params=np.zeros((num_envs, parameters), np.float64),
            shaping=np.zeros(num_envs, np.float64),
            streams=np.zeros((num_envs, STREAM), np.uint64),
            observations=np.zeros((num_envs, observation), np.float32),
            rewards=np.zeros(num_envs, np.float64),
            terminations=np.zeros(num_envs, np.bool_),
        )
