"""Narrow phase: where a shape of the ground, an edge or a box, and a body's convex polygon touch.

b2CollideEdge.cpp (``b2EPCollider``) for an edge without neighbors and b2CollidePolygon.cpp for a box: find the axis of
least penetration among the ground's normals and the body's, take the face it belongs to as the reference, clip the
other shape's most opposed face to it, and keep the points that lie within the skins. Each point carries an id (which
features made it) by which its impulses are carried over from the last step. An edge pushes to the side on which the
polygon's centroid is.

The polygon without the reference face is in scratch at ``W_VERTICES`` and ``W_NORMALS``, in world coordinates.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import origin, overlaps, segment
from gym_dr.envs.box2d.solver.layout import BODY, f32
from gym_dr.envs.box2d.solver.shapes import SKIN, unit
from gym_dr.envs.box2d.solver.vectors import farthest, placed, turned

ZERO, ONE, HALF = f32(0), f32(1), f32(0.5)
SKINS = f32(f32(2) * SKIN)  # m, of both shapes together
LARGEST = f32(3.4028234663852886e38)
PREFER_RELATIVE, PREFER_ABSOLUTE = f32(0.98), f32(0.001)  # the body's face must be better by this much

# positions in contact_floats[env, contact]
POINT = at.POINT_1_X - at.LOCAL_NORMAL_X
IMPULSES = at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X
N1, T1 = at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X, at.TANGENT_IMPULSE_1 - at.LOCAL_NORMAL_X
N2, T2 = at.NORMAL_IMPULSE_2 - at.LOCAL_NORMAL_X, at.TANGENT_IMPULSE_2 - at.LOCAL_NORMAL_X

FACE_A, FACE_B = np.int64(1 << 6), np.int64(1 << 7)
BEGINS, ENDS = np.int64(1), np.int64(0)
FIRST = np.int64(0)  # where the vectors of a polygon begin


@njit(**INLINE)
def _clip(ints, floats, places, nx, ny, offset, vertex):
    """``b2ClipSegmentToLine``: the part of a segment with n.x <= offset; returns the number of points.

    ``places`` says where in scratch the segment and its ids are, and where the part goes.
    """
    source, source_ids, target, target_ids = places
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
        ints[target_ids + count] = vertex | (ints[source_ids] & 0b111000) | FACE_B
        count += 1
    return count


@njit(**INLINE)
def _swapped(point_id):
    """The id with ground and body exchanged, for a reference face on the body."""
    first = point_id & 0b111
    second = (point_id >> 3) & 0b111
    faces = ((point_id & FACE_A) << 1) | ((point_id & FACE_B) >> 1)
    return second | first << 3 | faces


@njit(**INLINE)
def _load_body(world, env, body, floats):
    """Loads the body's polygon in world coordinates; returns its pose (cosine, sine, origin) and number of vertices."""
    rows, shapes = world.rows, world.shapes
    polygon = shapes.polygon[body]
    count = shapes.counts[polygon]
    px, py = origin(world, env, body)
    pose = rows[env, body * BODY + at.COS], rows[env, body * BODY + at.SIN], px, py
    for i in range(count):
        vertex = shapes.vertices[polygon, 2 * i], shapes.vertices[polygon, 2 * i + 1]
        floats[at.W_VERTICES + 2 * i], floats[at.W_VERTICES + 2 * i + 1] = placed(pose, vertex)
    return pose, count


@njit(**INLINE)
def _load_normals(world, body, count, pose, floats):
    """Loads the normals of the body's polygon in world coordinates."""
    shapes = world.shapes
    polygon = shapes.polygon[body]
    c, s, _, _ = pose
    for i in range(count):
        normal = shapes.normals[polygon, 2 * i], shapes.normals[polygon, 2 * i + 1]
        floats[at.W_NORMALS + 2 * i], floats[at.W_NORMALS + 2 * i + 1] = turned((c, s), normal)


@njit(**INLINE)
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


@njit(**INLINE)
def _load_incident(floats, ints, vertices, face, count, features):
    """The incident face as a segment, its ends with ids: ``features``, and which vertex of the shape it is."""
    after = face + 1 if face + 1 < count else 0
    floats[at.W_INCIDENT] = floats[vertices + 2 * face]
    floats[at.W_INCIDENT + 1] = floats[vertices + 2 * face + 1]
    floats[at.W_INCIDENT + 2] = floats[vertices + 2 * after]
    floats[at.W_INCIDENT + 3] = floats[vertices + 2 * after + 1]
    ints[at.I_INCIDENT] = features | face << 3
    ints[at.I_INCIDENT + 1] = features | after << 3


@njit(**INLINE)
def _clip_both(floats, ints, tangent_x, tangent_y, offset_1, offset_2, first, second):
    """Clips the incident face to both sides of the reference face; False if nothing is left."""
    once = at.W_INCIDENT, at.I_INCIDENT, at.W_CLIPPED, at.I_CLIPPED
    if _clip(ints, floats, once, -tangent_x, -tangent_y, offset_1, first) < 2:
        return False
    again = at.W_CLIPPED, at.I_CLIPPED, at.W_INCIDENT, at.I_INCIDENT
    return _clip(ints, floats, again, tangent_x, tangent_y, offset_2, second) >= 2


@njit(**INLINE)
def _set_manifold(contact_floats, env, contact, nx, ny, x, y):
    """The reference face: normal, and a point on it (m), in its shape's frame."""
    contact_floats[env, contact, 0] = nx
    contact_floats[env, contact, 1] = ny
    contact_floats[env, contact, 2] = x
    contact_floats[env, contact, 3] = y


@njit(**INLINE)
def _add_point(world, env, contact, points, x, y, face_b, pose, point_id):
    """Adds a contact point (m, in the world), in the frame of the shape without the reference face."""
    c, s, px, py = pose
    contact_ints, contact_floats = world.contact_ints, world.contact_floats
    contact_floats[env, contact, POINT + 2 * points] = x if face_b else c * (x - px) + s * (y - py)
    contact_floats[env, contact, POINT + 2 * points + 1] = y if face_b else -s * (x - px) + c * (y - py)
    contact_ints[env, contact, at.C_ID_1 + points] = _swapped(point_id) if face_b else point_id


@njit(**INLINE)
def _collide_edge(world, env, contact, edge, body, scratch):
    """Collides an edge with a body's polygon."""
    contact_ints, shapes = world.contact_ints, world.shapes
    floats, ints = scratch.floats, scratch.ints
    polygon = shapes.polygon[body]
    x1, y1, x2, y2 = segment(world, env, edge)
    pose, count = _load_body(world, env, body, floats)
    # the edge's normal, on the side of the centroid
    ex = x2 - x1
    ey = y2 - y1
    inverse = ONE / math.sqrt(ex * ex + ey * ey)
    nx1 = ey * inverse
    ny1 = -(ex * inverse)
    centroid_x, centroid_y = placed(pose, (shapes.centroid[polygon, 0], shapes.centroid[polygon, 1]))
    front = nx1 * (centroid_x - x1) + ny1 * (centroid_y - y1) >= ZERO
    nx = nx1 if front else -nx1
    ny = ny1 if front else -ny1
    # separation along it
    edge_separation = LARGEST
    for i in range(count):
        separation = nx * (floats[at.W_VERTICES + 2 * i] - x1) + ny * (floats[at.W_VERTICES + 2 * i + 1] - y1)
        edge_separation = separation if separation < edge_separation else edge_separation
    if edge_separation > SKINS:
        return
    _load_normals(world, body, count, pose, floats)
    face, face_separation = _polygon_axis(floats, count, x1, y1, x2, y2)
    if face < 0:
        return
    face_b = face_separation > PREFER_RELATIVE * edge_separation + PREFER_ABSOLUTE
    if face_b:
        # reference: the polygon's face; incident: the edge
        first = face
        second = face + 1 if face + 1 < count else 0
        floats[at.W_INCIDENT] = x1
        floats[at.W_INCIDENT + 1] = y1
        floats[at.W_INCIDENT + 2] = x2
        floats[at.W_INCIDENT + 3] = y2
        ints[at.I_INCIDENT] = face << 3 | FACE_B
        ints[at.I_INCIDENT + 1] = face << 3 | FACE_B
        fx1 = floats[at.W_VERTICES + 2 * first]
        fy1 = floats[at.W_VERTICES + 2 * first + 1]
        fx2 = floats[at.W_VERTICES + 2 * second]
        fy2 = floats[at.W_VERTICES + 2 * second + 1]
        nx = floats[at.W_NORMALS + 2 * first]
        ny = floats[at.W_NORMALS + 2 * first + 1]
    else:
        # reference: the edge; incident: the polygon's face most opposed to it
        opposed = farthest(floats, at.W_NORMALS, count, -nx, -ny)
        _load_incident(floats, ints, at.W_VERTICES, opposed, count, FACE_A)
        first = 0 if front else 1
        second = 1 - first
        fx1 = x1 if front else x2
        fy1 = y1 if front else y2
        fx2 = x2 if front else x1
        fy2 = y2 if front else y1
    # Box2D names the first vertex of the reference face in both cuts' order: first, then second.
    if not _clip_both(floats, ints, -ny, nx, ny * fx1 - nx * fy1, nx * fy2 - ny * fx2, first, second):
        return
    contact_ints[env, contact, at.C_FACE_B] = 1 if face_b else 0
    if face_b:
        normals, vertices = shapes.normals, shapes.vertices
        nfx, nfy = normals[polygon, 2 * first], normals[polygon, 2 * first + 1]
        vfx, vfy = vertices[polygon, 2 * first], vertices[polygon, 2 * first + 1]
        _set_manifold(world.contact_floats, env, contact, nfx, nfy, vfx, vfy)
    else:
        _set_manifold(world.contact_floats, env, contact, nx, ny, fx1, fy1)
    points = 0
    for i in range(2):
        x = floats[at.W_INCIDENT + 2 * i]
        y = floats[at.W_INCIDENT + 2 * i + 1]
        if nx * (x - fx1) + ny * (y - fy1) <= SKINS:
            _add_point(world, env, contact, points, x, y, face_b, pose, ints[at.I_INCIDENT + i])
            points += 1
    contact_ints[env, contact, at.C_POINTS] = points


@njit(**KERNEL)
def _face_separation(one, other, face):
    """Distance of the other polygon from a face (``b2EdgeSeparation``)."""
    (vertices_1, normals_1, _, _, pose_1), (vertices_2, _, count_2, _, pose_2) = one, other
    c2, s2, _, _ = pose_2
    nx, ny = turned((pose_1[0], pose_1[1]), (normals_1[2 * face], normals_1[2 * face + 1]))
    deepest = farthest(vertices_2, FIRST, count_2, -(c2 * nx + s2 * ny), -(-s2 * nx + c2 * ny))
    vx, vy = placed(pose_1, (vertices_1[2 * face], vertices_1[2 * face + 1]))
    wx, wy = placed(pose_2, (vertices_2[2 * deepest], vertices_2[2 * deepest + 1]))
    return (wx - vx) * nx + (wy - vy) * ny


@njit(**INLINE)
def _neighbor(face, back, count):
    """The face before or after one."""
    if back:
        return face - 1 if face > 0 else count - 1
    return face + 1 if face + 1 < count else 0


@njit(**KERNEL)
def _best_face(one, other):
    """The face of one polygon that the other is farthest in front of, by local search (``b2FindMaxSeparation``)."""
    _, normals, count, centroid, pose = one
    _, _, _, other_centroid, other_pose = other
    x, y = placed(pose, centroid)
    other_x, other_y = placed(other_pose, other_centroid)
    to_x = other_x - x
    to_y = other_y - y
    cosine, sine, _, _ = pose
    face = farthest(normals, FIRST, count, cosine * to_x + sine * to_y, -sine * to_x + cosine * to_y)
    best = _face_separation(one, other, face)
    before = _neighbor(face, True, count)
    after = _neighbor(face, False, count)
    s_before = _face_separation(one, other, before)
    s_after = _face_separation(one, other, after)
    back = s_before > best and s_before > s_after
    if not back and s_after <= best:
        return face, best
    face = before if back else after
    best = s_before if back else s_after
    while True:
        following = _neighbor(face, back, count)
        s = _face_separation(one, other, following)
        if not s > best:  # also if it is nan
            return face, best
        face = following
        best = s


@njit(**KERNEL)
def _collide_box(world, env, contact, ground, body, scratch):
    """Collides a box of the ground with a body's polygon (``b2CollidePolygons``)."""
    rows, shapes = world.rows, world.shapes
    polygon = shapes.polygon[body]
    base = body * BODY
    box = world.boxes[env, ground]
    px, py = origin(world, env, body)
    pose_b = rows[env, base + at.COS], rows[env, base + at.SIN], px, py
    pose_a = ONE, ZERO, ZERO, ZERO
    own_centroid = shapes.centroid[polygon, 0], shapes.centroid[polygon, 1]
    box_centroid = box[at.BOX_CENTROID], box[at.BOX_CENTROID + 1]
    a = box[: at.BOX_NORMALS], box[at.BOX_NORMALS : at.BOX_CENTROID], np.int64(at.BOX_CORNERS), box_centroid, pose_a
    b = shapes.vertices[polygon], shapes.normals[polygon], shapes.counts[polygon], own_centroid, pose_b
    face, separation_a = _best_face(a, b)
    if separation_a > SKINS:
        return
    face_of_b, separation_b = _best_face(b, a)
    if separation_b > SKINS:
        return
    face_b = separation_b > PREFER_RELATIVE * separation_a + PREFER_ABSOLUTE
    face = face_of_b if face_b else face
    reference, incident = (b, a) if face_b else (a, b)
    _clip_polygons(world, env, contact, face, face_b, reference, incident, scratch)


@njit(**KERNEL)
def _clip_polygons(world, env, contact, face, face_b, reference, incident, scratch):
    """Clips the incident polygon to the reference face, and keeps the points that lie within the skins."""
    floats, ints = scratch.floats, scratch.ints
    vertices, normals, count, _, pose = reference
    others, other_normals, other_count, _, other_pose = incident
    rotation = pose[0], pose[1]
    nx, ny = turned(rotation, (normals[2 * face], normals[2 * face + 1]))
    for i in range(other_count):
        vertex = others[2 * i], others[2 * i + 1]
        floats[at.W_VERTICES + 2 * i], floats[at.W_VERTICES + 2 * i + 1] = placed(other_pose, vertex)
    c2, s2, _, _ = other_pose
    opposed = farthest(other_normals, FIRST, other_count, -(c2 * nx + s2 * ny), -(-s2 * nx + c2 * ny))
    _load_incident(floats, ints, at.W_VERTICES, opposed, other_count, face | FACE_A)

    second = face + 1 if face + 1 < count else 0
    ax, ay = vertices[2 * face], vertices[2 * face + 1]
    bx, by = vertices[2 * second], vertices[2 * second + 1]
    tangent_x, tangent_y = unit(bx - ax, by - ay)
    _set_manifold(world.contact_floats, env, contact, tangent_y, -tangent_x, HALF * (ax + bx), HALF * (ay + by))
    tx, ty = turned(rotation, (tangent_x, tangent_y))
    wax, way = placed(pose, (ax, ay))
    wbx, wby = placed(pose, (bx, by))
    front_offset = ty * wax + -tx * way
    offset_1 = -(tx * wax + ty * way) + SKINS
    offset_2 = (tx * wbx + ty * wby) + SKINS
    if not _clip_both(floats, ints, tx, ty, offset_1, offset_2, face, second):
        return
    world.contact_ints[env, contact, at.C_FACE_B] = 1 if face_b else 0
    points = 0
    for i in range(2):
        x = floats[at.W_INCIDENT + 2 * i]
        y = floats[at.W_INCIDENT + 2 * i + 1]
        if (ty * x + -tx * y) - front_offset <= SKINS:
            _add_point(world, env, contact, points, x, y, face_b, other_pose, ints[at.I_INCIDENT + i])
            points += 1
    world.contact_ints[env, contact, at.C_POINTS] = points


@njit(**INLINE)
def collide(world, env, contact, scratch):
    """Computes one contact's manifold from the current poses; discards impulses."""
    contact_ints = world.contact_ints
    body = np.int64(contact_ints[env, contact, at.C_BODY])
    ground = np.int64(contact_ints[env, contact, at.C_GROUND])
    boxes = world.boxes.shape[1]
    contact_ints[env, contact, at.C_POINTS] = 0
    if ground < boxes:
        _collide_box(world, env, contact, ground, body, scratch)
    else:
        _collide_edge(world, env, contact, ground - boxes, body, scratch)


@njit(**INLINE)
def update(world, env, contact, scratch):
    """``b2Contact::Update``: a new manifold that inherits impulses by id, and the events for Gymnasium's listener."""
    contact_ints, contact_floats = world.contact_ints, world.contact_floats
    old_points = contact_ints[env, contact, at.C_POINTS]
    old_id_1 = contact_ints[env, contact, at.C_ID_1]
    old_id_2 = contact_ints[env, contact, at.C_ID_2]
    normal_1 = contact_floats[env, contact, N1]
    tangent_1 = contact_floats[env, contact, T1]
    normal_2 = contact_floats[env, contact, N2]
    tangent_2 = contact_floats[env, contact, T2]
    collide(world, env, contact, scratch)
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
        announce(world.status, env, np.int64(contact_ints[env, contact, at.C_BODY]), touches)


@njit(**INLINE)
def announce(status, env, body, touches):
    """Records that a contact begins or ends; the last event counts, even if the body still touches another shape."""
    if touches:
        status[env, at.S_TOUCHES] |= 1 << body
        status[env, at.S_TOUCHED] |= 1 << body
    else:
        status[env, at.S_TOUCHES] &= ~(1 << body)


@njit(**KERNEL)
def _forget(world, env, contact):
    """Removes a contact from the list, keeping its order."""
    contact_ints, contact_floats, status = world.contact_ints, world.contact_floats, world.status
    last = status[env, at.S_CONTACTS] - 1
    for j in range(contact, last):
        for k in range(at.CONTACT_INTS):
            contact_ints[env, j, k] = contact_ints[env, j + 1, k]
        for k in range(at.CONTACT_FLOATS):
            contact_floats[env, j, k] = contact_floats[env, j + 1, k]
    status[env, at.S_CONTACTS] = last


@njit(**INLINE)
def update_all(world, env, scratch):
    """``b2ContactManager::Collide``: drop contacts whose fat boxes parted, renew the others, newest first."""
    contact_ints, status = world.contact_ints, world.status
    for i in range(status[env, at.S_CONTACTS] - 1, -1, -1):
        body = np.int64(contact_ints[env, i, at.C_BODY])
        ground = np.int64(contact_ints[env, i, at.C_GROUND])
        if overlaps(world, env, ground, body):
            update(world, env, i, scratch)
            continue
        if contact_ints[env, i, at.C_TOUCHING] != 0:
            announce(status, env, body, ENDS)
        _forget(world, env, i)
