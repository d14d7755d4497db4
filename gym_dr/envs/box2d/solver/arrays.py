"""The arrays of small worlds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.envs.box2d.solver import layout
from gym_dr.envs.box2d.solver.layout import LANES
from gym_dr.envs.box2d.solver.shapes import Shapes

_CACHE_LINE = 64  # bytes


def _aligned(floats: int) -> npt.NDArray[np.float32]:
    """Zeros that start at a cache line, so that no SIMD load straddles two."""
    arrays = np.zeros(floats + _CACHE_LINE // 4, np.float32)
    offset = (-arrays.ctypes.data // 4) % (_CACHE_LINE // 4)
    return arrays[offset : offset + floats]


class Scratch(NamedTuple):
    """Scratch arrays of one thread; see layout.py."""

    floats: npt.NDArray[np.float32]  # (FLOAT_SCRATCH,)
    ints: npt.NDArray[np.int64]  # (INT_SCRATCH,)
    blocks: npt.NDArray[np.float32]  # two blocks
    slots: npt.NDArray[np.float32]  # (2 * SLOT_FLOATS,) of these blocks
    substep: npt.NDArray[np.float32]  # (SUBSTEP_FLOATS,)

    @staticmethod
    def allocate(block: int) -> Scratch:
        """Zeros for blocks of ``block`` fields."""
        return Scratch(
            floats=_aligned(int(layout.FLOAT_SCRATCH)),
            ints=np.zeros(layout.INT_SCRATCH, np.int64),
            blocks=_aligned(2 * int(block) * LANES),
            slots=_aligned(int(2 * layout.SLOT_FLOATS)),
            substep=_aligned(int(layout.SUBSTEP_FLOATS)),
        )


class World(NamedTuple):
    """The solver's state of every sub-environment between steps; first axis: sub-environment."""

    rows: npt.NDArray[np.float32]  # (N, row) poses, velocities, joint impulses, boxes; see layout.py
    properties: npt.NDArray[np.float32]  # (N, bodies, PROPERTIES) masses, centers and friction
    edges: npt.NDArray[np.float32]  # (N, edges, EDGE) of the ground
    boxes: npt.NDArray[np.float32]  # (N, boxes, GROUND_BOX) of the ground, as many as S_BOXES of them
    highest: npt.NDArray[np.float32]  # (N,) m, above it there is no ground and no fat box of the ground
    contact_ints: npt.NDArray[np.int16]  # (N, contacts, CONTACT_INTS)
    contact_floats: npt.NDArray[np.float32]  # (N, contacts, CONTACT_FLOATS)
    status: npt.NDArray[np.int64]  # (N, status) flags and counters
    shapes: Shapes
    edge_width: np.float32  # m, of all edges, which then begin at 0 one after the other; 0 where they are any

    @staticmethod
    def allocate(
        num_envs: int,
        shapes: Shapes,
        *,
        row: int,
        edges: int,
        boxes: int,
        contacts: int,
        status: int,
        edge_width: float,
    ) -> World:
        """Zeros for ``num_envs`` sub-environments."""
        return World(
            rows=np.zeros((num_envs, row), np.float32),
            properties=np.zeros((num_envs, len(shapes.polygon), layout.PROPERTIES), np.float32),
            edges=np.zeros((num_envs, edges, layout.EDGE), np.float32),
            boxes=np.zeros((num_envs, boxes, layout.GROUND_BOX), np.float32),
            highest=np.zeros(num_envs, np.float32),
            contact_ints=np.zeros((num_envs, contacts, layout.CONTACT_INTS), np.int16),
            contact_floats=np.zeros((num_envs, contacts, layout.CONTACT_FLOATS), np.float32),
            status=np.zeros((num_envs, status), np.int64),
            shapes=shapes,
            edge_width=np.float32(edge_width),
        )
