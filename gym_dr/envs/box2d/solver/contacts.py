"""Touching contacts of all lanes: impulses that keep bodies from sinking into the ground, and friction.

b2ContactSolver.cpp, with the ground as an immovable first body. A contact has one or two points. Along the normal n the
impulses x >= 0 of two points are solved together, as the linear complementarity problem

    v = K x + b >= 0,  x >= 0,  x . v = 0        (K 2x2, b the velocity without the accumulated impulse)

by trying its four cases in Box2D's order (both, first, second, none). Friction along the tangent is clamped to
``friction * normal impulse`` of the same point and solved first.

Each function treats one slot of every lane. ``body`` is the slice of a block (or of the substep's small block) that
holds the fields of the touching body; ``slot`` is the slice of ``slots``. An empty slot has zero points, masses and
impulses and changes nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.lanes import (
    ONLY,
    center_and_angle,
    pair,
    set_center_and_angle,
    set_pair,
    set_triple,
    set_velocity,
    triple,
    velocity,
)
from gym_dr.envs.box2d.solver.layout import LANES, ONE, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import LINEAR_SLOP, SKIN
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import (
    along,
    clamped,
    cross,
    dot,
    either,
    middle_of,
    minus,
    negative,
    placed,
    pose_of,
    times,
    turned,
)

NOTHING = ZERO, ZERO
MAX_CONDITION = f32(1000)  # of K; a pair of points closer to singular is solved as one point
PAIR, TWO = np.int64(1), np.int64(2)
MAX_CORRECTION = f32(0.2)  # m, b2_maxLinearCorrection


@njit(**INLINE)
def _arm(face_b, normal, point, local, pose, center):
    """From the center of mass to the middle of the two skins at one contact point (``b2WorldManifold``)."""
    own = either(face_b, local, placed(pose, local))
    on_face = along(own, SKIN - dot(minus(own, point), normal), normal)
    on_other = along(own, -SKIN, normal)
    return minus(middle_of(on_face, on_other), center)


@njit(**INLINE)
def _effective_mass(mass, arm, direction):
    """1 / (m + i (r x n)^2), or 0 for an empty slot."""
    inv_mass, inv_inertia = mass
    turn = cross(arm, direction)
    k = inv_mass + (inv_inertia * turn) * turn
    return ONE / k if k > ZERO else ZERO


@njit(**KERNEL)
def prepare(body, slot):
    """World geometry and effective masses of one slot (``InitializeVelocityConstraints``)."""
    for lane in range(LANES):
        face_b = slot[at.FACE_B * LANES + lane] != ZERO
        points = slot[at.POINTS * LANES + lane]
        mass = pair(slot, at.SLOT_INV_MASS, lane)
        inv_mass, inv_inertia = mass
        center, rotation = pair(body, at.CENTER_X, lane), pair(body, at.COS, lane)
        pose = pose_of(rotation, center, pair(slot, at.SLOT_CENTER_X, lane))
        local_normal, local_point = pair(slot, at.LOCAL_NORMAL_X, lane), pair(slot, at.LOCAL_POINT_X, lane)
        normal = either(face_b, turned(rotation, local_normal), local_normal)
        point = either(face_b, placed(pose, local_point), local_point)
        arm_1 = _arm(face_b, normal, point, pair(slot, at.POINT_1_X, lane), pose, center)
        arm_2 = _arm(face_b, normal, point, pair(slot, at.POINT_2_X, lane), pose, center)
        normal = either(face_b, negative(normal), normal)  # from the ground to the body
        tangent = normal[1], -normal[0]
        turn_1 = cross(arm_1, normal)
        turn_2 = cross(arm_2, normal)
        k11 = inv_mass + (inv_inertia * turn_1) * turn_1
        k22 = inv_mass + (inv_inertia * turn_2) * turn_2
        k12 = inv_mass + (inv_inertia * turn_1) * turn_2
        determinant = k11 * k22 - k12 * k12
        paired = (points > ONE) and (k11 * k11 < MAX_CONDITION * determinant)
        inverse = ONE / determinant if determinant != ZERO else determinant
        first = points > ZERO
        masses_1 = _effective_mass(mass, arm_1, normal), _effective_mass(mass, arm_1, tangent)
        masses_2 = _effective_mass(mass, arm_2, normal), _effective_mass(mass, arm_2, tangent)
        set_pair(slot, at.NORMAL_X, lane, normal)
        set_pair(slot, at.ARM_1_X, lane, either(first, arm_1, NOTHING))
        set_pair(slot, at.ARM_2_X, lane, either(paired, arm_2, NOTHING))
        set_pair(slot, at.NORMAL_MASS_1, lane, either(first, masses_1, NOTHING))
        set_pair(slot, at.NORMAL_MASS_2, lane, either(paired, masses_2, NOTHING))
        set_triple(slot, at.PAIR_K11, lane, (k11, k12, k22))
        set_triple(slot, at.PAIR_INV11, lane, (inverse * k22, -inverse * k12, inverse * k11))
        slot[at.PAIRED * LANES + lane] = ONE if paired else ZERO


@njit(**INLINE)
def _pushed(mass, arm, impulse, speeds):
    """The body's new velocity after an impulse at the point with this ``arm``."""
    inv_mass, inv_inertia = mass
    vx, vy = along(speeds, inv_mass, impulse)
    return vx, vy, speeds[2] + inv_inertia * cross(arm, impulse)


@njit(**INLINE)
def _kicked(slot, lane, arm, impulses, speeds):
    """The body's new velocity after the ``impulses`` along normal and tangent at the point with this ``arm``."""
    nx, ny = pair(slot, at.NORMAL_X, lane)
    normal, tangent = impulses
    impulse = normal * nx + tangent * ny, normal * ny - tangent * nx
    return _pushed(pair(slot, at.SLOT_INV_MASS, lane), pair(slot, arm, lane), impulse, speeds)


@njit(**KERNEL)
def warm_start(body, slot):
    """Applies the impulses of the last step (``WarmStart``)."""
    for lane in range(LANES):
        paired = slot[at.PAIRED * LANES + lane] != ZERO
        first, second = pair(slot, at.NORMAL_IMPULSE_1, lane), pair(slot, at.NORMAL_IMPULSE_2, lane)
        v = _kicked(slot, lane, at.ARM_1_X, first, velocity(body, lane, ONLY))
        v = _kicked(slot, lane, at.ARM_2_X, either(paired, second, NOTHING), v)
        set_velocity(body, lane, ONLY, v)


@njit(**INLINE)
def _speed(speeds, arm, direction):
    """How fast the body moves along a direction at the point with this ``arm``."""
    vx, vy, w = speeds
    return (vx - w * arm[1]) * direction[0] + (vy + w * arm[0]) * direction[1]


@njit(**INLINE)
def _friction(slot, lane, tangent_impulse, tangent_mass, limit, arm, normal, speeds):
    """Clamped friction at one point; returns the body's new velocity."""
    rx, ry = arm
    nx, ny = normal
    vx, vy, w = speeds
    inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
    old = slot[tangent_impulse * LANES + lane]
    new = old - slot[tangent_mass * LANES + lane] * _speed(speeds, arm, (ny, -nx))
    new = clamped(new, -limit, limit)
    slot[tangent_impulse * LANES + lane] = new
    px = (new - old) * ny
    minus_py = (new - old) * nx
    return vx + inv_mass * px, vy - inv_mass * minus_py, w - inv_inertia * (rx * minus_py + ry * px)


@njit(**KERNEL)
def kind_of(slot):
    """Whether any lane of a prepared slot has two points (TWO), and any solves two together (TWO + PAIR)."""
    pairs = ZERO
    most = ZERO
    for lane in range(LANES):
        pairs += slot[at.PAIRED * LANES + lane]
        points = slot[at.POINTS * LANES + lane]
        most = points if points > most else most
    return (TWO if most > ONE else 0) + (PAIR if pairs != ZERO else 0)


@njit(**KERNEL)
def solve_single_velocity(body, slot):
    """Friction, then the normal impulse of one slot in which no lane has a pair: half the work of ``solve_velocity``.

    A leg nearly always stands on one corner, so this is the usual case.
    """
    for lane in range(LANES):
        mass = pair(slot, at.SLOT_INV_MASS, lane)
        normal, arm = pair(slot, at.NORMAL_X, lane), pair(slot, at.ARM_1_X, lane)
        old = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        limit = slot[at.SLOT_FRICTION * LANES + lane] * old
        v = velocity(body, lane, ONLY)
        v = _friction(slot, lane, at.TANGENT_IMPULSE_1, at.TANGENT_MASS_1, limit, arm, normal, v)
        new = old - slot[at.NORMAL_MASS_1 * LANES + lane] * _speed(v, arm, normal)
        new = new if new > ZERO else ZERO
        slot[at.NORMAL_IMPULSE_1 * LANES + lane] = new
        set_velocity(body, lane, ONLY, _pushed(mass, arm, times(new - old, normal), v))


@njit(**KERNEL)
def solve_velocity(body, slot):
    """Friction, then normal impulses of one slot (``SolveVelocityConstraints``)."""
    for lane in range(LANES):
        inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
        friction = slot[at.SLOT_FRICTION * LANES + lane]
        normal = pair(slot, at.NORMAL_X, lane)
        arm_1, arm_2 = pair(slot, at.ARM_1_X, lane), pair(slot, at.ARM_2_X, lane)
        a1 = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        paired = slot[at.PAIRED * LANES + lane] != ZERO
        old2 = slot[at.NORMAL_IMPULSE_2 * LANES + lane]
        a2 = old2 if paired else ZERO
        v = velocity(body, lane, ONLY)
        v = _friction(slot, lane, at.TANGENT_IMPULSE_1, at.TANGENT_MASS_1, friction * a1, arm_1, normal, v)
        tangent_2 = slot[at.TANGENT_IMPULSE_2 * LANES + lane]
        u = _friction(slot, lane, at.TANGENT_IMPULSE_2, at.TANGENT_MASS_2, friction * a2, arm_2, normal, v)
        vx, vy = either(paired, (u[0], u[1]), (v[0], v[1]))
        w = u[2] if paired else v[2]
        slot[at.TANGENT_IMPULSE_2 * LANES + lane] = slot[at.TANGENT_IMPULSE_2 * LANES + lane] if paired else tangent_2

        v1 = _speed((vx, vy, w), arm_1, normal)
        v2 = _speed((vx, vy, w), arm_2, normal)
        nm1 = slot[at.NORMAL_MASS_1 * LANES + lane]
        nm2 = slot[at.NORMAL_MASS_2 * LANES + lane]
        k11, k12, k22 = triple(slot, at.PAIR_K11, lane)
        inv11, inv12, inv22 = triple(slot, at.PAIR_INV11, lane)
        # one point
        single = a1 - nm1 * v1
        single = single if single > ZERO else ZERO
        # two points: cases none, second, first, both; the last that holds wins, so the order is Box2D's reversed
        b1 = v1 - (k11 * a1 + k12 * a2)
        b2 = v2 - (k12 * a1 + k22 * a2)
        x = either((b1 >= ZERO) and (b2 >= ZERO), NOTHING, (a1, a2))
        alone2 = -nm2 * b2
        x = either((alone2 >= ZERO) and (k12 * alone2 + b1 >= ZERO), (ZERO, alone2), x)
        alone1 = -nm1 * b1
        x = either((alone1 >= ZERO) and (k12 * alone1 + b2 >= ZERO), (alone1, ZERO), x)
        both = negative((inv11 * b1 + inv12 * b2, inv12 * b1 + inv22 * b2))
        x = either((both[0] >= ZERO) and (both[1] >= ZERO), both, x)
        x1, x2 = either(paired, x, (single, a2))
        p1, p2 = times(x1 - a1, normal), times(x2 - a2, normal)
        slot[at.NORMAL_IMPULSE_1 * LANES + lane] = x1
        slot[at.NORMAL_IMPULSE_2 * LANES + lane] = x2 if paired else old2
        w = w + inv_inertia * (cross(arm_1, p1) + cross(arm_2, p2))
        set_velocity(body, lane, ONLY, (vx + inv_mass * (p1[0] + p2[0]), vy + inv_mass * (p1[1] + p2[1]), w))


@njit(**INLINE)
def solve(body, slot, kind):
    """One velocity iteration of a slot of this ``kind_of``."""
    if kind & PAIR != 0:
        solve_velocity(body, slot)
    else:
        solve_single_velocity(body, slot)


@njit(**INLINE)
def _solve_point(slot, lane, point, active, baumgarte, place):
    """Pushes the body out along the normal at one point; returns its new pose and the previous separation (m)."""
    x, y, angle = place
    face_b = slot[at.FACE_B * LANES + lane] != ZERO
    inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
    local_normal, local_point = pair(slot, at.LOCAL_NORMAL_X, lane), pair(slot, at.LOCAL_POINT_X, lane)
    local = pair(slot, point, lane)
    sine, cosine = sin_cos(angle)
    pose = pose_of((cosine, sine), (x, y), pair(slot, at.SLOT_CENTER_X, lane))
    own = either(face_b, local, placed(pose, local))
    normal = either(face_b, turned(pose, local_normal), local_normal)
    separation = (dot(minus(own, either(face_b, placed(pose, local_point), local_point)), normal) - SKIN) - SKIN
    normal = either(face_b, negative(normal), normal)
    arm = minus(own, (x, y))
    correction = clamped(baumgarte * (separation + LINEAR_SLOP), -MAX_CORRECTION, ZERO)
    turn = cross(arm, normal)
    impulse = times(-correction / (inv_mass + (inv_inertia * turn) * turn), normal)
    moved = _pushed((inv_mass, inv_inertia), arm, impulse, place)
    place = moved[0] if active else x, moved[1] if active else y, moved[2] if active else angle
    return place, separation if active else ZERO


@njit(**INLINE)
def _solve_points(body, slot, lane, penetration, frozen, baumgarte, two):
    """Pushes the body out at its first point, and with ``two`` at the second."""
    old = center_and_angle(body, lane, ONLY)
    points = slot[at.POINTS * LANES + lane]
    deepest = penetration[lane]
    place, s = _solve_point(slot, lane, at.POINT_1_X, points > ZERO, baumgarte, old)
    deepest = s if s < deepest else deepest
    if two:
        place, s = _solve_point(slot, lane, at.POINT_2_X, points > ONE, baumgarte, place)
        deepest = s if s < deepest else deepest
    penetration[lane] = deepest
    set_center_and_angle(body, lane, ONLY, old, place, frozen[lane] != ZERO)


@njit(**KERNEL)
def solve_position(body, slot, penetration, frozen, baumgarte):
    """Resolves the share ``baumgarte`` of the overlap at one slot (``SolvePositionConstraints``).

    ``penetration`` (LANES,) collects the smallest separation (m); lanes with ``frozen`` (LANES,) not 0 keep their pose.
    """
    for lane in range(LANES):
        _solve_points(body, slot, lane, penetration, frozen, baumgarte, True)


@njit(**KERNEL)
def solve_single_position(body, slot, penetration, frozen, baumgarte):
    """Like ``solve_position`` for a slot in which no lane has two points: half the work."""
    for lane in range(LANES):
        _solve_points(body, slot, lane, penetration, frozen, baumgarte, False)
