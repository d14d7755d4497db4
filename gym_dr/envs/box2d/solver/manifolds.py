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
from gym_dr.envs.box2d.solver.broad_phase import overlaps, pose_in, segment
from gym_dr.envs.box2d.solver.layout import ONE, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import SKIN, unit
from gym_dr.envs.box2d.solver.vectors import (
    along,
    dot,
    either,
    farthest,
    middle_of,
    minus,
    negative,
    placed,
    set_vector,
    turned,
    turned_back,
    vector,
)

SKINS = f32(f32(2) * SKIN)  # m, of both shapes together
LARGEST = f32(3.4028234663852886e38)
PREFER_RELATIVE, PREFER_ABSOLUTE = f32(0.98), f32(0.001)  # the body's face must be better by this much

# positions in contact_floats[env, contact]
PLACE = at.LOCAL_POINT_X - at.LOCAL_NORMAL_X
POINT = at.POINT_1_X - at.LOCAL_NORMAL_X
IMPULSES = at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X

FACE_A, FACE_B = np.int64(1 << 6), np.int64(1 << 7)
BEGINS, ENDS = np.int64(1), np.int64(0)
FIRST = np.int64(0)  # where the vectors of a polygon begin
BOX_CENTROID = np.int64(at.BOX_CENTROID)


@njit(**INLINE)
def _keep(ints, floats, places, count, point, point_id):
    """Adds a point to what is left of a segment; returns the number of points."""
    _, _, target, target_ids = places
    set_vector(floats, target + 2 * count, point)
    ints[target_ids + count] = point_id
    return count + 1


@njit(**INLINE)
def _clip(ints, floats, places, normal, offset, vertex):
    """``b2ClipSegmentToLine``: the part of a segment with n.x <= offset; returns the number of points.

    ``places`` says where in scratch the segment and its ids are, and where the part goes.
    """
    source, source_ids, _, _ = places
    first, second = vector(floats, source), vector(floats, source + 2)
    distance_1 = dot(normal, first) - offset
    distance_2 = dot(normal, second) - offset
    count = 0
    if distance_1 <= ZERO:
        count = _keep(ints, floats, places, count, first, ints[source_ids])
    if distance_2 <= ZERO:
        count = _keep(ints, floats, places, count, second, ints[source_ids + 1])
    if distance_1 * distance_2 < ZERO:
        cut = along(first, distance_1 / (distance_1 - distance_2), minus(second, first))
        # The new point: a vertex of the reference shape, on the face of the other that the first point had.
        count = _keep(ints, floats, places, count, cut, vertex | (ints[source_ids] & 0b111000) | FACE_B)
    return count


@njit(**INLINE)
def _swapped(point_id):
    """The id with ground and body exchanged, for a reference face on the body."""
    first = point_id & 0b111
    second = (point_id >> 3) & 0b111
    faces = ((point_id & FACE_A) << 1) | ((point_id & FACE_B) >> 1)
    return second | first << 3 | faces


@njit(**INLINE)
def _load_vertices(floats, vertices, count, pose):
    """Loads a polygon's vertices in world coordinates."""
    for i in range(count):
        set_vector(floats, at.W_VERTICES + 2 * i, placed(pose, vector(vertices, 2 * i)))


@njit(**INLINE)
def _load_normals(floats, normals, count, pose):
    """Loads a polygon's normals in world coordinates."""
    for i in range(count):
        set_vector(floats, at.W_NORMALS + 2 * i, turned(pose, vector(normals, 2 * i)))


@njit(**INLINE)
def _polygon_axis(floats, count, start, end):
    """The polygon's face with the largest separation from the edge; face -1 if one separates by more than the skins."""
    best = -LARGEST
    face = -1
    for i in range(count):
        normal, vertex = negative(vector(floats, at.W_NORMALS + 2 * i)), vector(floats, at.W_VERTICES + 2 * i)
        s = min(dot(normal, minus(vertex, start)), dot(normal, minus(vertex, end)))
        if s > SKINS:
            return -1, s
        if s > best:
            best = s
            face = i
    return face, best


@njit(**INLINE)
def _set_incident(floats, ints, start, end, id_1, id_2):
    """The incident face as a segment, its ends with ids."""
    set_vector(floats, at.W_INCIDENT, start)
    set_vector(floats, at.W_INCIDENT + 2, end)
    ints[at.I_INCIDENT] = id_1
    ints[at.I_INCIDENT + 1] = id_2


@njit(**INLINE)
def _load_incident(floats, ints, face, count, features):
    """A face of the loaded polygon as the incident one; ids are ``features``, and which vertex it is."""
    after = _neighbor(face, False, count)
    start, end = vector(floats, at.W_VERTICES + 2 * face), vector(floats, at.W_VERTICES + 2 * after)
    _set_incident(floats, ints, start, end, features | face << 3, features | after << 3)


@njit(**INLINE)
def _clip_both(floats, ints, tangent, start, end, room, first, second):
    """Clips the incident face to both sides of the reference face, and some room; False if nothing is left."""
    back = negative(tangent)
    once = at.W_INCIDENT, at.I_INCIDENT, at.W_CLIPPED, at.I_CLIPPED
    if _clip(ints, floats, once, back, dot(back, start) + room, first) < 2:
        return False
    again = at.W_CLIPPED, at.I_CLIPPED, at.W_INCIDENT, at.I_INCIDENT
    return _clip(ints, floats, again, tangent, dot(tangent, end) + room, second) >= 2


@njit(**INLINE)
def _set_manifold(world, env, contact, face_b, normal, point):
    """The reference face: normal, and a point on it (m), in its shape's frame."""
    row = world.contact_floats[env, contact]
    set_vector(row, FIRST, normal)
    set_vector(row, PLACE, point)
    world.contact_ints[env, contact, at.C_FACE_B] = 1 if face_b else 0


@njit(**INLINE)
def _add_points(world, env, contact, separations, face_b, pose, scratch):
    """Adds the clipped points that lie within the skins, in the frame of the shape without the reference face."""
    numbers, row = world.contact_ints[env, contact], world.contact_floats[env, contact]
    points = 0
    for i in range(2):
        if separations[i] <= SKINS:
            point, point_id = vector(scratch.floats, at.W_INCIDENT + 2 * i), scratch.ints[at.I_INCIDENT + i]
            local = turned_back(pose, minus(point, (pose[2], pose[3])))
            set_vector(row, POINT + 2 * points, either(face_b, point, local))
            numbers[at.C_ID_1 + points] = _swapped(point_id) if face_b else point_id
            points += 1
    numbers[at.C_POINTS] = points


@njit(**INLINE)
def _collide_edge(world, env, contact, edge, body, scratch):
    """Collides an edge with a body's polygon."""
    shapes, floats, ints = world.shapes, scratch.floats, scratch.ints
    polygon = shapes.polygon[body]
    vertices, normals, count = shapes.vertices[polygon], shapes.normals[polygon], shapes.counts[polygon]
    start, end = segment(world, env, edge)
    pose = pose_in(world, env, body)
    _load_vertices(floats, vertices, count, pose)
    # the edge's normal, on the side of the centroid
    ex, ey = minus(end, start)
    inverse = ONE / math.sqrt(ex * ex + ey * ey)
    side = ey * inverse, -(ex * inverse)
    front = dot(side, minus(placed(pose, vector(shapes.centroid[polygon], FIRST)), start)) >= ZERO
    normal = either(front, side, negative(side))
    # separation along it
    edge_separation = LARGEST
    for i in range(count):
        separation = dot(normal, minus(vector(floats, at.W_VERTICES + 2 * i), start))
        edge_separation = separation if separation < edge_separation else edge_separation
    if edge_separation > SKINS:
        return
    _load_normals(floats, normals, count, pose)
    face, face_separation = _polygon_axis(floats, count, start, end)
    if face < 0:
        return
    face_b = face_separation > PREFER_RELATIVE * edge_separation + PREFER_ABSOLUTE
    if face_b:
        # reference: the polygon's face; incident: the edge
        first = face
        second = _neighbor(face, False, count)
        _set_incident(floats, ints, start, end, face << 3 | FACE_B, face << 3 | FACE_B)
        start, end = vector(floats, at.W_VERTICES + 2 * first), vector(floats, at.W_VERTICES + 2 * second)
        normal = vector(floats, at.W_NORMALS + 2 * first)
    else:
        # reference: the edge; incident: the polygon's face most opposed to it
        opposed = farthest(floats, at.W_NORMALS, count, negative(normal))
        _load_incident(floats, ints, opposed, count, FACE_A)
        first = 0 if front else 1
        second = 1 - first
        start, end = either(front, start, end), either(front, end, start)
    # Box2D names the first vertex of the reference face in both cuts' order: first, then second.
    if not _clip_both(floats, ints, (-normal[1], normal[0]), start, end, ZERO, first, second):
        return
    if face_b:
        _set_manifold(world, env, contact, face_b, vector(normals, 2 * first), vector(vertices, 2 * first))
    else:
        _set_manifold(world, env, contact, face_b, normal, start)
    clipped, other = vector(floats, at.W_INCIDENT), vector(floats, at.W_INCIDENT + 2)
    separations = dot(normal, minus(clipped, start)), dot(normal, minus(other, start))
    _add_points(world, env, contact, separations, face_b, pose, scratch)


@njit(**KERNEL)
def _face_separation(one, other, face):
    """Distance of the other polygon from a face (``b2EdgeSeparation``)."""
    (vertices_1, normals_1, _, _, pose_1), (vertices_2, _, count_2, _, pose_2) = one, other
    normal = turned(pose_1, vector(normals_1, 2 * face))
    deepest = farthest(vertices_2, FIRST, count_2, negative(turned_back(pose_2, normal)))
    gap = minus(placed(pose_2, vector(vertices_2, 2 * deepest)), placed(pose_1, vector(vertices_1, 2 * face)))
    return dot(gap, normal)


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
    to_other = minus(placed(other_pose, other_centroid), placed(pose, centroid))
    face = farthest(normals, FIRST, count, turned_back(pose, to_other))
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
    shapes, box = world.shapes, world.boxes[env, ground]
    polygon = shapes.polygon[body]
    own_centroid, box_centroid = vector(shapes.centroid[polygon], FIRST), vector(box, BOX_CENTROID)
    level = ONE, ZERO, ZERO, ZERO
    a = box[: at.BOX_NORMALS], box[at.BOX_NORMALS : BOX_CENTROID], np.int64(at.BOX_CORNERS), box_centroid, level
    pose = pose_in(world, env, body)
    b = shapes.vertices[polygon], shapes.normals[polygon], shapes.counts[polygon], own_centroid, pose
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
    normal = turned(pose, vector(normals, 2 * face))
    _load_vertices(floats, others, other_count, other_pose)
    opposed = farthest(other_normals, FIRST, other_count, negative(turned_back(other_pose, normal)))
    _load_incident(floats, ints, opposed, other_count, face | FACE_A)
    second = _neighbor(face, False, count)
    a, b = vector(vertices, 2 * face), vector(vertices, 2 * second)
    x, y = unit(minus(b, a))
    tx, ty = turned(pose, (x, y))
    start, end, front = placed(pose, a), placed(pose, b), (ty, -tx)
    if not _clip_both(floats, ints, (tx, ty), start, end, SKINS, face, second):
        return
    _set_manifold(world, env, contact, face_b, (y, -x), middle_of(a, b))
    clipped, other = vector(floats, at.W_INCIDENT), vector(floats, at.W_INCIDENT + 2)
    separations = dot(front, clipped) - dot(front, start), dot(front, other) - dot(front, start)
    _add_points(world, env, contact, separations, face_b, other_pose, scratch)


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
    numbers, row = world.contact_ints[env, contact], world.contact_floats[env, contact]
    old_points, old_id_1, old_id_2 = numbers[at.C_POINTS], numbers[at.C_ID_1], numbers[at.C_ID_2]
    old_1, old_2 = vector(row, IMPULSES), vector(row, IMPULSES + 2)
    collide(world, env, contact, scratch)
    points = numbers[at.C_POINTS]
    for i in range(points):
        point_id = numbers[at.C_ID_1 + i]
        impulses = ZERO, ZERO
        if old_points > 0 and old_id_1 == point_id:
            impulses = old_1
        elif old_points > 1 and old_id_2 == point_id:
            impulses = old_2
        set_vector(row, IMPULSES + 2 * i, impulses)
    touches = BEGINS if points > 0 else ENDS
    if touches != numbers[at.C_TOUCHING]:
        announce(world.status, env, np.int64(numbers[at.C_BODY]), touches)
    numbers[at.C_TOUCHING] = touches


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
