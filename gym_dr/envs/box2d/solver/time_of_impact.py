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
from gym_dr.envs.box2d.solver.layout import (
    I_GROUND_COUNT,
    I_SAVED,
    I_SIMPLEX,
    ONE,
    W_GROUND,
    W_METRIC,
    W_SIMPLEX,
    ZERO,
    f32,
)
from gym_dr.envs.box2d.solver.shapes import EPSILON, LINEAR_SLOP, SKIN, unit
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import (
    cross,
    dot,
    either,
    farthest,
    middle_of,
    minus,
    negative,
    placed,
    pose_of,
    set_vector,
    turned,
    turned_back,
    vector,
)

HALF, TWO = f32(0.5), f32(2)
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


@njit(**INLINE)
def _between(weights, a, b):
    """The weighted sum of two points."""
    return weights[0] * a[0] + weights[1] * b[0], weights[0] * a[1] + weights[1] * b[1]


@njit(**INLINE)
def _normal(a, b):
    """The outward unit normal of the edge from one vertex to the next."""
    x, y = minus(b, a)
    return unit((y, -x))


@njit(**KERNEL)
def pose_at(floats, sweep, polygon, t):
    """The pose of a swept body at time ``t`` (``b2Sweep::GetTransform``)."""
    rest = ONE - t
    center = _between((rest, t), vector(floats, sweep), vector(floats, sweep + 3))
    s, c = sin_cos(rest * floats[sweep + 2] + t * floats[sweep + 5])
    return pose_of((c, s), center, polygon[2])


@njit(**INLINE)
def load_ground(world, env, ground, scratch):
    """Copies a shape of the ground into scratch."""
    boxes = world.boxes.shape[1]
    shape = world.boxes[env, ground] if ground < boxes else world.edges[env, ground - boxes]
    count = at.BOX_CORNERS if ground < boxes else 2
    scratch.ints[I_GROUND_COUNT] = count
    for k in range(2 * count):
        scratch.floats[W_GROUND + k] = shape[k]


@njit(**INLINE)
def _ground_support(floats, ints, direction):
    """The ground's vertex farthest along a direction."""
    return farthest(floats, W_GROUND, ints[I_GROUND_COUNT], direction)


@njit(**INLINE)
def _polygon_support(polygon, direction, pose):
    """The polygon's vertex farthest along a direction of the world."""
    return farthest(polygon[0], A, polygon[1], turned_back(pose, direction))


@njit(**INLINE)
def _difference(floats, k):
    """From the ground to the body at simplex vertex k (m)."""
    return vector(floats, W_SIMPLEX + VERTEX * k + 4)


@njit(**KERNEL)
def _set_vertex(floats, ints, k, on_ground, on_polygon, polygon, pose):
    """Simplex vertex k from a vertex of each shape."""
    v = W_SIMPLEX + VERTEX * k
    ints[I_SIMPLEX + k] = on_ground
    ints[I_SIMPLEX + 3 + k] = on_polygon
    ground = vector(floats, W_GROUND + 2 * on_ground)
    own = placed(pose, vector(polygon[0], 2 * on_polygon))
    set_vector(floats, v, ground)
    set_vector(floats, v + 2, own)
    set_vector(floats, v + 4, minus(own, ground))


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
    a = _difference(floats, A)
    edge = minus(_difference(floats, B), a)
    if count == 2:
        return math.sqrt(dot(edge, edge))
    return cross(edge, minus(_difference(floats, C), a))


@njit(**KERNEL)
def _weigh_two(floats, i, j, near_j, near_i):
    """Barycentric weights of a segment's point nearest to the origin."""
    inverse = ONE / (near_j + near_i)
    floats[W_SIMPLEX + VERTEX * i + 6] = near_j * inverse
    floats[W_SIMPLEX + VERTEX * j + 6] = near_i * inverse


@njit(**KERNEL)
def _keep_one(floats, ints, k):
    """Reduces a simplex to vertex k."""
    floats[W_SIMPLEX + VERTEX * k + 6] = ONE
    _keep(floats, ints, A, k)
    return 1


@njit(**KERNEL)
def _reduce_segment(floats, ints):
    """Reduces a segment to what is nearest to the origin (``Solve2``); returns the number of vertices left."""
    a, b = _difference(floats, A), _difference(floats, B)
    edge = minus(b, a)
    beyond_a = -dot(a, edge)
    if beyond_a <= ZERO:
        return _keep_one(floats, ints, A)
    beyond_b = dot(b, edge)
    if beyond_b <= ZERO:
        return _keep_one(floats, ints, B)
    _weigh_two(floats, A, B, beyond_b, beyond_a)
    return 2


@njit(**KERNEL)
def _reduce_triangle(floats, ints):
    """Like ``_reduce_segment`` for a triangle (``Solve3``), by region; 3 vertices are left if the origin is inside."""
    a, b, c = _difference(floats, A), _difference(floats, B), _difference(floats, C)
    ab, ac, bc = minus(b, a), minus(c, a), minus(c, b)
    ab_1, ab_2 = dot(b, ab), -dot(a, ab)
    ac_1, ac_2 = dot(c, ac), -dot(a, ac)
    bc_1, bc_2 = dot(c, bc), -dot(b, bc)
    n = cross(ab, ac)
    area_1 = n * cross(b, c)
    area_2 = n * cross(c, a)
    area_3 = n * cross(a, b)
    if ab_2 <= ZERO and ac_2 <= ZERO:
        return _keep_one(floats, ints, A)
    if ab_1 > ZERO and ab_2 > ZERO and area_3 <= ZERO:
        _weigh_two(floats, A, B, ab_1, ab_2)
        return 2
    if ac_1 > ZERO and ac_2 > ZERO and area_2 <= ZERO:
        _weigh_two(floats, A, C, ac_1, ac_2)
        _keep(floats, ints, B, C)
        return 2
    if ab_1 <= ZERO and bc_2 <= ZERO:
        return _keep_one(floats, ints, B)
    if ac_1 <= ZERO and bc_1 <= ZERO:
        return _keep_one(floats, ints, C)
    if bc_1 > ZERO and bc_2 > ZERO and area_1 <= ZERO:
        _weigh_two(floats, B, C, bc_1, bc_2)
        _keep(floats, ints, A, C)
        return 2
    return 3


@njit(**KERNEL)
def _distance(floats, ints, polygon, pose):
    """Distance of ground and polygon (m), 0 if they overlap; reads and updates a simplex in scratch."""
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
        direction = negative(_difference(floats, A))
        if count == 2:
            ex, ey = minus(_difference(floats, B), _difference(floats, A))
            direction = either(cross((ex, ey), direction) > ZERO, (-ey, ex), (ey, -ex))
        if dot(direction, direction) < EPSILON * EPSILON:
            break
        on_ground = _ground_support(floats, ints, negative(direction))
        on_polygon = _polygon_support(polygon, direction, pose)
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
    gap = minus(vector(floats, v), vector(floats, v + 2))
    if count == 2:
        w = W_SIMPLEX + VERTEX
        weights = floats[v + 6], floats[w + 6]
        on_ground = _between(weights, vector(floats, v), vector(floats, w))
        gap = minus(on_ground, _between(weights, vector(floats, v + 2), vector(floats, w + 2)))
    return math.sqrt(dot(gap, gap))


@njit(**KERNEL)
def _axis(floats, ints, polygon, pose):
    """The direction to measure separation along, from the nearest features: kind, axis, and a point on the face.

    ``b2SeparationFunction::Initialize``. Two points: the axis joins them. A face of the ground: its normal, in the
    world. A face of the polygon: its normal and middle, in the polygon's frame.
    """
    ground = vector(floats, W_GROUND + 2 * ints[I_SIMPLEX])
    own = vector(polygon[0], 2 * ints[I_SIMPLEX + 3])
    if ints[COUNT] == 1:
        return POINTS_AXIS, unit(minus(placed(pose, own), ground)), (ZERO, ZERO)
    if ints[I_SIMPLEX] == ints[I_SIMPLEX + 1]:
        other = vector(polygon[0], 2 * ints[I_SIMPLEX + 4])
        axis, middle = _normal(own, other), middle_of(own, other)
        flip = dot(minus(ground, placed(pose, middle)), turned(pose, axis)) < ZERO
        return FACE_POLYGON, either(flip, negative(axis), axis), middle
    other = vector(floats, W_GROUND + 2 * ints[I_SIMPLEX + 1])
    axis, middle = _normal(ground, other), middle_of(ground, other)
    flip = dot(minus(placed(pose, own), middle), axis) < ZERO
    return FACE_GROUND, either(flip, negative(axis), axis), middle


@njit(**KERNEL)
def _deepest(floats, ints, axis, polygon, pose):
    """The vertices of ground and polygon that are nearest along the axis (of ``FindMinSeparation``)."""
    kind, direction, _ = axis
    if kind == FACE_POLYGON:
        return _ground_support(floats, ints, negative(turned(pose, direction))), 0
    on_polygon = _polygon_support(polygon, negative(direction), pose)
    if kind == FACE_GROUND:
        return 0, on_polygon
    return _ground_support(floats, ints, direction), on_polygon


@njit(**KERNEL)
def _separation(floats, axis, on_ground, on_polygon, polygon, pose):
    """Separation of two vertices along the axis (m), ``b2SeparationFunction::Evaluate``."""
    kind, direction, middle = axis
    ground = vector(floats, W_GROUND + 2 * on_ground)
    if kind == FACE_POLYGON:
        return dot(minus(ground, placed(pose, middle)), turned(pose, direction))
    own = placed(pose, vector(polygon[0], 2 * on_polygon))
    return dot(minus(own, middle if kind == FACE_GROUND else ground), direction)


@njit(**INLINE)
def may_touch(floats, ints, sweep, polygon, reach, start, end):
    """False only if the polygon stays clearly apart from the ground's shape throughout its sweep.

    "Apart" means along x or y, or above an edge's line along its normal. Each vertex is checked at both ends of the
    sweep. Between them it deviates from a straight path by at most ``r angle^2 / 8`` as it turns, with ``r`` below
    ``reach``. ``start`` and ``end`` are its rotations there.
    """
    vertices, count, local = polygon
    corner, other = vector(floats, W_GROUND), vector(floats, W_GROUND + 2)
    is_edge = ints[I_GROUND_COUNT] == 2
    edge = minus(other, corner)
    inverse = ONE / math.sqrt(dot(edge, edge))
    normal = -edge[1] * inverse, edge[0] * inverse
    # a box begins with its right side, from below
    left = corner[0] if is_edge else floats[W_GROUND + 4]
    right = max(corner[0], other[0])
    top = max(corner[1], other[1])
    before = pose_of(start, vector(floats, sweep), local)
    after = pose_of(end, vector(floats, sweep + 3), local)
    lowest = f32(1e9) if is_edge else f32(-1e9)
    low_x = f32(1e9)
    low_y = f32(1e9)
    high_x = f32(-1e9)
    for i in range(count):
        vertex = vector(vertices, 2 * i)
        p, q = placed(before, vertex), placed(after, vertex)
        lowest = min(lowest, min(dot(normal, minus(p, corner)), dot(normal, minus(q, corner))))
        low_x = min(low_x, min(p[0], q[0]))
        low_y = min(low_y, min(p[1], q[1]))
        high_x = max(high_x, max(p[0], q[0]))
    turn = floats[sweep + 5] - floats[sweep + 2]
    near = CLEARLY_APART + f32(0.125) * reach * turn * turn
    return lowest < near and low_x < right + near and high_x > left - near and low_y < top + near


@njit(**KERNEL)
def time_of_impact(scratch, sweep, polygon):
    """Time of impact, or 2 if ground and polygon stay apart or Box2D's algorithm fails."""
    floats, ints = scratch.floats, scratch.ints
    turns = TWO_PI * f32(np.floor(floats[sweep + 2] / TWO_PI))
    angle_1 = floats[sweep + 2]
    angle_2 = floats[sweep + 5]
    floats[sweep + 2] = angle_1 - turns
    floats[sweep + 5] = angle_2 - turns
    t = ZERO
    result = f32(2)
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
