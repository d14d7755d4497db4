"""When within a step a moving polygon first touches a shape of the ground.

b2Distance.cpp (the Gilbert-Johnson-Keerthi distance of two convex shapes, Catto 2010) inside b2TimeOfImpact.cpp
(conservative advancement, Catto 2013). Times are fractions of the step. A sweep is ``floats[sweep:]`` = start x, y,
angle, end x, y, angle, fraction done, of the center of mass; the sweep of ``body`` is at ``W_SWEEPS + SWEEP * body``.
The ground's shape is ``ints[I_GROUND_COUNT]`` corners from ``floats[W_GROUND]`` on. Vertices of a simplex are
``floats[W_SIMPLEX + 7 k:]`` = point on the ground, point on the body, their difference, weight; the vertex numbers that
made them are ``ints[I_SIMPLEX + k]`` (ground) and ``ints[I_SIMPLEX + 3 + k]`` (body). A body is passed as ``polygon``:
its vertices, their number, and its center of mass in its frame.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import segment
from gym_dr.envs.box2d.solver.layout import I_GROUND_COUNT, I_SAVED, I_SIMPLEX, W_GROUND, W_METRIC, W_SIMPLEX, f32
from gym_dr.envs.box2d.solver.shapes import EPSILON, LINEAR_SLOP, SKIN, unit
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import farthest, placed, pose_of, turned

ZERO, ONE, HALF, TWO = f32(0), f32(1), f32(0.5), f32(2)
TWO_PI = f32(f32(2) * f32(3.14159265359))
_TOTAL = f32(SKIN + SKIN)
TARGET = max(LINEAR_SLOP, f32(_TOTAL - f32(3) * LINEAR_SLOP))  # m, the distance that counts as an impact
TOLERANCE = f32(f32(0.25) * LINEAR_SLOP)  # m
CLEARLY_APART = f32(1.2) * f32(TARGET + TOLERANCE)  # m, with room for rounding
DISTANCE_ITERATIONS, ADVANCES, PUSH_BACKS, ROOT_ITERATIONS = 20, 20, 16, 50

VERTEX = 7  # floats a simplex vertex
COUNT = I_SIMPLEX + 6
A, B, C = np.int64(0), np.int64(1), np.int64(2)  # vertices of a simplex
POINTS_AXIS, FACE_GROUND, FACE_POLYGON = 0, 1, 2


@njit(**KERNEL)
def pose_at(floats, sweep, polygon, t):
    """The pose of a swept body at time ``t`` (``b2Sweep::GetTransform``)."""
    _, _, local = polygon
    rest = ONE - t
    x = rest * floats[sweep] + t * floats[sweep + 3]
    y = rest * floats[sweep + 1] + t * floats[sweep + 4]
    s, c = sin_cos(rest * floats[sweep + 2] + t * floats[sweep + 5])
    return pose_of((c, s), (x, y), local)


@njit(**INLINE)
def load_ground(world, env, ground, scratch):
    """Copies a shape of the ground into scratch."""
    floats, boxes = scratch.floats, world.boxes
    if ground < boxes.shape[1]:
        scratch.ints[I_GROUND_COUNT] = at.BOX_CORNERS
        for k in range(2 * at.BOX_CORNERS):
            floats[W_GROUND + k] = boxes[env, ground, k]
    else:
        x1, y1, x2, y2 = segment(world, env, ground - boxes.shape[1])
        scratch.ints[I_GROUND_COUNT] = 2
        floats[W_GROUND], floats[W_GROUND + 1], floats[W_GROUND + 2], floats[W_GROUND + 3] = x1, y1, x2, y2


@njit(**INLINE)
def _ground_support(floats, ints, dx, dy):
    """The ground's vertex farthest along a direction."""
    return farthest(floats, W_GROUND, ints[I_GROUND_COUNT], dx, dy)


@njit(**INLINE)
def _polygon_support(polygon, dx, dy):
    """The polygon's vertex farthest along a direction in its own frame."""
    return farthest(polygon[0], A, polygon[1], dx, dy)


@njit(**KERNEL)
def _set_vertex(floats, ints, k, on_ground, on_polygon, polygon, pose):
    """Simplex vertex k from a vertex of each shape."""
    vertices, _, _ = polygon
    v = W_SIMPLEX + VERTEX * k
    ints[I_SIMPLEX + k] = on_ground
    ints[I_SIMPLEX + 3 + k] = on_polygon
    floats[v] = floats[W_GROUND + 2 * on_ground]
    floats[v + 1] = floats[W_GROUND + 2 * on_ground + 1]
    floats[v + 2], floats[v + 3] = placed(pose, (vertices[2 * on_polygon], vertices[2 * on_polygon + 1]))
    floats[v + 4] = floats[v + 2] - floats[v]
    floats[v + 5] = floats[v + 3] - floats[v + 1]


@njit(**KERNEL)
def _keep(floats, ints, target, source):
    """Copies simplex vertex ``source`` to ``target``."""
    for i in range(VERTEX):
        floats[W_SIMPLEX + VERTEX * target + i] = floats[W_SIMPLEX + VERTEX * source + i]
    ints[I_SIMPLEX + target] = ints[I_SIMPLEX + source]
    ints[I_SIMPLEX + 3 + target] = ints[I_SIMPLEX + 3 + source]


@njit(**KERNEL)
def _metric(floats, count):
    """Length of a segment, twice the area of a triangle, 0 for a point; tells whether a cached simplex is valid."""
    if count <= 1:
        return ZERO
    ax = floats[W_SIMPLEX + 4]
    ay = floats[W_SIMPLEX + 5]
    bx = floats[W_SIMPLEX + VERTEX + 4]
    by = floats[W_SIMPLEX + VERTEX + 5]
    if count == 2:
        return math.sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by))
    cx = floats[W_SIMPLEX + 2 * VERTEX + 4]
    cy = floats[W_SIMPLEX + 2 * VERTEX + 5]
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


@njit(**KERNEL)
def _weigh_two(floats, i, j, near_j, near_i):
    """Barycentric weights of a segment's point nearest to the origin."""
    inverse = ONE / (near_j + near_i)
    floats[W_SIMPLEX + VERTEX * i + 6] = near_j * inverse
    floats[W_SIMPLEX + VERTEX * j + 6] = near_i * inverse


@njit(**KERNEL)
def _reduce_segment(floats, ints):
    """Reduces a segment to what is nearest to the origin (``Solve2``); returns the number of vertices left."""
    ax = floats[W_SIMPLEX + 4]
    ay = floats[W_SIMPLEX + 5]
    bx = floats[W_SIMPLEX + VERTEX + 4]
    by = floats[W_SIMPLEX + VERTEX + 5]
    ex = bx - ax
    ey = by - ay
    beyond_a = -(ax * ex + ay * ey)
    if beyond_a <= ZERO:
        floats[W_SIMPLEX + 6] = ONE
        return 1
    beyond_b = bx * ex + by * ey
    if beyond_b <= ZERO:
        floats[W_SIMPLEX + VERTEX + 6] = ONE
        _keep(floats, ints, A, B)
        return 1
    _weigh_two(floats, A, B, beyond_b, beyond_a)
    return 2


@njit(**KERNEL)
def _reduce_triangle(floats, ints):
    """Like ``_reduce_segment`` for a triangle (``Solve3``), by region; 3 vertices are left if the origin is inside."""
    ax = floats[W_SIMPLEX + 4]
    ay = floats[W_SIMPLEX + 5]
    bx = floats[W_SIMPLEX + VERTEX + 4]
    by = floats[W_SIMPLEX + VERTEX + 5]
    cx = floats[W_SIMPLEX + 2 * VERTEX + 4]
    cy = floats[W_SIMPLEX + 2 * VERTEX + 5]
    abx = bx - ax
    aby = by - ay
    ab_1 = bx * abx + by * aby
    ab_2 = -(ax * abx + ay * aby)
    acx = cx - ax
    acy = cy - ay
    ac_1 = cx * acx + cy * acy
    ac_2 = -(ax * acx + ay * acy)
    bcx = cx - bx
    bcy = cy - by
    bc_1 = cx * bcx + cy * bcy
    bc_2 = -(bx * bcx + by * bcy)
    n = abx * acy - aby * acx
    area_1 = n * (bx * cy - by * cx)
    area_2 = n * (cx * ay - cy * ax)
    area_3 = n * (ax * by - ay * bx)
    if ab_2 <= ZERO and ac_2 <= ZERO:
        floats[W_SIMPLEX + 6] = ONE
        return 1
    if ab_1 > ZERO and ab_2 > ZERO and area_3 <= ZERO:
        _weigh_two(floats, A, B, ab_1, ab_2)
        return 2
    if ac_1 > ZERO and ac_2 > ZERO and area_2 <= ZERO:
        _weigh_two(floats, A, C, ac_1, ac_2)
        _keep(floats, ints, B, C)
        return 2
    if ab_1 <= ZERO and bc_2 <= ZERO:
        floats[W_SIMPLEX + VERTEX + 6] = ONE
        _keep(floats, ints, A, B)
        return 1
    if ac_1 <= ZERO and bc_1 <= ZERO:
        floats[W_SIMPLEX + 2 * VERTEX + 6] = ONE
        _keep(floats, ints, A, C)
        return 1
    if bc_1 > ZERO and bc_2 > ZERO and area_1 <= ZERO:
        _weigh_two(floats, B, C, bc_1, bc_2)
        _keep(floats, ints, A, C)
        return 2
    return 3


@njit(**KERNEL)
def _distance(floats, ints, polygon, pose):
    """Distance of ground and polygon (m), 0 if they overlap; reads and updates a simplex in scratch."""
    c, s, _, _ = pose
    count = ints[COUNT]
    for k in range(count):
        _set_vertex(floats, ints, k, ints[I_SIMPLEX + k], ints[I_SIMPLEX + 3 + k], polygon, pose)
    if count > 1:
        before = floats[W_METRIC]
        now = _metric(floats, count)
        if now < HALF * before or TWO * before < now or now < EPSILON:
            count = 0
    if count == 0:
        _set_vertex(floats, ints, A, A, A, polygon, pose)
        floats[W_SIMPLEX + 6] = ONE
        count = 1
    for _ in range(DISTANCE_ITERATIONS):
        saved = count
        for k in range(saved):
            ints[I_SAVED + k] = ints[I_SIMPLEX + k]
            ints[I_SAVED + 3 + k] = ints[I_SIMPLEX + 3 + k]
        if count == 2:
            count = _reduce_segment(floats, ints)
        elif count == 3:
            count = _reduce_triangle(floats, ints)
            if count == 3:
                break
        dx = -floats[W_SIMPLEX + 4]
        dy = -floats[W_SIMPLEX + 5]
        if count == 2:
            ex = floats[W_SIMPLEX + VERTEX + 4] - floats[W_SIMPLEX + 4]
            ey = floats[W_SIMPLEX + VERTEX + 5] - floats[W_SIMPLEX + 5]
            left = ex * dy - ey * dx > ZERO
            dx = -ey if left else ey
            dy = ex if left else -ex
        if dx * dx + dy * dy < EPSILON * EPSILON:
            break
        on_ground = _ground_support(floats, ints, -dx, -dy)
        on_polygon = _polygon_support(polygon, c * dx + s * dy, -s * dx + c * dy)
        _set_vertex(floats, ints, count, on_ground, on_polygon, polygon, pose)
        repeated = False
        for k in range(saved):
            if ints[I_SAVED + k] == on_ground and ints[I_SAVED + 3 + k] == on_polygon:
                repeated = True
        if repeated:
            break
        count += 1
    floats[W_METRIC] = _metric(floats, count)
    ints[COUNT] = count
    if count == 3:
        return ZERO
    v = W_SIMPLEX
    if count == 1:
        dx = floats[v] - floats[v + 2]
        dy = floats[v + 1] - floats[v + 3]
        return math.sqrt(dx * dx + dy * dy)
    w = W_SIMPLEX + VERTEX
    a = floats[v + 6]
    b = floats[w + 6]
    dx = (a * floats[v] + b * floats[w]) - (a * floats[v + 2] + b * floats[w + 2])
    dy = (a * floats[v + 1] + b * floats[w + 1]) - (a * floats[v + 3] + b * floats[w + 3])
    return math.sqrt(dx * dx + dy * dy)


@njit(**KERNEL)
def _axis(floats, ints, polygon, pose):
    """The direction to measure separation along, from the nearest features: kind, axis, and a point on the face.

    ``b2SeparationFunction::Initialize``. Two points: the axis joins them. A face of the ground: its normal, in the
    world. A face of the polygon: its normal and middle, in the polygon's frame.
    """
    vertices, _, _ = polygon
    c, s, _, _ = pose
    g = W_GROUND + 2 * ints[I_SIMPLEX]
    gx, gy = floats[g], floats[g + 1]
    polygon_0 = ints[I_SIMPLEX + 3]
    vx, vy = vertices[2 * polygon_0], vertices[2 * polygon_0 + 1]
    if ints[COUNT] == 1:
        qx, qy = placed(pose, (vx, vy))
        ax, ay = unit(qx - gx, qy - gy)
        return POINTS_AXIS, ax, ay, ZERO, ZERO
    if ints[I_SIMPLEX] == ints[I_SIMPLEX + 1]:
        polygon_1 = ints[I_SIMPLEX + 4]
        wx, wy = vertices[2 * polygon_1], vertices[2 * polygon_1 + 1]
        ax, ay = unit(wy - vy, -(wx - vx))
        nx, ny = turned((c, s), (ax, ay))
        lx = HALF * (vx + wx)
        ly = HALF * (vy + wy)
        qx, qy = placed(pose, (lx, ly))
        flip = (gx - qx) * nx + (gy - qy) * ny < ZERO
        return FACE_POLYGON, -ax if flip else ax, -ay if flip else ay, lx, ly
    h = W_GROUND + 2 * ints[I_SIMPLEX + 1]
    hx, hy = floats[h], floats[h + 1]
    ax, ay = unit(hy - gy, -(hx - gx))
    lx = HALF * (gx + hx)
    ly = HALF * (gy + hy)
    qx, qy = placed(pose, (vx, vy))
    flip = (qx - lx) * ax + (qy - ly) * ay < ZERO
    return FACE_GROUND, -ax if flip else ax, -ay if flip else ay, lx, ly


@njit(**KERNEL)
def _deepest(floats, ints, axis, polygon, pose):
    """The vertices of ground and polygon that are nearest along the axis (of ``FindMinSeparation``)."""
    kind, ax, ay, _, _ = axis
    c, s, _, _ = pose
    if kind == FACE_POLYGON:
        return _ground_support(floats, ints, -(c * ax - s * ay), -(s * ax + c * ay)), 0
    on_polygon = _polygon_support(polygon, c * -ax + s * -ay, -s * -ax + c * -ay)
    if kind == FACE_GROUND:
        return 0, on_polygon
    return _ground_support(floats, ints, ax, ay), on_polygon


@njit(**KERNEL)
def _separation(floats, axis, on_ground, on_polygon, polygon, pose):
    """Separation of two vertices along the axis (m), ``b2SeparationFunction::Evaluate``."""
    kind, ax, ay, lx, ly = axis
    vertices, _, _ = polygon
    c, s, _, _ = pose
    gx = floats[W_GROUND + 2 * on_ground]
    gy = floats[W_GROUND + 2 * on_ground + 1]
    if kind == FACE_POLYGON:
        nx, ny = turned((c, s), (ax, ay))
        qx, qy = placed(pose, (lx, ly))
        return (gx - qx) * nx + (gy - qy) * ny
    qx, qy = placed(pose, (vertices[2 * on_polygon], vertices[2 * on_polygon + 1]))
    if kind == FACE_GROUND:
        return (qx - lx) * ax + (qy - ly) * ay
    return (qx - gx) * ax + (qy - gy) * ay


@njit(**INLINE)
def may_touch(floats, ints, sweep, polygon, reach, start, end):
    """False only if the polygon stays clearly apart from the ground's shape throughout its sweep.

    "Apart" means along x or y, or above an edge's line along its normal. Each vertex is checked at both ends of the
    sweep. Between them it deviates from a straight path by at most ``r angle^2 / 8`` as it turns, with ``r`` below
    ``reach``. ``start`` and ``end`` are its rotations there.
    """
    vertices, count, local = polygon
    x1, y1, x2, y2 = floats[W_GROUND], floats[W_GROUND + 1], floats[W_GROUND + 2], floats[W_GROUND + 3]
    is_edge = ints[I_GROUND_COUNT] == 2
    inverse = ONE / math.sqrt((x2 - x1) * (x2 - x1) + (y2 - y1) * (y2 - y1))
    nx = (y1 - y2) * inverse
    ny = (x2 - x1) * inverse
    # a box begins with its right side, from below
    left = x1 if is_edge else floats[W_GROUND + 4]
    right = max(x1, x2)
    top = max(y1, y2)
    before = pose_of(start, (floats[sweep], floats[sweep + 1]), local)
    after = pose_of(end, (floats[sweep + 3], floats[sweep + 4]), local)
    lowest = f32(1e9) if is_edge else f32(-1e9)
    low_x = f32(1e9)
    low_y = f32(1e9)
    high_x = f32(-1e9)
    for i in range(count):
        vertex = vertices[2 * i], vertices[2 * i + 1]
        px, py = placed(before, vertex)
        qx, qy = placed(after, vertex)
        over = min(nx * (px - x1) + ny * (py - y1), nx * (qx - x1) + ny * (qy - y1))
        lowest = min(lowest, over)
        low_x = min(low_x, min(px, qx))
        low_y = min(low_y, min(py, qy))
        high_x = max(high_x, max(px, qx))
    turn = floats[sweep + 5] - floats[sweep + 2]
    near = CLEARLY_APART + f32(0.125) * reach * turn * turn
    return lowest < near and low_x < right + near and high_x > left - near and low_y < top + near


@njit(**KERNEL)
def time_of_impact(scratch, sweep, polygon):
    """Time of impact, or 2 if ground and polygon stay apart or Box2D's algorithm fails."""
    floats, ints = scratch.floats, scratch.ints
    apart = f32(2)
    turns = TWO_PI * f32(np.floor(floats[sweep + 2] / TWO_PI))
    angle_1 = floats[sweep + 2]
    angle_2 = floats[sweep + 5]
    floats[sweep + 2] = angle_1 - turns
    floats[sweep + 5] = angle_2 - turns
    t = ZERO
    result = apart
    ints[COUNT] = 0
    for _ in range(ADVANCES):
        now = pose_at(floats, sweep, polygon, t)
        distance = _distance(floats, ints, polygon, now)
        if distance <= ZERO:
            break
        if distance < TARGET + TOLERANCE:
            result = t
            break
        axis = _axis(floats, ints, polygon, now)
        state, t = _advance(floats, ints, sweep, t, axis, polygon)
        if state == TOUCHES:
            result = t
        if state != ADVANCED:
            break
    floats[sweep + 2] = angle_1
    floats[sweep + 5] = angle_2
    return result


ADVANCED, TOUCHES, ENDED = 0, 1, 2


@njit(**KERNEL)
def _advance(floats, ints, sweep, t1, axis, polygon):
    """Moves the end of the step back until the shapes just touch along one axis; returns state and time."""
    t2 = ONE
    for _ in range(PUSH_BACKS):
        end = pose_at(floats, sweep, polygon, t2)
        on_ground, on_polygon = _deepest(floats, ints, axis, polygon, end)
        s2 = _separation(floats, axis, on_ground, on_polygon, polygon, end)
        if s2 > TARGET + TOLERANCE:
            return ENDED, ONE
        if s2 > TARGET - TOLERANCE:
            return ADVANCED, t2
        s1 = _separation(floats, axis, on_ground, on_polygon, polygon, pose_at(floats, sweep, polygon, t1))
        if s1 < TARGET - TOLERANCE:
            return ENDED, t1
        if s1 <= TARGET + TOLERANCE:
            return TOUCHES, t1
        a1 = t1
        a2 = t2
        for i in range(ROOT_ITERATIONS):  # false position and bisection in turn
            t = a1 + (TARGET - s1) * (a2 - a1) / (s2 - s1) if i & 1 else HALF * (a1 + a2)
            middle = _separation(floats, axis, on_ground, on_polygon, polygon, pose_at(floats, sweep, polygon, t))
            if abs(middle - TARGET) < TOLERANCE:
                t2 = t
                break
            if middle > TARGET:
                a1 = t
                s1 = middle
            else:
                a2 = t
                s2 = middle
    return ADVANCED, t1
