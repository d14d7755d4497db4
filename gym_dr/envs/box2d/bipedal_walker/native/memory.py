"""The arrays of the native walker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.compiled.pcg64 import STREAM
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.native import layout
from gym_dr.envs.box2d.bipedal_walker.native.shapes import SHAPES
from gym_dr.envs.box2d.solver.layout import MAX_CONTACTS
from gym_dr.envs.box2d.solver.memory import Scratch, World


class Environments(NamedTuple):
    """State of every sub-environment between steps; first axis: sub-environment."""

    world: World
    params: npt.NDArray[np.float64]  # (N, parameters) of the current episodes
    shaping: npt.NDArray[np.float64]  # (N,) potential after the last step
    streams: npt.NDArray[np.uint64]  # (N, STREAM) random streams
    observations: npt.NDArray[np.float32]  # (N, 24)
    rewards: npt.NDArray[np.float64]  # (N,)
    terminations: npt.NDArray[np.bool_]  # (N,)

    @staticmethod
    def allocate(num_envs: int, parameters: int, hardcore: bool) -> Environments:
        """Zeroed memory for ``num_envs`` sub-environments."""
        return Environments(
            world=World.allocate(
                num_envs,
                SHAPES,
                row=layout.ROW,
                edges=walker.TERRAIN_LENGTH - 1,
                boxes=ground.MAX_BOXES if hardcore else 0,
                contacts=MAX_CONTACTS,
                status=layout.STATUS,
                edge_width=walker.TERRAIN_STEP,
            ),
            params=np.zeros((num_envs, parameters), np.float64),
            shaping=np.zeros(num_envs, np.float64),
            streams=np.zeros((num_envs, STREAM), np.uint64),
            observations=np.zeros((num_envs, layout.OBSERVATION), np.float32),
            rewards=np.zeros(num_envs, np.float64),
            terminations=np.zeros(num_envs, np.bool_),
        )


class Walkers(NamedTuple):
    """Everything that a step reads and writes on one thread."""

    memory: Environments
    actions: npt.NDArray[np.float32]  # (N, 4) of the next step
    heights: npt.NDArray[np.float64]  # (TERRAIN_LENGTH,) scratch of ``ground.generate``
    boxes: npt.NDArray[np.float64]  # (MAX_BOXES, 4) as well
    scratch: Scratch
