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
def velocity(block, lane, body):
    """A body's velocity: x, y, angular."""
    return (
        block[(body * BODY + at.VELOCITY_X) * LANES + lane],
        block[(body * BODY + at.VELOCITY_Y) * LANES + lane],
        block[(body * BODY + at.OMEGA) * LANES + lane],
    )


@njit(**INLINE)
def set_velocity(block, lane, body, value):
    """Stores a body's velocity."""
    block[(body * BODY + at.VELOCITY_X) * LANES + lane] = value[0]
    block[(body * BODY + at.VELOCITY_Y) * LANES + lane] = value[1]
    block[(body * BODY + at.OMEGA) * LANES + lane] = value[2]


@njit(**INLINE)
def center_and_angle(block, lane, body):
    """A body's center of mass (m) and angle (rad)."""
    return (
        block[(body * BODY + at.CENTER_X) * LANES + lane],
        block[(body * BODY + at.CENTER_Y) * LANES + lane],
        block[(body * BODY + at.ANGLE) * LANES + lane],
    )


@njit(**INLINE)
def set_center_and_angle(block, lane, body, old, new, keep):
    """Stores a body's center of mass and angle, the ``old`` ones if ``keep``."""
    block[(body * BODY + at.CENTER_X) * LANES + lane] = old[0] if keep else new[0]
    block[(body * BODY + at.CENTER_Y) * LANES + lane] = old[1] if keep else new[1]
    block[(body * BODY + at.ANGLE) * LANES + lane] = old[2] if keep else new[2]
