"""One lane of a block, or of a slice that holds a single body or slot: reads and writes fields that belong together."""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, LANES

ONLY = np.int64(0)  # the body of a slice that holds one


@njit(**INLINE)
def pair(arrays, field, lane):
    """A field and the one after it: x and y, cosine and sine, inverse mass and inertia, normal and tangent impulse."""
    return arrays[field * LANES + lane], arrays[(field + 1) * LANES + lane]


@njit(**INLINE)
def set_pair(arrays, field, lane, values):
    """Stores a field and the one after it."""
    arrays[field * LANES + lane] = values[0]
    arrays[(field + 1) * LANES + lane] = values[1]


@njit(**INLINE)
def triple(arrays, field, lane):
    """A field and the two after it: x, y and angle, or numbers of a matrix."""
    return arrays[field * LANES + lane], arrays[(field + 1) * LANES + lane], arrays[(field + 2) * LANES + lane]


@njit(**INLINE)
def set_triple(arrays, field, lane, values):
    """Stores a field and the two after it."""
    set_pair(arrays, field, lane, (values[0], values[1]))
    arrays[(field + 2) * LANES + lane] = values[2]


@njit(**INLINE)
def velocity(block, lane, body):
    """A body's velocity: x, y, angular."""
    return triple(block, body * BODY + at.VELOCITY_X, lane)


@njit(**INLINE)
def set_velocity(block, lane, body, value):
    """Stores a body's velocity."""
    set_triple(block, body * BODY + at.VELOCITY_X, lane, value)


@njit(**INLINE)
def center_and_angle(block, lane, body):
    """A body's center of mass (m) and angle (rad)."""
    return triple(block, body * BODY + at.CENTER_X, lane)


@njit(**INLINE)
def set_center_and_angle(block, lane, body, old, new, keep):
    """Stores a body's center of mass and angle, the ``old`` ones if ``keep``."""
    kept = old[0] if keep else new[0], old[1] if keep else new[1], old[2] if keep else new[2]
    set_triple(block, body * BODY + at.CENTER_X, lane, kept)
