"""The arrays of the native walker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.native import layout
from gym_dr.envs.box2d.bipedal_walker.native.shapes import SHAPES
from gym_dr.envs.box2d.solver.arrays import Scratch, World
from gym_dr.envs.box2d.solver.layout import MAX_CONTACTS


def allocate(num_envs: int, parameters: int, hardcore: bool) -> Environments:
    """Zeros for ``num_envs`` sub-environments."""
    world = World.allocate(
        num_envs,
        SHAPES,
        row=layout.ROW,
        edges=walker.TERRAIN_LENGTH - 1,
        boxes=ground.MAX_BOXES if hardcore else 0,
        contacts=MAX_CONTACTS,
        status=layout.STATUS,
        edge_width=walker.TERRAIN_STEP,
    )
    return Environments.around(world, parameters=parameters, observation=layout.OBSERVATION)


class Walkers(NamedTuple):
    """Everything that a step reads and writes on one thread."""

    arrays: Environments
    actions: npt.NDArray[np.float32]  # (N, 4) of the next step
    heights: npt.NDArray[np.float64]  # (TERRAIN_LENGTH,) scratch of ``ground.generate``
    boxes: npt.NDArray[np.float64]  # (MAX_BOXES, 4) as well
    scratch: Scratch
    envs: npt.NDArray[np.int64]  # (N,) the sub-environments in the order in which they are stepped
