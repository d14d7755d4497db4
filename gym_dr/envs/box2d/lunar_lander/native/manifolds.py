"""Narrow phase: where an edge of the ground and a convex polygon touch.

b2CollideEdge.cpp (``b2EPCollider``) for an edge without neighbours: find the axis of least penetration among the edge's
normal and the polygon's, take the face it belongs to as the reference, clip the other shape's most opposed face to it,
and keep the points that lie within the skins. Each point carries an id (which features made it) by which its impulses
are carried over from the last step. The edge pushes to the side on which the polygon's centroid is.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.options import KERNEL
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import BODY, LANDER, LEG_0, LEG_1
from gym_dr.envs.box2d.lunar_lander.native.shapes import (
    CENTROID,
    HULL,
    LEG,
    NORMALS,
    SKIN,
    VERTEX_COUNT,
    VERTICES,
    segment,
)

f32 = np.float32
ZERO, ONE = f32(0), f32(1)
SKINS = f32(f32(2) * SKIN)  # m, of polygon and edge together
LARGEST = f32(3.4028234663852886e38)
PREFER_EDGE_RELATIVE, PREFER_EDGE_ABSOLUTE = f32(0.98), f32(0.001)  # the polygon's face must be better by this much

# positions in contact_floats[env, contact]
POINT = at.POINT_1_X - at.LOCAL_NORMAL_X
IMPULSES = at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X
N1, T1 = at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X, at.TANGENT_IMPULSE_1 - at.LOCAL_NORMAL_X
N2, T2 = at.NORMAL_IMPULSE_2 - at.LOCAL_NORMAL_X, at.TANGENT_IMPULSE_2 - at.LOCAL_NORMAL_X

FACE_FEATURE_EDGE, FACE_FEATURE_POLYGON = np.int64(1 << 6), np.int64(1 << 7)
BEGINS, ENDS = np.int64(1), np.int64(0)


@njit(**KERNEL)
def _id(index_polygon, features):
    """A new contact point's id: number 0 on the edge, that on the polygon, and which of the two is a face."""
    return index_polygon << 3 | features


@njit(**KERNEL)
def _clip(ints, floats, source, source_ids, target, target_ids, nx, ny, offset, vertex):
    """``b2ClipSegmentToLine``: the part of a segment with n.x <= offset; returns the number of points."""
    count = 0
    x0 = floats[source]
    y0 = floats[source + 1]
    x1 = floats[source + 2]
    y1 = floats[source + 3]
    distance_0 = (nx * x0 + ny * y0) - offset
    distance_1 = (nx * x1 + ny * y1) - offset
    if distance_0 <= ZERO:
        floats[target] = x0
        floats[target + 1] = y0
        ints[target_ids] = ints[source_ids]
        count = 1
    if distance_1 <= ZERO:
        floats[target + 2 * count] = x1
        floats[target + 2 * count + 1] = y1
        ints[target_ids + count] = ints[source_ids + 1]
        count += 1
    if distance_0 * distance_1 < ZERO:
        t = distance_0 / (distance_0 - distance_1)
        floats[target + 2 * count] = x0 + t * (x1 - x0)
        floats[target + 2 * count + 1] = y0 + t * (y1 - y0)
        # The new point: a vertex of the reference shape, on the face of the other that the first point had.
        ints[target_ids + count] = vertex | (ints[source_ids] & 0b111000) | FACE_FEATURE_POLYGON
        count += 1
    return count


@njit(**KERNEL)
def _swapped(point_id):
    """The id with edge and polygon exchanged, for a polygon's reference face."""
    first = point_id & 0b111
    second = (point_id >> 3) & 0b111
    faces = ((point_id & FACE_FEATURE_EDGE) << 1) | ((point_id & FACE_FEATURE_POLYGON) >> 1)
    return second | first << 3 | faces


@njit(**KERNEL)
def _polygon_axis(floats, count, x1, y1, x2, y2):
    """The polygon's face with the largest separation from the edge; face -1 if one separates by more than the skins."""
    best = -LARGEST
    face = -1
    for i in range(count):
        nx = -floats[at.W_NORMALS + 2 * i]
        ny = -floats[at.W_NORMALS + 2 * i + 1]
        vx = floats[at.W_VERTICES + 2 * i]
        vy = floats[at.W_VERTICES + 2 * i + 1]
        s = min(nx * (vx - x1) + ny * (vy - y1), nx * (vx - x2) + ny * (vy - y2))
        if s > SKINS:
            return -1, s
        if s > best:
            best = s
            face = i
    return face, best


@njit(**KERNEL)
def collide(memory, env, contact, scratch):
    """Compute one contact's manifold from the present poses; keeps no impulses."""
    rows, contact_ints, contact_floats = memory.rows, memory.contact_ints, memory.contact_floats
    floats, ints = scratch.floats, scratch.ints
    body = np.int64(contact_ints[env, contact, at.C_BODY])
    edge = np.int64(contact_ints[env, contact, at.C_EDGE])
    contact_ints[env, contact, at.C_POINTS] = 0
    base = body * BODY
    polygon = HULL if body == LANDER else LEG
    count = VERTEX_COUNT[polygon]
    center_y = rows[env, at.MASS_CENTER_Y] if body == LANDER else ZERO
    c = rows[env, base + at.COS]
    s = rows[env, base + at.SIN]
    px = rows[env, base + at.CENTER_X] + s * center_y
    py = rows[env, base + at.CENTER_Y] - c * center_y
    x1, y1, x2, y2 = segment(memory.terrain, env, edge)
    # the edge's normal, on the side of the centroid
    ex = x2 - x1
    ey = y2 - y1
    inverse = ONE / math.sqrt(ex * ex + ey * ey)
    nx1 = ey * inverse
    ny1 = -(ex * inverse)
    centroid_x = (c * CENTROID[polygon, 0] - s * CENTROID[polygon, 1]) + px
    centroid_y = (s * CENTROID[polygon, 0] + c * CENTROID[polygon, 1]) + py
    front = nx1 * (centroid_x - x1) + ny1 * (centroid_y - y1) >= ZERO
    nx = nx1 if front else -nx1
    ny = ny1 if front else -ny1
    # separation along it
    edge_separation = LARGEST
    for i in range(count):
        vx = (c * VERTICES[polygon, i, 0] - s * VERTICES[polygon, i, 1]) + px
        vy = (s * VERTICES[polygon, i, 0] + c * VERTICES[polygon, i, 1]) + py
        floats[at.W_VERTICES + 2 * i] = vx
        floats[at.W_VERTICES + 2 * i + 1] = vy
        separation = nx * (vx - x1) + ny * (vy - y1)
        edge_separation = separation if separation < edge_separation else edge_separation
    if edge_separation > SKINS:
        return
    for i in range(count):
        floats[at.W_NORMALS + 2 * i] = c * NORMALS[polygon, i, 0] - s * NORMALS[polygon, i, 1]
        floats[at.W_NORMALS + 2 * i + 1] = s * NORMALS[polygon, i, 0] + c * NORMALS[polygon, i, 1]
    face, face_separation = _polygon_axis(floats, count, x1, y1, x2, y2)
    if face < 0:
        return
    face_b = face_separation > PREFER_EDGE_RELATIVE * edge_separation + PREFER_EDGE_ABSOLUTE
    if face_b:
        # reference: the polygon's face; incident: the edge
        first = face
        second = face + 1 if face + 1 < count else 0
        floats[at.W_INCIDENT] = x1
        floats[at.W_INCIDENT + 1] = y1
        floats[at.W_INCIDENT + 2] = x2
        floats[at.W_INCIDENT + 3] = y2
        ints[at.I_INCIDENT] = _id(face, FACE_FEATURE_POLYGON)
        ints[at.I_INCIDENT + 1] = _id(face, FACE_FEATURE_POLYGON)
        fx1 = floats[at.W_VERTICES + 2 * first]
        fy1 = floats[at.W_VERTICES + 2 * first + 1]
        fx2 = floats[at.W_VERTICES + 2 * second]
        fy2 = floats[at.W_VERTICES + 2 * second + 1]
        nx = floats[at.W_NORMALS + 2 * first]
        ny = floats[at.W_NORMALS + 2 * first + 1]
    else:
        # reference: the edge; incident: the polygon's face that looks against it most
        lowest = nx * floats[at.W_NORMALS] + ny * floats[at.W_NORMALS + 1]
        first = 0
        for i in range(1, count):
            along = nx * floats[at.W_NORMALS + 2 * i] + ny * floats[at.W_NORMALS + 2 * i + 1]
            if along < lowest:
                lowest = along
                first = i
        second = first + 1 if first + 1 < count else 0
        floats[at.W_INCIDENT] = floats[at.W_VERTICES + 2 * first]
        floats[at.W_INCIDENT + 1] = floats[at.W_VERTICES + 2 * first + 1]
        floats[at.W_INCIDENT + 2] = floats[at.W_VERTICES + 2 * second]
        floats[at.W_INCIDENT + 3] = floats[at.W_VERTICES + 2 * second + 1]
        ints[at.I_INCIDENT] = _id(first, FACE_FEATURE_EDGE)
        ints[at.I_INCIDENT + 1] = _id(second, FACE_FEATURE_EDGE)
        first = 0 if front else 1
        second = 1 - first
        fx1 = x1 if front else x2
        fy1 = y1 if front else y2
        fx2 = x2 if front else x1
        fy2 = y2 if front else y1
    # clip to the two sides of the reference face
    offset_1 = ny * fx1 - nx * fy1
    offset_2 = nx * fy2 - ny * fx2
    if _clip(ints, floats, at.W_INCIDENT, at.I_INCIDENT, at.W_CLIPPED, at.I_CLIPPED, ny, -nx, offset_1, first) < 2:
        return
    # Box2D names the first vertex of the reference face in both cuts' order: first, then second.
    if _clip(ints, floats, at.W_CLIPPED, at.I_CLIPPED, at.W_INCIDENT, at.I_INCIDENT, -ny, nx, offset_2, second) < 2:
        return
    contact_ints[env, contact, at.C_FACE_B] = 1 if face_b else 0
    contact_floats[env, contact, 0] = NORMALS[polygon, first, 0] if face_b else nx
    contact_floats[env, contact, 1] = NORMALS[polygon, first, 1] if face_b else ny
    contact_floats[env, contact, 2] = VERTICES[polygon, first, 0] if face_b else fx1
    contact_floats[env, contact, 3] = VERTICES[polygon, first, 1] if face_b else fy1
    points = 0
    for i in range(2):
        x = floats[at.W_INCIDENT + 2 * i]
        y = floats[at.W_INCIDENT + 2 * i + 1]
        if nx * (x - fx1) + ny * (y - fy1) <= SKINS:
            contact_floats[env, contact, POINT + 2 * points] = x if face_b else c * (x - px) + s * (y - py)
            contact_floats[env, contact, POINT + 2 * points + 1] = y if face_b else -s * (x - px) + c * (y - py)
            point_id = ints[at.I_INCIDENT + i]
            contact_ints[env, contact, at.C_ID_1 + points] = _swapped(point_id) if face_b else point_id
            points += 1
    contact_ints[env, contact, at.C_POINTS] = points


@njit(**KERNEL)
def update(memory, env, contact, scratch):
    """``b2Contact::Update``: a new manifold that inherits impulses by id, and what Gymnasium's listener hears of it."""
    contact_ints, contact_floats = memory.contact_ints, memory.contact_floats
    old_points = contact_ints[env, contact, at.C_POINTS]
    old_id_1 = contact_ints[env, contact, at.C_ID_1]
    old_id_2 = contact_ints[env, contact, at.C_ID_2]
    normal_1 = contact_floats[env, contact, N1]
    tangent_1 = contact_floats[env, contact, T1]
    normal_2 = contact_floats[env, contact, N2]
    tangent_2 = contact_floats[env, contact, T2]
    collide(memory, env, contact, scratch)
    points = contact_ints[env, contact, at.C_POINTS]
    for i in range(points):
        point_id = contact_ints[env, contact, at.C_ID_1 + i]
        normal = ZERO
        tangent = ZERO
        if old_points > 0 and old_id_1 == point_id:
            normal = normal_1
            tangent = tangent_1
        elif old_points > 1 and old_id_2 == point_id:
            normal = normal_2
            tangent = tangent_2
        contact_floats[env, contact, IMPULSES + 2 * i] = normal
        contact_floats[env, contact, IMPULSES + 2 * i + 1] = tangent
    touched = contact_ints[env, contact, at.C_TOUCHING]
    touches = BEGINS if points > 0 else ENDS
    contact_ints[env, contact, at.C_TOUCHING] = touches
    if touches != touched:
        announce(memory.status, env, np.int64(contact_ints[env, contact, at.C_BODY]), touches)


@njit(**KERNEL)
def announce(status, env, body, touches):
    """A contact begins or ends: the hull crashes; a leg has contact, or loses it even if another edge holds it."""
    if body == LEG_0:
        status[env, at.S_LEG_0] = touches
    elif body == LEG_1:
        status[env, at.S_LEG_1] = touches
    elif touches:
        status[env, at.S_CRASHED] = 1
