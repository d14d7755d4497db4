"""The arrays of the native lander."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.solver.arrays import Scratch


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
