"""The arrays of the native lander."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.compiled.pcg64 import STREAM
from gym_dr.envs.box2d.lunar_lander.native import layout
from gym_dr.envs.box2d.lunar_lander.native.shapes import SHAPES
from gym_dr.envs.box2d.solver.arrays import Scratch, World


class Environments(NamedTuple):
    """State of every sub-environment between steps; first axis: sub-environment."""

    world: World
    params: npt.NDArray[np.float64]  # (N, PARAMETERS) of the current episodes
    shaping: npt.NDArray[np.float64]  # (N,) potential after the last step
    streams: npt.NDArray[np.uint64]  # (N, STREAM) random streams
    observations: npt.NDArray[np.float32]  # (N, 8)
    rewards: npt.NDArray[np.float64]  # (N,)
    terminations: npt.NDArray[np.bool_]  # (N,)

    @staticmethod
    def allocate(num_envs: int) -> Environments:
        """Zeros for ``num_envs`` sub-environments."""
        return Environments(
            world=World.allocate(
                num_envs,
                SHAPES,
                row=layout.ROW,
                edges=layout.EDGES,
                boxes=0,
                contacts=layout.MAX_CONTACTS,
                status=layout.STATUS,
                edge_width=0.0,
            ),
            params=np.zeros((num_envs, layout.PARAMETERS), np.float64),
            shaping=np.zeros(num_envs, np.float64),
            streams=np.zeros((num_envs, STREAM), np.uint64),
            observations=np.zeros((num_envs, layout.OBSERVATION), np.float32),
            rewards=np.zeros(num_envs, np.float64),
            terminations=np.zeros(num_envs, np.bool_),
        )


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
