"""Which body may touch which edge: Box2D's fat boxes, and the order in which contacts begin.

Each body has a box that is larger than it needs (0.1 m all round, and twice the displacement ahead). Only when the
body, swept over a step, leaves the box, the box is made anew and compared with those of the edges. A contact exists
while the fat boxes overlap. The order of contacts decides the order of impulses, and so the last bits of velocities:
pairs that begin together are sorted by edge, then body; Box2D puts each at the head of its list and walks from the
head. Here contacts are kept in the order of their beginning and walked from the last to the first.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import BODIES, BODY, EDGES, LANDER, LANES, LEG_0, LEG_1
from gym_dr.envs.box2d.lunar_lander.native.shapes import HULL, LEG, SKIN, VERTEX_COUNT, VERTICES, segment
from gym_dr.envs.box2d.lunar_lander.native.trigonometry import sin_cos

f32 = np.float32
ZERO = f32(0)
MARGIN = f32(0.1)  # m, b2_aabbExtension
LOOK_AHEAD = f32(2)  # steps, b2_aabbMultiplier
ABOVE_TERRAIN = f32(lander.TERRAIN_SMOOTHING * 3 * lander.WORLD_H / 2 + 0.2)  # m, higher than any edge's fat box
HULL_VERTICES, LEG_VERTICES = np.int64(6), np.int64(4)


@njit(**INLINE)
def _extent(polygon, vertices, cosine, sine):
    """Smallest and largest x and y of a rotated polygon around its body's origin (m)."""
    low_x = cosine * VERTICES[polygon, 0, 0] - sine * VERTICES[polygon, 0, 1]
    low_y = sine * VERTICES[polygon, 0, 0] + cosine * VERTICES[polygon, 0, 1]
    high_x = low_x
    high_y = low_y
    for i in range(1, vertices):
        x = cosine * VERTICES[polygon, i, 0] - sine * VERTICES[polygon, i, 1]
        y = sine * VERTICES[polygon, i, 0] + cosine * VERTICES[polygon, i, 1]
        low_x = x if x < low_x else low_x
        low_y = y if y < low_y else low_y
        high_x = x if x > high_x else high_x
        high_y = y if y > high_y else high_y
    return low_x, low_y, high_x, high_y


@njit(**INLINE)
def _swept_box(polygon, vertices, cosine_1, sine_1, x1, y1, cosine_2, sine_2, x2, y2):
    """Bounding box of a body at the start and at the end of a motion, skin included (m)."""
    low_x1, low_y1, high_x1, high_y1 = _extent(polygon, vertices, cosine_1, sine_1)
    low_x2, low_y2, high_x2, high_y2 = _extent(polygon, vertices, cosine_2, sine_2)
    low_x = min(low_x1 + x1, low_x2 + x2) - SKIN
    low_y = min(low_y1 + y1, low_y2 + y2) - SKIN
    high_x = max(high_x1 + x1, high_x2 + x2) + SKIN
    high_y = max(high_y1 + y1, high_y2 + y2) + SKIN
    return low_x, low_y, high_x, high_y


@njit(**INLINE)
def _fattened(low_x, low_y, high_x, high_y, dx, dy):
    """The box with margin, stretched ahead along the displacement."""
    dx = LOOK_AHEAD * dx
    dy = LOOK_AHEAD * dy
    low_x -= MARGIN
    low_y -= MARGIN
    high_x += MARGIN
    high_y += MARGIN
    low_x = low_x + dx if dx < ZERO else low_x
    high_x = high_x if dx < ZERO else high_x + dx
    low_y = low_y + dy if dy < ZERO else low_y
    high_y = high_y if dy < ZERO else high_y + dy
    return low_x, low_y, high_x, high_y


@njit(**INLINE)
def _update_lane(block, lane, body, polygon, vertices, mass_center_y):
    """New rotation and, if left, new fat box of one body; returns 1 << body if the box was left."""
    sine, cosine = sin_cos(block[(body * BODY + at.ANGLE) * LANES + lane])
    old_cosine = block[(body * BODY + at.COS) * LANES + lane]
    old_sine = block[(body * BODY + at.SIN) * LANES + lane]
    x1 = block[(at.START + 3 * body) * LANES + lane] + old_sine * mass_center_y
    y1 = block[(at.START + 3 * body + 1) * LANES + lane] - old_cosine * mass_center_y
    x2 = block[(body * BODY + at.CENTER_X) * LANES + lane] + sine * mass_center_y
    y2 = block[(body * BODY + at.CENTER_Y) * LANES + lane] - cosine * mass_center_y
    low_x, low_y, high_x, high_y = _swept_box(polygon, vertices, old_cosine, old_sine, x1, y1, cosine, sine, x2, y2)
    fat_low_x = block[(body * BODY + at.BOX_LOW_X) * LANES + lane]
    fat_low_y = block[(body * BODY + at.BOX_LOW_Y) * LANES + lane]
    fat_high_x = block[(body * BODY + at.BOX_HIGH_X) * LANES + lane]
    fat_high_y = block[(body * BODY + at.BOX_HIGH_Y) * LANES + lane]
    inside = (fat_low_x <= low_x) and (fat_low_y <= low_y) and (high_x <= fat_high_x) and (high_y <= fat_high_y)
    low_x, low_y, high_x, high_y = _fattened(low_x, low_y, high_x, high_y, x2 - x1, y2 - y1)
    block[(body * BODY + at.BOX_LOW_X) * LANES + lane] = fat_low_x if inside else low_x
    block[(body * BODY + at.BOX_LOW_Y) * LANES + lane] = fat_low_y if inside else low_y
    block[(body * BODY + at.BOX_HIGH_X) * LANES + lane] = fat_high_x if inside else high_x
    block[(body * BODY + at.BOX_HIGH_Y) * LANES + lane] = fat_high_y if inside else high_y
    block[(body * BODY + at.COS) * LANES + lane] = cosine
    block[(body * BODY + at.SIN) * LANES + lane] = sine
    return ZERO if inside else f32(1 << body)


@njit(**KERNEL)
def update_block(block):
    """``SynchronizeFixtures`` of every body and lane: rotations, fat boxes, and MOVED."""
    for lane in range(LANES):
        moved = _update_lane(block, lane, LANDER, HULL, HULL_VERTICES, block[at.MASS_CENTER_Y * LANES + lane])
        moved += _update_lane(block, lane, LEG_0, LEG, LEG_VERTICES, ZERO)
        moved += _update_lane(block, lane, LEG_1, LEG, LEG_VERTICES, ZERO)
        block[at.MOVED * LANES + lane] = moved


@njit(**KERNEL)
def update_body(rows, env, body, mass_center_y, old_cosine, old_sine, old_x, old_y):
    """The same for one body of one row that moved from an old pose of its origin; returns whether it left its box."""
    base = body * BODY
    polygon = HULL if body == LANDER else LEG
    vertices = VERTEX_COUNT[polygon]
    cosine = rows[env, base + at.COS]
    sine = rows[env, base + at.SIN]
    x = rows[env, base + at.CENTER_X] + sine * mass_center_y
    y = rows[env, base + at.CENTER_Y] - cosine * mass_center_y
    low_x, low_y, high_x, high_y = _swept_box(polygon, vertices, old_cosine, old_sine, old_x, old_y, cosine, sine, x, y)
    if (
        rows[env, base + at.BOX_LOW_X] <= low_x
        and rows[env, base + at.BOX_LOW_Y] <= low_y
        and high_x <= rows[env, base + at.BOX_HIGH_X]
        and high_y <= rows[env, base + at.BOX_HIGH_Y]
    ):
        return False
    box = _fattened(low_x, low_y, high_x, high_y, x - old_x, y - old_y)
    rows[env, base + at.BOX_LOW_X] = box[0]
    rows[env, base + at.BOX_LOW_Y] = box[1]
    rows[env, base + at.BOX_HIGH_X] = box[2]
    rows[env, base + at.BOX_HIGH_Y] = box[3]
    return True


@njit(**KERNEL)
def first_box(rows, env, body, mass_center_y):
    """The fat box of a body that has just been made: margin only."""
    base = body * BODY
    polygon = HULL if body == LANDER else LEG
    cosine = rows[env, base + at.COS]
    sine = rows[env, base + at.SIN]
    x = rows[env, base + at.CENTER_X] + sine * mass_center_y
    y = rows[env, base + at.CENTER_Y] - cosine * mass_center_y
    box = _swept_box(polygon, VERTEX_COUNT[polygon], cosine, sine, x, y, cosine, sine, x, y)
    rows[env, base + at.BOX_LOW_X] = box[0] - MARGIN
    rows[env, base + at.BOX_LOW_Y] = box[1] - MARGIN
    rows[env, base + at.BOX_HIGH_X] = box[2] + MARGIN
    rows[env, base + at.BOX_HIGH_Y] = box[3] + MARGIN


@njit(**KERNEL)
def overlaps(rows, terrain, env, edge, body):
    """Whether the fat boxes of a body and an edge overlap (``b2TestOverlap``: touching counts)."""
    base = body * BODY
    x1, y1, x2, y2 = segment(terrain, env, edge)
    low_x = (min(x1, x2) - SKIN) - MARGIN
    low_y = (min(y1, y2) - SKIN) - MARGIN
    high_x = (max(x1, x2) + SKIN) + MARGIN
    high_y = (max(y1, y2) + SKIN) + MARGIN
    return not (
        rows[env, base + at.BOX_LOW_X] - high_x > ZERO
        or rows[env, base + at.BOX_LOW_Y] - high_y > ZERO
        or low_x - rows[env, base + at.BOX_HIGH_X] > ZERO
        or low_y - rows[env, base + at.BOX_HIGH_Y] > ZERO
    )


@njit(**KERNEL)
def begin_contacts(memory, env, moved):
    """``FindNewContacts``: a contact for each new overlap of the bodies in ``moved`` (sum of 1 << body)."""
    for body in range(BODIES):
        if memory.rows[env, body * BODY + at.BOX_LOW_Y] > ABOVE_TERRAIN:
            moved &= ~(1 << body)
    if moved == 0:
        return
    contact_ints, status = memory.contact_ints, memory.status
    for edge in range(EDGES):
        for body in range(BODIES):
            if (moved >> body) & 1 == 0 or not overlaps(memory.rows, memory.terrain, env, edge, body):
                continue
            count = status[env, at.S_CONTACTS]
            known = False
            for i in range(count):
                if contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_EDGE] == edge:
                    known = True
            if known:
                continue
            contact_ints[env, count, at.C_BODY] = body
            contact_ints[env, count, at.C_EDGE] = edge
            contact_ints[env, count, at.C_TOUCHING] = 0
            contact_ints[env, count, at.C_POINTS] = 0
            status[env, at.S_CONTACTS] = count + 1
