"""The arrays that the native lander lives in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.compiled.pcg64 import STREAM
from gym_dr.envs.box2d.lunar_lander.native import layout
from gym_dr.envs.box2d.lunar_lander.native.layout import CONTACT_FLOATS, CONTACT_INTS, EDGES, MAX_CONTACTS, ROW, STATUS

_CACHE_LINE = 64  # bytes


def _aligned(floats: int) -> npt.NDArray[np.float32]:
    """Zeros that start at a cache line, so that no SIMD load straddles two."""
    memory = np.zeros(floats + _CACHE_LINE // 4, np.float32)
    offset = (-memory.ctypes.data // 4) % (_CACHE_LINE // 4)
    return memory[offset : offset + floats]


class Environments(NamedTuple):
    """What is kept of every sub-environment between steps; first axis: sub-environment."""

    rows: npt.NDArray[np.float32]  # (N, ROW) poses, velocities, joint impulses, boxes; see layout.py
    terrain: npt.NDArray[np.float32]  # (N, EDGES, 4) m, x1 y1 x2 y2
    contact_ints: npt.NDArray[np.int16]  # (N, MAX_CONTACTS, CONTACT_INTS)
    contact_floats: npt.NDArray[np.float32]  # (N, MAX_CONTACTS, CONTACT_FLOATS)
    status: npt.NDArray[np.int64]  # (N, STATUS) flags and counters
    params: npt.NDArray[np.float64]  # (N, PARAMETERS) of the episodes under way
    shaping: npt.NDArray[np.float64]  # (N,) potential after the last step
    streams: npt.NDArray[np.uint64]  # (N, STREAM) random streams
    observations: npt.NDArray[np.float32]  # (N, 8)
    rewards: npt.NDArray[np.float64]  # (N,)
    terminations: npt.NDArray[np.bool_]  # (N,)

    @staticmethod
    def allocate(num_envs: int) -> Environments:
        """Zeroed memory for ``num_envs`` sub-environments."""
        return Environments(
            rows=np.zeros((num_envs, ROW), np.float32),
            terrain=np.zeros((num_envs, EDGES, 4), np.float32),
            contact_ints=np.zeros((num_envs, MAX_CONTACTS, CONTACT_INTS), np.int16),
            contact_floats=np.zeros((num_envs, MAX_CONTACTS, CONTACT_FLOATS), np.float32),
            status=np.zeros((num_envs, STATUS), np.int64),
            params=np.zeros((num_envs, layout.PARAMETERS), np.float64),
            shaping=np.zeros(num_envs, np.float64),
            streams=np.zeros((num_envs, STREAM), np.uint64),
            observations=np.zeros((num_envs, layout.OBSERVATION), np.float32),
            rewards=np.zeros(num_envs, np.float64),
            terminations=np.zeros(num_envs, np.bool_),
        )


class Actions(NamedTuple):
    """What the next step does."""

    choices: npt.NDArray[np.int64]  # (N,) discrete actions, 0 to 3
    throttles: npt.NDArray[np.float64]  # (N, 2) continuous ones: main, side
    continuous: bool  # which of the two counts


class Scratch(NamedTuple):
    """Working memory of one thread, flat; see layout.py."""

    floats: npt.NDArray[np.float32]  # (FLOAT_SCRATCH,)
    ints: npt.NDArray[np.int64]  # (INT_SCRATCH,)
    blocks: npt.NDArray[np.float32]  # (2 * BLOCK_FLOATS,) two blocks
    slots: npt.NDArray[np.float32]  # (2 * SLOT_FLOATS,) of these blocks
    substep: npt.NDArray[np.float32]  # (SUBSTEP_FLOATS,)

    @staticmethod
    def allocate() -> Scratch:
        """Zeroed working memory."""
        return Scratch(
            floats=_aligned(int(layout.FLOAT_SCRATCH)),
            ints=np.zeros(layout.INT_SCRATCH, np.int64),
            blocks=_aligned(int(2 * layout.BLOCK_FLOATS)),
            slots=_aligned(int(2 * layout.SLOT_FLOATS)),
            substep=_aligned(int(layout.SUBSTEP_FLOATS)),
        )


class Landers(NamedTuple):
    """All that a step reads and writes on one thread."""

    memory: Environments
    actions: Actions
    gusts: npt.NDArray[np.float64]  # (G,) strength of the wind from index WIND_INDEX_LOW on
    scratch: Scratch
