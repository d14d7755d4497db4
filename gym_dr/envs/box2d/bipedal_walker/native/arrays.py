"""The arrays of the native walker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.solver.arrays import Scratch


class Walkers(NamedTuple):
    """Everything that a step reads and writes on one thread."""

    arrays: Environments
    actions: npt.NDArray[np.float32]  # (N, 4) of the next step
    heights: npt.NDArray[np.float64]  # (TERRAIN_LENGTH,) scratch of ``ground.generate``
    boxes: npt.NDArray[np.float64]  # (MAX_BOXES, 4) as well
    scratch: Scratch
    envs: npt.NDArray[np.int64]  # (N,) the sub-environments in the order in which they are stepped
