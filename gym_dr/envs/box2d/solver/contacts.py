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

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import LANES
from gym_dr.envs.box2d.solver.shapes import LINEAR_SLOP, SKIN
from gym_dr.envs.box2d.solver.trigonometry import sin_cos

f32 = np.float32
ZERO, ONE, HALF = f32(0), f32(1), f32(0.5)
MAX_CONDITION = f32(1000)  # of K; a pair of points closer to singular is solved as one point
PAIR, TWO = np.int64(1), np.int64(2)
MAX_CORRECTION = f32(0.2)  # m, b2_maxLinearCorrection


@njit(**INLINE)
def _arm(face_b, normal, point, local, rotation, origin, center):
    """From the center of mass to the middle of the two skins at one contact point (``b2WorldManifold``)."""
    nx, ny = normal
    px, py = point
    lx, ly = local
    cosine, sine = rotation
    origin_x, origin_y = origin
    center_x, center_y = center
    qx = (cosine * lx - sine * ly) + origin_x
    qy = (sine * lx + cosine * ly) + origin_y
    qx = lx if face_b else qx
    qy = ly if face_b else qy
    t = SKIN - ((qx - px) * nx + (qy - py) * ny)
    on_face_x = qx + t * nx
    on_face_y = qy + t * ny
    on_other_x = qx - SKIN * nx
    on_other_y = qy - SKIN * ny
    return HALF * (on_face_x + on_other_x) - center_x, HALF * (on_face_y + on_other_y) - center_y


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
        inv_mass = slot[at.SLOT_INV_MASS * LANES + lane]
        inv_inertia = slot[at.SLOT_INV_INERTIA * LANES + lane]
        local_x = slot[at.SLOT_CENTER_X * LANES + lane]
        local_y = slot[at.SLOT_CENTER_Y * LANES + lane]
        center_x = body[at.CENTER_X * LANES + lane]
        center_y = body[at.CENTER_Y * LANES + lane]
        cosine = body[at.COS * LANES + lane]
        sine = body[at.SIN * LANES + lane]
        origin_x = center_x - (cosine * local_x - sine * local_y)
        origin_y = center_y - (sine * local_x + cosine * local_y)
        lnx = slot[at.LOCAL_NORMAL_X * LANES + lane]
        lny = slot[at.LOCAL_NORMAL_Y * LANES + lane]
        lpx = slot[at.LOCAL_POINT_X * LANES + lane]
        lpy = slot[at.LOCAL_POINT_Y * LANES + lane]
        nx = cosine * lnx - sine * lny
        ny = sine * lnx + cosine * lny
        px = (cosine * lpx - sine * lpy) + origin_x
        py = (sine * lpx + cosine * lpy) + origin_y
        nx = nx if face_b else lnx
        ny = ny if face_b else lny
        px = px if face_b else lpx
        py = py if face_b else lpy
        q1 = slot[at.POINT_1_X * LANES + lane], slot[at.POINT_1_Y * LANES + lane]
        q2 = slot[at.POINT_2_X * LANES + lane], slot[at.POINT_2_Y * LANES + lane]
        pose = (cosine, sine), (origin_x, origin_y), (center_x, center_y)
        r1x, r1y = _arm(face_b, (nx, ny), (px, py), q1, *pose)
        r2x, r2y = _arm(face_b, (nx, ny), (px, py), q2, *pose)
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


@njit(**KERNEL)
def warm_start(body, slot):
    """Applies the impulses of the last step (``WarmStart``)."""
    for lane in range(LANES):
        inv_mass = slot[at.SLOT_INV_MASS * LANES + lane]
        inv_inertia = slot[at.SLOT_INV_INERTIA * LANES + lane]
        nx = slot[at.NORMAL_X * LANES + lane]
        ny = slot[at.NORMAL_Y * LANES + lane]
        paired = slot[at.PAIRED * LANES + lane] != ZERO
        normal = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        tangent = slot[at.TANGENT_IMPULSE_1 * LANES + lane]
        px = normal * nx + tangent * ny
        py = normal * ny - tangent * nx
        w = body[at.OMEGA * LANES + lane]
        w = w + inv_inertia * (slot[at.ARM_1_X * LANES + lane] * py - slot[at.ARM_1_Y * LANES + lane] * px)
        vx = body[at.VELOCITY_X * LANES + lane] + inv_mass * px
        vy = body[at.VELOCITY_Y * LANES + lane] + inv_mass * py
        normal = slot[at.NORMAL_IMPULSE_2 * LANES + lane]
        tangent = slot[at.TANGENT_IMPULSE_2 * LANES + lane]
        normal = normal if paired else ZERO
        tangent = tangent if paired else ZERO
        px = normal * nx + tangent * ny
        py = normal * ny - tangent * nx
        w = w + inv_inertia * (slot[at.ARM_2_X * LANES + lane] * py - slot[at.ARM_2_Y * LANES + lane] * px)
        body[at.VELOCITY_X * LANES + lane] = vx + inv_mass * px
        body[at.VELOCITY_Y * LANES + lane] = vy + inv_mass * py
        body[at.OMEGA * LANES + lane] = w


@njit(**INLINE)
def _friction(slot, lane, tangent_impulse, tangent_mass, limit, arm, normal, velocity):
    """Clamped friction at one point; returns the body's new velocity."""
    rx, ry = arm
    nx, ny = normal
    vx, vy, w = velocity
    inv_mass = slot[at.SLOT_INV_MASS * LANES + lane]
    inv_inertia = slot[at.SLOT_INV_INERTIA * LANES + lane]
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
        inv_mass = slot[at.SLOT_INV_MASS * LANES + lane]
        inv_inertia = slot[at.SLOT_INV_INERTIA * LANES + lane]
        nx = slot[at.NORMAL_X * LANES + lane]
        ny = slot[at.NORMAL_Y * LANES + lane]
        rx = slot[at.ARM_1_X * LANES + lane]
        ry = slot[at.ARM_1_Y * LANES + lane]
        old = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        vx = body[at.VELOCITY_X * LANES + lane]
        vy = body[at.VELOCITY_Y * LANES + lane]
        w = body[at.OMEGA * LANES + lane]
        limit = slot[at.SLOT_FRICTION * LANES + lane] * old
        v = vx, vy, w
        vx, vy, w = _friction(slot, lane, at.TANGENT_IMPULSE_1, at.TANGENT_MASS_1, limit, (rx, ry), (nx, ny), v)
        speed = (vx - w * ry) * nx + (vy + w * rx) * ny
        new = old - slot[at.NORMAL_MASS_1 * LANES + lane] * speed
        new = new if new > ZERO else ZERO
        px = (new - old) * nx
        py = (new - old) * ny
        slot[at.NORMAL_IMPULSE_1 * LANES + lane] = new
        body[at.VELOCITY_X * LANES + lane] = vx + inv_mass * px
        body[at.VELOCITY_Y * LANES + lane] = vy + inv_mass * py
        body[at.OMEGA * LANES + lane] = w + inv_inertia * (rx * py - ry * px)


@njit(**KERNEL)
def solve_velocity(body, slot):
    """Friction, then normal impulses of one slot (``SolveVelocityConstraints``)."""
    for lane in range(LANES):
        inv_mass = slot[at.SLOT_INV_MASS * LANES + lane]
        inv_inertia = slot[at.SLOT_INV_INERTIA * LANES + lane]
        friction = slot[at.SLOT_FRICTION * LANES + lane]
        nx = slot[at.NORMAL_X * LANES + lane]
        ny = slot[at.NORMAL_Y * LANES + lane]
        r1x = slot[at.ARM_1_X * LANES + lane]
        r1y = slot[at.ARM_1_Y * LANES + lane]
        r2x = slot[at.ARM_2_X * LANES + lane]
        r2y = slot[at.ARM_2_Y * LANES + lane]
        a1 = slot[at.NORMAL_IMPULSE_1 * LANES + lane]
        paired = slot[at.PAIRED * LANES + lane] != ZERO
        old2 = slot[at.NORMAL_IMPULSE_2 * LANES + lane]
        a2 = old2 if paired else ZERO
        vx = body[at.VELOCITY_X * LANES + lane]
        vy = body[at.VELOCITY_Y * LANES + lane]
        w = body[at.OMEGA * LANES + lane]
        n = nx, ny
        v = vx, vy, w
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
        body[at.VELOCITY_X * LANES + lane] = vx + inv_mass * (p1x + p2x)
        body[at.VELOCITY_Y * LANES + lane] = vy + inv_mass * (p1y + p2y)
        body[at.OMEGA * LANES + lane] = w + inv_inertia * ((r1x * p1y - r1y * p1x) + (r2x * p2y - r2y * p2x))


@njit(**INLINE)
def _solve_point(slot, lane, point_x, point_y, active, baumgarte, x, y, angle):
    """Pushes the body out along the normal at one point; returns its new pose and the previous separation (m)."""
    face_b = slot[at.FACE_B * LANES + lane] != ZERO
    inv_mass = slot[at.SLOT_INV_MASS * LANES + lane]
    inv_inertia = slot[at.SLOT_INV_INERTIA * LANES + lane]
    local_x = slot[at.SLOT_CENTER_X * LANES + lane]
    local_y = slot[at.SLOT_CENTER_Y * LANES + lane]
    lnx = slot[at.LOCAL_NORMAL_X * LANES + lane]
    lny = slot[at.LOCAL_NORMAL_Y * LANES + lane]
    lpx = slot[at.LOCAL_POINT_X * LANES + lane]
    lpy = slot[at.LOCAL_POINT_Y * LANES + lane]
    lqx = slot[point_x * LANES + lane]
    lqy = slot[point_y * LANES + lane]
    sine, cosine = sin_cos(angle)
    origin_x = x - (cosine * local_x - sine * local_y)
    origin_y = y - (sine * local_x + cosine * local_y)
    qx = (cosine * lqx - sine * lqy) + origin_x
    qy = (sine * lqx + cosine * lqy) + origin_y
    nx = cosine * lnx - sine * lny
    ny = sine * lnx + cosine * lny
    px = (cosine * lpx - sine * lpy) + origin_x
    py = (sine * lpx + cosine * lpy) + origin_y
    qx = lqx if face_b else qx
    qy = lqy if face_b else qy
    nx = nx if face_b else lnx
    ny = ny if face_b else lny
    px = px if face_b else lpx
    py = py if face_b else lpy
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
    x0 = body[at.CENTER_X * LANES + lane]
    y0 = body[at.CENTER_Y * LANES + lane]
    a0 = body[at.ANGLE * LANES + lane]
    points = slot[at.POINTS * LANES + lane]
    deepest = penetration[lane]
    x, y, a, s = _solve_point(slot, lane, at.POINT_1_X, at.POINT_1_Y, points > ZERO, baumgarte, x0, y0, a0)
    deepest = s if s < deepest else deepest
    if two:
        x, y, a, s = _solve_point(slot, lane, at.POINT_2_X, at.POINT_2_Y, points > ONE, baumgarte, x, y, a)
        deepest = s if s < deepest else deepest
    penetration[lane] = deepest
    done = frozen[lane] != ZERO
    body[at.CENTER_X * LANES + lane] = x0 if done else x
    body[at.CENTER_Y * LANES + lane] = y0 if done else y
    body[at.ANGLE * LANES + lane] = a0 if done else a


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
