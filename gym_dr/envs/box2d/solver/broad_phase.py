"""Which body may touch which shape of the ground: Box2D's fat boxes, and the order in which contacts begin.

Each body has a box larger than necessary (by 0.1 m on all sides, and twice the displacement ahead). Only when the body,
swept over a step, leaves its box is the box rebuilt and compared with those of the ground. A contact exists while the
fat boxes overlap. The order of contacts determines the order of impulses, and so the last bits of velocities: pairs
that begin together are sorted by the ground's shape, then body; Box2D inserts each at the head of its list and iterates
from the head. Here contacts are stored in the order in which they began and iterated from last to first.

Box2D finds pairs with a tree, which is not needed here, since it sorts what the tree finds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.lanes import pair, set_pair
from gym_dr.envs.box2d.solver.layout import BODY, LANES, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import SKIN
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import either, placed, pose_of, set_vector, times, turned, vector

MARGIN = f32(0.1)  # m, b2_aabbExtension
LOOK_AHEAD = f32(2)  # steps, b2_aabbMultiplier
LOCAL_CENTER = np.int64(at.LOCAL_CENTER_X)


@njit(**INLINE)
def segment(world, env, edge):
    """The ends of an edge of the ground (m)."""
    own = world.edges[env, edge]
    return (own[0], own[1]), (own[2], own[3])


@njit(**INLINE)
def _extent(vertices, count, rotation):
    """Smallest and largest x and y of a rotated polygon around its body's origin (m)."""
    low_x, low_y = turned(rotation, (vertices[0], vertices[1]))
    high_x = low_x
    high_y = low_y
    for i in range(1, count):
        x, y = turned(rotation, vector(vertices, 2 * i))
        low_x = x if x < low_x else low_x
        low_y = y if y < low_y else low_y
        high_x = x if x > high_x else high_x
        high_y = y if y > high_y else high_y
    return (low_x, low_y), (high_x, high_y)


@njit(**INLINE)
def _swept_box(vertices, count, before, after):
    """Bounding box of a body in the poses ``before`` and ``after`` a motion, skin included (m)."""
    _, _, x1, y1 = before
    _, _, x2, y2 = after
    low_1, high_1 = _extent(vertices, count, before)
    low_2, high_2 = _extent(vertices, count, after)
    low = min(low_1[0] + x1, low_2[0] + x2) - SKIN, min(low_1[1] + y1, low_2[1] + y2) - SKIN
    high = max(high_1[0] + x1, high_2[0] + x2) + SKIN, max(high_1[1] + y1, high_2[1] + y2) + SKIN
    return low, high


@njit(**INLINE)
def _fattened(low, high, before, after):
    """The box with margin, stretched ahead along the displacement from one pose to the other."""
    dx, dy = times(LOOK_AHEAD, (after[2] - before[2], after[3] - before[3]))
    low_x, low_y = low[0] - MARGIN, low[1] - MARGIN
    high_x, high_y = high[0] + MARGIN, high[1] + MARGIN
    low = low_x + dx if dx < ZERO else low_x, low_y + dy if dy < ZERO else low_y
    high = high_x if dx < ZERO else high_x + dx, high_y if dy < ZERO else high_y + dy
    return low, high


@njit(**INLINE)
def _contains(fat_low, fat_high, low, high):
    """Whether a fat box contains another."""
    return fat_low[0] <= low[0] and fat_low[1] <= low[1] and high[0] <= fat_high[0] and high[1] <= fat_high[1]


@njit(**INLINE)
def update_lane(block, lane, body, vertices, count, local):
    """Updates one body's rotation, and its fat box if the body left it; returns 1 << body in that case.

    ``local`` is its center of mass in its frame (m).
    """
    sine, cosine = sin_cos(block[(body * BODY + at.ANGLE) * LANES + lane])
    center, start = pair(block, body * BODY + at.CENTER_X, lane), pair(block, body * BODY + at.START_X, lane)
    before = pose_of(pair(block, body * BODY + at.COS, lane), start, local)
    after = pose_of((cosine, sine), center, local)
    low, high = _swept_box(vertices, count, before, after)
    fat_low, fat_high = pair(block, body * BODY + at.BOX_LOW_X, lane), pair(block, body * BODY + at.BOX_HIGH_X, lane)
    inside = _contains(fat_low, fat_high, low, high)
    low, high = _fattened(low, high, before, after)
    set_pair(block, body * BODY + at.BOX_LOW_X, lane, either(inside, fat_low, low))
    set_pair(block, body * BODY + at.BOX_HIGH_X, lane, either(inside, fat_high, high))
    set_pair(block, body * BODY + at.COS, lane, (cosine, sine))
    return ZERO if inside else f32(1 << body)


@njit(**INLINE)
def origin(world, env, body):
    """A body's origin (m); its rotation is kept in its row."""
    rows, properties = world.rows, world.properties
    base = body * BODY
    x = properties[env, body, at.LOCAL_CENTER_X]
    y = properties[env, body, at.LOCAL_CENTER_Y]
    cosine = rows[env, base + at.COS]
    sine = rows[env, base + at.SIN]
    return (
        rows[env, base + at.CENTER_X] - (cosine * x - sine * y),
        rows[env, base + at.CENTER_Y] - (sine * x + cosine * y),
    )


@njit(**INLINE)
def pose_in(world, env, body):
    """A body's pose."""
    row = world.rows[env, body * BODY : (body + 1) * BODY]
    return pose_of(vector(row, at.COS), vector(row, at.CENTER_X), vector(world.properties[env, body], LOCAL_CENTER))


@njit(**KERNEL)
def _set_box(row, low, high):
    set_vector(row, at.BOX_LOW_X, low)
    set_vector(row, at.BOX_HIGH_X, high)


@njit(**KERNEL)
def update_body(world, env, body, before):
    """Like ``update_lane`` for one body of one row, given its old pose; returns whether it left its box."""
    row, shapes = world.rows[env, body * BODY : (body + 1) * BODY], world.shapes
    polygon = shapes.polygon[body]
    after = pose_in(world, env, body)
    low, high = _swept_box(shapes.vertices[polygon], shapes.counts[polygon], before, after)
    if _contains(vector(row, at.BOX_LOW_X), vector(row, at.BOX_HIGH_X), low, high):
        return False
    low, high = _fattened(low, high, before, after)
    _set_box(row, low, high)
    return True


@njit(**KERNEL)
def place(world, env, body, x, y, angle):
    """Places a body at rest with its origin at (x, y) m and its angle in rad; its fat box has only the margin."""
    row, shapes = world.rows[env, body * BODY : (body + 1) * BODY], world.shapes
    sine, cosine = sin_cos(angle)
    set_vector(row, at.COS, (cosine, sine))
    set_vector(row, at.CENTER_X, placed((cosine, sine, x, y), vector(world.properties[env, body], LOCAL_CENTER)))
    row[at.ANGLE] = angle
    polygon = shapes.polygon[body]
    (low_x, low_y), (high_x, high_y) = _extent(shapes.vertices[polygon], shapes.counts[polygon], (cosine, sine))
    low = ((low_x + x) - SKIN) - MARGIN, ((low_y + y) - SKIN) - MARGIN
    high = ((high_x + x) + SKIN) + MARGIN, ((high_y + y) + SKIN) + MARGIN
    _set_box(row, low, high)


@njit(**INLINE)
def _ground_box(world, env, ground):
    """The fat box of a shape of the ground (m)."""
    boxes = world.boxes
    count = boxes.shape[1]
    if ground < count:
        low_x, low_y = boxes[env, ground, 4], boxes[env, ground, 1]  # corners: right low, right high, left high, low
        high_x, high_y = boxes[env, ground, 0], boxes[env, ground, 3]
    else:
        (x1, y1), (x2, y2) = segment(world, env, ground - count)
        low_x, low_y, high_x, high_y = min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
    return (low_x - SKIN) - MARGIN, (low_y - SKIN) - MARGIN, (high_x + SKIN) + MARGIN, (high_y + SKIN) + MARGIN


@njit(**INLINE)
def overlaps(world, env, ground, body):
    """Whether the fat boxes of a body and a shape of the ground overlap (``b2TestOverlap``: touching counts)."""
    rows = world.rows
    base = body * BODY
    low_x, low_y, high_x, high_y = _ground_box(world, env, ground)
    return not (
        rows[env, base + at.BOX_LOW_X] - high_x > ZERO
        or rows[env, base + at.BOX_LOW_Y] - high_y > ZERO
        or low_x - rows[env, base + at.BOX_HIGH_X] > ZERO
        or low_y - rows[env, base + at.BOX_HIGH_Y] > ZERO
    )


@njit(**INLINE)
def _begin_contact(world, env, ground, body):
    """Adds a contact for a new overlap, unless there is no room left for it."""
    contact_ints, status = world.contact_ints, world.status
    count = status[env, at.S_CONTACTS]
    for i in range(count):
        if contact_ints[env, i, at.C_BODY] == body and contact_ints[env, i, at.C_GROUND] == ground:
            return
    if count == contact_ints.shape[1]:
        return
    contact_ints[env, count, at.C_BODY] = body
    contact_ints[env, count, at.C_GROUND] = ground
    contact_ints[env, count, at.C_TOUCHING] = 0
    contact_ints[env, count, at.C_POINTS] = 0
    status[env, at.S_CONTACTS] = count + 1


@njit(**INLINE)
def _begin_with(world, env, moved, first, last):
    """New contacts of the bodies in ``moved`` with the ground's shapes from ``first`` up to ``last``."""
    for ground in range(first, last):
        for body in range(world.properties.shape[1]):
            if (moved >> body) & 1 != 0 and overlaps(world, env, ground, body):
                _begin_contact(world, env, ground, body)


@njit(**INLINE)
def begin_contacts(world, env, moved):
    """``FindNewContacts``: a contact for each new overlap of the bodies in ``moved`` (sum of 1 << body)."""
    rows, width = world.rows, world.edge_width
    low_x = f32(1e9)
    high_x = f32(-1e9)
    for body in range(world.properties.shape[1]):
        if rows[env, body * BODY + at.BOX_LOW_Y] > world.highest[env]:
            moved &= ~(1 << body)
        elif (moved >> body) & 1 != 0:
            low_x = min(low_x, rows[env, body * BODY + at.BOX_LOW_X])
            high_x = max(high_x, rows[env, body * BODY + at.BOX_HIGH_X])
    if moved == 0:
        return
    _begin_with(world, env, moved, np.int64(0), world.status[env, at.S_BOXES])
    boxes, edges = world.boxes.shape[1], world.edges.shape[1]
    # if all edges have the same width, only those below a body can overlap; some more at each end for rounding
    first = 0
    last = edges
    if width > ZERO:
        first = min(max(np.int64(np.floor((low_x - MARGIN) / width)) - 2, 0), edges)
        last = max(min(np.int64(np.floor((high_x + MARGIN) / width)) + 3, edges), first)
    _begin_with(world, env, moved, boxes + first, boxes + last)
