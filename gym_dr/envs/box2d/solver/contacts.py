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
    set_velocity,
    velocity,
)
from gym_dr.envs.box2d.solver.layout import LANES, f32
from gym_dr.envs.box2d.solver.shapes import LINEAR_SLOP, SKIN
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import either, placed, pose_of, turned

ZERO, ONE, HALF = f32(0), f32(1), f32(0.5)
MAX_CONDITION = f32(1000)  # of K; a pair of points closer to singular is solved as one point
PAIR, TWO = np.int64(1), np.int64(2)
MAX_CORRECTION = f32(0.2)  # m, b2_maxLinearCorrection


@njit(**INLINE)
def _arm(face_b, normal, point, local, pose, center):
    """From the center of mass to the middle of the two skins at one contact point (``b2WorldManifold``)."""
    nx, ny = normal
    px, py = point
    qx, qy = either(face_b, local, placed(pose, local))
    t = SKIN - ((qx - px) * nx + (qy - py) * ny)
    on_face_x = qx + t * nx
    on_face_y = qy + t * ny
    on_other_x = qx - SKIN * nx
    on_other_y = qy - SKIN * ny
    return HALF * (on_face_x + on_other_x) - center[0], HALF * (on_face_y + on_other_y) - center[1]


@njit(**INLINE)
def _effective_mass(inv_mass, inv_inertia, rx, ry, nx, ny):
    """1 / (m + i (r x n)^2), or 0 for an empty slot."""
    arm = rx * ny - ry * nx
    k = inv_mass + (inv_inertia * arm) * arm
    return ONE / k if k > ZERO else ZERO


@njit(**KERNEL)
def prepare(body, slot):
    """World geometry and effective masses of one slot (``InitializeVelocityConstraints``)."""
    for lane in range(LANES):
        face_b = slot[at.FACE_B * LANES + lane] != ZERO
        points = slot[at.POINTS * LANES + lane]
        inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
        center, rotation = pair(body, at.CENTER_X, lane), pair(body, at.COS, lane)
        pose = pose_of(rotation, center, pair(slot, at.SLOT_CENTER_X, lane))
        local_normal, local_point = pair(slot, at.LOCAL_NORMAL_X, lane), pair(slot, at.LOCAL_POINT_X, lane)
        nx, ny = either(face_b, turned(rotation, local_normal), local_normal)
        point = either(face_b, placed(pose, local_point), local_point)
        r1x, r1y = _arm(face_b, (nx, ny), point, pair(slot, at.POINT_1_X, lane), pose, center)
        r2x, r2y = _arm(face_b, (nx, ny), point, pair(slot, at.POINT_2_X, lane), pose, center)
        nx = -nx if face_b else nx  # from the ground to the body
        ny = -ny if face_b else ny
        arm_1 = r1x * ny - r1y * nx
        arm_2 = r2x * ny - r2y * nx
        k11 = inv_mass + (inv_inertia * arm_1) * arm_1
        k22 = inv_mass + (inv_inertia * arm_2) * arm_2
        k12 = inv_mass + (inv_inertia * arm_1) * arm_2
        determinant = k11 * k22 - k12 * k12
        paired = (points > ONE) and (k11 * k11 < MAX_CONDITION * determinant)
        inverse = ONE / determinant if determinant != ZERO else determinant
        first = points > ZERO
        slot[at.NORMAL_X * LANES + lane] = nx
        slot[at.NORMAL_Y * LANES + lane] = ny
        slot[at.ARM_1_X * LANES + lane] = r1x if first else ZERO
        slot[at.ARM_1_Y * LANES + lane] = r1y if first else ZERO
        slot[at.ARM_2_X * LANES + lane] = r2x if paired else ZERO
        slot[at.ARM_2_Y * LANES + lane] = r2y if paired else ZERO
        nm1 = _effective_mass(inv_mass, inv_inertia, r1x, r1y, nx, ny)
        tm1 = _effective_mass(inv_mass, inv_inertia, r1x, r1y, ny, -nx)
        nm2 = _effective_mass(inv_mass, inv_inertia, r2x, r2y, nx, ny)
        tm2 = _effective_mass(inv_mass, inv_inertia, r2x, r2y, ny, -nx)
        slot[at.NORMAL_MASS_1 * LANES + lane] = nm1 if first else ZERO
        slot[at.TANGENT_MASS_1 * LANES + lane] = tm1 if first else ZERO
        slot[at.NORMAL_MASS_2 * LANES + lane] = nm2 if paired else ZERO
        slot[at.TANGENT_MASS_2 * LANES + lane] = tm2 if paired else ZERO
        slot[at.PAIR_K11 * LANES + lane] = k11
        slot[at.PAIR_K12 * LANES + lane] = k12
        slot[at.PAIR_K22 * LANES + lane] = k22
        slot[at.PAIR_INV11 * LANES + lane] = inverse * k22
        slot[at.PAIR_INV12 * LANES + lane] = -inverse * k12
        slot[at.PAIR_INV22 * LANES + lane] = inverse * k11
        slot[at.PAIRED * LANES + lane] = ONE if paired else ZERO


@njit(**INLINE)
def _kicked(slot, lane, arm, impulses, speeds):
    """The body's new velocity after the ``impulses`` along normal and tangent at the point with this ``arm``."""
    inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
    nx, ny = pair(slot, at.NORMAL_X, lane)
    rx, ry = pair(slot, arm, lane)
    normal, tangent = impulses
    vx, vy, w = speeds
    px = normal * nx + tangent * ny
    py = normal * ny - tangent * nx
    return vx + inv_mass * px, vy + inv_mass * py, w + inv_inertia * (rx * py - ry * px)


@njit(**KERNEL)
def warm_start(body, slot):
    """Applies the impulses of the last step (``WarmStart``)."""
    for lane in range(LANES):
        paired = slot[at.PAIRED * LANES + lane] != ZERO
        first, second = pair(slot, at.NORMAL_IMPULSE_1, lane), pair(slot, at.NORMAL_IMPULSE_2, lane)
        v = _kicked(slot, lane, at.ARM_1_X, first, velocity(body, lane, ONLY))
        v = _kicked(slot, lane, at.ARM_2_X, either(paired, second, (ZERO, ZERO)), v)
        set_velocity(body, lane, ONLY, v)


@njit(**INLINE)
def _friction(slot, lane, tangent_impulse, tangent_mass, limit, arm, normal, speeds):
    """Clamped friction at one point; returns the body's new velocity."""
    rx, ry = arm
    nx, ny = normal
    vx, vy, w = speeds
    inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
    speed = (vx - w * ry) * ny - (vy + w * rx) * nx  # along the tangent (ny, -nx)
    old = slot[tangent_impulse * LANES + lane]
    new = old - slot[tangent_mass * LANES + lane] * speed
    new = limit if new > limit else new
    new = -limit if new < -limit else new
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
        inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
        nx, ny = pair(slot, at.NORMAL_X, lane)
        rx, ry = pair(slot, at.ARM_1_X, lane)
        old = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        limit = slot[at.SLOT_FRICTION * LANES + lane] * old
        v = velocity(body, lane, ONLY)
        vx, vy, w = _friction(slot, lane, at.TANGENT_IMPULSE_1, at.TANGENT_MASS_1, limit, (rx, ry), (nx, ny), v)
        speed = (vx - w * ry) * nx + (vy + w * rx) * ny
        new = old - slot[at.NORMAL_MASS_1 * LANES + lane] * speed
        new = new if new > ZERO else ZERO
        px = (new - old) * nx
        py = (new - old) * ny
        slot[at.NORMAL_IMPULSE_1 * LANES + lane] = new
        v = vx + inv_mass * px, vy + inv_mass * py, w + inv_inertia * (rx * py - ry * px)
        set_velocity(body, lane, ONLY, v)


@njit(**KERNEL)
def solve_velocity(body, slot):
    """Friction, then normal impulses of one slot (``SolveVelocityConstraints``)."""
    for lane in range(LANES):
        inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
        friction = slot[at.SLOT_FRICTION * LANES + lane]
        nx, ny = pair(slot, at.NORMAL_X, lane)
        r1x, r1y = pair(slot, at.ARM_1_X, lane)
        r2x, r2y = pair(slot, at.ARM_2_X, lane)
        a1 = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        paired = slot[at.PAIRED * LANES + lane] != ZERO
        old2 = slot[at.NORMAL_IMPULSE_2 * LANES + lane]
        a2 = old2 if paired else ZERO
        n = nx, ny
        v = velocity(body, lane, ONLY)
        v = _friction(slot, lane, at.TANGENT_IMPULSE_1, at.TANGENT_MASS_1, friction * a1, (r1x, r1y), n, v)
        vx, vy, w = v
        tangent_2 = slot[at.TANGENT_IMPULSE_2 * LANES + lane]
        ux, uy, uw = _friction(slot, lane, at.TANGENT_IMPULSE_2, at.TANGENT_MASS_2, friction * a2, (r2x, r2y), n, v)
        vx = ux if paired else vx
        vy = uy if paired else vy
        w = uw if paired else w
        slot[at.TANGENT_IMPULSE_2 * LANES + lane] = slot[at.TANGENT_IMPULSE_2 * LANES + lane] if paired else tangent_2

        v1 = (vx - w * r1y) * nx + (vy + w * r1x) * ny
        v2 = (vx - w * r2y) * nx + (vy + w * r2x) * ny
        nm1 = slot[at.NORMAL_MASS_1 * LANES + lane]
        nm2 = slot[at.NORMAL_MASS_2 * LANES + lane]
        k12 = slot[at.PAIR_K12 * LANES + lane]
        # one point
        single = a1 - nm1 * v1
        single = single if single > ZERO else ZERO
        # two points: cases none, second, first, both; the last that holds wins, so the order is Box2D's reversed
        b1 = v1 - (slot[at.PAIR_K11 * LANES + lane] * a1 + k12 * a2)
        b2 = v2 - (k12 * a1 + slot[at.PAIR_K22 * LANES + lane] * a2)
        none = (b1 >= ZERO) and (b2 >= ZERO)
        x1 = ZERO if none else a1
        x2 = ZERO if none else a2
        alone2 = -nm2 * b2
        second = (alone2 >= ZERO) and (k12 * alone2 + b1 >= ZERO)
        x1 = ZERO if second else x1
        x2 = alone2 if second else x2
        alone1 = -nm1 * b1
        first = (alone1 >= ZERO) and (k12 * alone1 + b2 >= ZERO)
        x1 = alone1 if first else x1
        x2 = ZERO if first else x2
        inv12 = slot[at.PAIR_INV12 * LANES + lane]
        both1 = -(slot[at.PAIR_INV11 * LANES + lane] * b1 + inv12 * b2)
        both2 = -(inv12 * b1 + slot[at.PAIR_INV22 * LANES + lane] * b2)
        both = (both1 >= ZERO) and (both2 >= ZERO)
        x1 = both1 if both else x1
        x2 = both2 if both else x2
        x1 = x1 if paired else single
        x2 = x2 if paired else a2
        p1x = (x1 - a1) * nx
        p1y = (x1 - a1) * ny
        p2x = (x2 - a2) * nx
        p2y = (x2 - a2) * ny
        slot[at.NORMAL_IMPULSE_1 * LANES + lane] = x1
        slot[at.NORMAL_IMPULSE_2 * LANES + lane] = x2 if paired else old2
        w = w + inv_inertia * ((r1x * p1y - r1y * p1x) + (r2x * p2y - r2y * p2x))
        set_velocity(body, lane, ONLY, (vx + inv_mass * (p1x + p2x), vy + inv_mass * (p1y + p2y), w))


@njit(**INLINE)
def _solve_point(slot, lane, point, active, baumgarte, x, y, angle):
    """Pushes the body out along the normal at one point; returns its new pose and the previous separation (m)."""
    face_b = slot[at.FACE_B * LANES + lane] != ZERO
    inv_mass, inv_inertia = pair(slot, at.SLOT_INV_MASS, lane)
    local_normal, local_point = pair(slot, at.LOCAL_NORMAL_X, lane), pair(slot, at.LOCAL_POINT_X, lane)
    local = pair(slot, point, lane)
    sine, cosine = sin_cos(angle)
    pose = pose_of((cosine, sine), (x, y), pair(slot, at.SLOT_CENTER_X, lane))
    qx, qy = either(face_b, local, placed(pose, local))
    nx, ny = either(face_b, turned((cosine, sine), local_normal), local_normal)
    px, py = either(face_b, placed(pose, local_point), local_point)
    separation = (((qx - px) * nx + (qy - py) * ny) - SKIN) - SKIN
    nx = -nx if face_b else nx
    ny = -ny if face_b else ny
    rx = qx - x
    ry = qy - y
    correction = baumgarte * (separation + LINEAR_SLOP)
    correction = ZERO if correction > ZERO else correction
    correction = -MAX_CORRECTION if correction < -MAX_CORRECTION else correction
    arm = rx * ny - ry * nx
    impulse = -correction / (inv_mass + (inv_inertia * arm) * arm)
    px = impulse * nx
    py = impulse * ny
    return (
        x + inv_mass * px if active else x,
        y + inv_mass * py if active else y,
        angle + inv_inertia * (rx * py - ry * px) if active else angle,
        separation if active else ZERO,
    )


@njit(**INLINE)
def _solve_points(body, slot, lane, penetration, frozen, baumgarte, two):
    """Pushes the body out at its first point, and with ``two`` at the second."""
    old = center_and_angle(body, lane, ONLY)
    points = slot[at.POINTS * LANES + lane]
    deepest = penetration[lane]
    x, y, a, s = _solve_point(slot, lane, at.POINT_1_X, points > ZERO, baumgarte, old[0], old[1], old[2])
    deepest = s if s < deepest else deepest
    if two:
        x, y, a, s = _solve_point(slot, lane, at.POINT_2_X, points > ONE, baumgarte, x, y, a)
        deepest = s if s < deepest else deepest
    penetration[lane] = deepest
    set_center_and_angle(body, lane, ONLY, old, (x, y, a), frozen[lane] != ZERO)


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
