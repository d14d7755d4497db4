"""The arrays of the native lander."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.lunar_lander.native import layout
from gym_dr.envs.box2d.lunar_lander.native.shapes import SHAPES
from gym_dr.envs.box2d.solver.arrays import Scratch, World


def allocate(num_envs: int) -> Environments:
    """Zeros for ``num_envs`` sub-environments."""
    world = World.allocate(
        num_envs,
        SHAPES,
        row=layout.ROW,
        edges=layout.EDGES,
        boxes=0,
        contacts=layout.MAX_CONTACTS,
        status=layout.STATUS,
        edge_width=0.0,
    )
    return Environments.around(world, parameters=layout.PARAMETERS, observation=layout.OBSERVATION)


class Actions(NamedTuple):
    """Actions of the next step."""

    discrete: npt.NDArray[np.int64]  # (N,) actions, 0 to 3
    throttles: npt.NDArray[np.float64]  # (N, 2) continuous ones: main, side
    continuous: bool  # which of the two is used


class Landers(NamedTuple):
    """Everything that a step reads and writes on one thread."""

    arrays: Environments
    actions: Actions
    gusts: npt.NDArray[np.float64]  # (G,) strength of the wind from index WIND_INDEX_LOW on
    scratch: Scratch
    envs: npt.NDArray[np.int64]  # (N,) the sub-environments in the order in which they are stepped
