"""From a row's list of contacts to the slots of a block, and back."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.flags import KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.lanes import set_pair
from gym_dr.envs.box2d.solver.layout import CONTACT_FLOATS, LANES, SLOT, SLOT_STRIDE, f32


@njit(**KERNEL)
def ground_friction(world, env, ground):
    """Friction of a shape of the ground."""
    boxes = world.boxes.shape[1]
    return (
        world.boxes[env, ground, at.BOX_FRICTION]
        if ground < boxes
        else world.edges[env, ground - boxes, at.EDGE_FRICTION]
    )


@njit(**KERNEL)
def fill(slot, lane, world, env, contact):
    """Copies one contact into one lane of a slot."""
    contact_ints, properties = world.contact_ints, world.properties
    body = np.int64(contact_ints[env, contact, at.C_BODY])
    face_b, points = contact_ints[env, contact, at.C_FACE_B], contact_ints[env, contact, at.C_POINTS]
    set_pair(slot, at.FACE_B, lane, (f32(face_b), f32(points)))
    for k in range(CONTACT_FLOATS):
        slot[(at.LOCAL_NORMAL_X + k) * LANES + lane] = world.contact_floats[env, contact, k]
    ground = ground_friction(world, env, np.int64(contact_ints[env, contact, at.C_GROUND]))
    slot[at.SLOT_FRICTION * LANES + lane] = math.sqrt(ground * properties[env, body, at.FRICTION])
    for k in range(4):  # inverse mass and inertia, center of mass
        slot[(at.SLOT_INV_MASS + k) * LANES + lane] = properties[env, body, at.INV_MASS + k]


@njit(**KERNEL)
def touching(world, env, body):
    """How many contacts of a body touch."""
    contact_ints = world.contact_ints
    count = 0
    for i in range(world.status[env, at.S_CONTACTS]):
        if contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_TOUCHING] != 0:
            count += 1
    return count


@njit(**KERNEL)
def load(slots, first, last, lane, world, env, body):
    """Copies a body's touching contacts, newest first, into the slots from ``first`` up to ``last``."""
    contact_ints = world.contact_ints
    slot = first
    for i in range(world.status[env, at.S_CONTACTS] - 1, -1, -1):
        if slot < last and contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_TOUCHING] != 0:
            target = slots[slot * SLOT_STRIDE : (slot + 1) * SLOT_STRIDE]
            fill(target, lane, world, env, i)
            slot += 1


@njit(**KERNEL)
def store(slots, first, last, lane, world, env, body):
    """Stores the impulses of those slots for the next step's warm start (``StoreImpulses``)."""
    contact_ints = world.contact_ints
    slot = first
    for i in range(world.status[env, at.S_CONTACTS] - 1, -1, -1):
        if slot < last and contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_TOUCHING] != 0:
            for k in range(at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X, at.NORMAL_IMPULSE_2 + 2 - at.LOCAL_NORMAL_X):
                world.contact_floats[env, i, k] = slots[(slot * SLOT + at.LOCAL_NORMAL_X + k) * LANES + lane]
            slot += 1
