"""From a row's list of contacts to the slots of a block, and back."""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import KERNEL
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import CONTACT_FLOATS, LANDER, LANES, LEG_0, LEG_1, SLOT, SLOT_STRIDE
from gym_dr.envs.box2d.lunar_lander.native.shapes import LEG_INV_INERTIA, LEG_INV_MASS

f32 = np.float32
ZERO = f32(0)

SOLVING_ORDER = (LEG_1, LANDER, LEG_0)  # in which Box2D's island collects the bodies, and so their contacts


@njit(**KERNEL)
def fill(slot, lane, memory, env, contact):
    """Put one contact into one lane of a slot."""
    rows, contact_ints = memory.rows, memory.contact_ints
    body = np.int64(contact_ints[env, contact, at.C_BODY])
    slot[at.FACE_B * LANES + lane] = f32(contact_ints[env, contact, at.C_FACE_B])
    slot[at.POINTS * LANES + lane] = f32(contact_ints[env, contact, at.C_POINTS])
    for k in range(CONTACT_FLOATS):
        slot[(at.LOCAL_NORMAL_X + k) * LANES + lane] = memory.contact_floats[env, contact, k]
    is_leg = body != LANDER
    flat = contact_ints[env, contact, at.C_EDGE] == 0
    slot[at.SLOT_FRICTION * LANES + lane] = rows[env, at.FRICTION + (2 if is_leg else 0) + (0 if flat else 1)]
    slot[at.SLOT_INV_MASS * LANES + lane] = LEG_INV_MASS if is_leg else rows[env, at.INV_MASS]
    slot[at.SLOT_INV_INERTIA * LANES + lane] = LEG_INV_INERTIA if is_leg else rows[env, at.INV_INERTIA]
    slot[at.SLOT_CENTER_Y * LANES + lane] = ZERO if is_leg else rows[env, at.MASS_CENTER_Y]


@njit(**KERNEL)
def touching(memory, env, body):
    """How many contacts of a body touch."""
    contact_ints = memory.contact_ints
    count = 0
    for i in range(memory.status[env, at.S_CONTACTS]):
        if contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_TOUCHING] != 0:
            count += 1
    return count


@njit(**KERNEL)
def load(slots, first, lane, memory, env, body):
    """Put a body's touching contacts, newest first, into the slots from ``first`` on."""
    contact_ints = memory.contact_ints
    slot = first
    for i in range(memory.status[env, at.S_CONTACTS] - 1, -1, -1):
        if contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_TOUCHING] != 0:
            target = slots[slot * SLOT_STRIDE : (slot + 1) * SLOT_STRIDE]
            fill(target, lane, memory, env, i)
            slot += 1


@njit(**KERNEL)
def store(slots, first, lane, memory, env, body):
    """Keep the impulses of those slots for the next step's warm start (``StoreImpulses``)."""
    contact_ints = memory.contact_ints
    slot = first
    for i in range(memory.status[env, at.S_CONTACTS] - 1, -1, -1):
        if contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_TOUCHING] != 0:
            for k in range(at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X, at.NORMAL_IMPULSE_2 + 2 - at.LOCAL_NORMAL_X):
                memory.contact_floats[env, i, k] = slots[(slot * SLOT + at.LOCAL_NORMAL_X + k) * LANES + lane]
            slot += 1
