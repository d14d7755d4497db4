"""Revolute joints: motor, limit and pin, by sequential impulses over all lanes of a block.

The method is Catto's ("Iterative Dynamics with Temporal Coherence", 2005; b2RevoluteJoint.cpp). With bodies ``A`` and
``B``, ``r`` the arms from the centers of mass to the pin, and ``m``, ``i`` inverse masses and inertias, the velocity
error of pin and angle is

    C' = (v_B + w_B x r_B - v_A - w_A x r_A,  w_B - w_A)

and the impulse that removes it is ``-K^-1 C'`` with K the symmetric 3x3 matrix of ``prepare``. A joint at its limit
takes the angular row only while the limit pushes; otherwise the 2x2 block of the pin is solved alone.

Each function treats one joint in one lane. A family of worlds loops over lanes, and over its joints in the order in
which Box2D's island collects them; offsets are constants there. ``joint`` and ``work`` are where the fields of the
joint begin, ``a`` and ``b`` the numbers of its bodies, a ``mass`` is ``(inverse mass, inverse inertia)``, an ``anchor``
the pin in a body's frame from its center of mass (m), ``limits`` is lower, upper and reference angle (rad).

Order of operations and association are Box2D's, because float32 rounding depends on them. Impulses are kept with the
sign that Box2D gives them; the locals ``push_*`` are their negatives, which saves sign flips and rounds the same.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.lanes import pair, set_pair, set_triple, set_velocity, triple, velocity
from gym_dr.envs.box2d.solver.layout import BODY, LANES, ONE, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import ANGULAR_SLOP, LINEAR_SLOP
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import clamped, either, times, turned

INFINITY = f32(np.inf)
MAX_ANGULAR_CORRECTION = f32(f32(8) / f32(180) * f32(3.14159265359))  # rad, b2_maxAngularCorrection
CONTACT_TOLERANCE = f32(f32(-3) * LINEAR_SLOP)  # m, deepest contact that counts as solved


@njit(**INLINE)
def prepare(block, lane, joint, work, a, b, mass_a, mass_b, anchor_a, anchor_b, limits):
    """Arms, matrix K with what is needed to invert it, and the state of the limit; then the warm start."""
    m_a, i_a = mass_a
    m_b, i_b = mass_b
    lower, upper, reference = limits
    ax, ay = turned(pair(block, a * BODY + at.COS, lane), anchor_a)
    bx, by = turned(pair(block, b * BODY + at.COS, lane), anchor_b)
    k11 = ((m_a + m_b) + (ay * ay) * i_a) + (by * by) * i_b
    k12 = (-ay * ax) * i_a - (by * bx) * i_b
    k13 = -ay * i_a - by * i_b
    k22 = ((m_a + m_b) + (ax * ax) * i_a) + (bx * bx) * i_b
    k23 = ax * i_a + bx * i_b
    k33 = i_a + i_b
    adj_x = k22 * k33 - k23 * k23
    adj_y = k23 * k13 - k12 * k33
    adj_z = k12 * k23 - k22 * k13

    angle = (block[(b * BODY + at.ANGLE) * LANES + lane] - block[(a * BODY + at.ANGLE) * LANES + lane]) - reference
    state = ONE if angle <= lower else (-ONE if angle >= upper else ZERO)
    same = (state == block[(joint + at.LIMIT_STATE) * LANES + lane]) and (state != ZERO)
    limit = block[(joint + at.LIMIT_IMPULSE) * LANES + lane]
    limit = limit if same else ZERO
    block[(joint + at.LIMIT_STATE) * LANES + lane] = state
    block[(joint + at.LIMIT_IMPULSE) * LANES + lane] = limit

    set_pair(block, work + at.ARM_A_X, lane, (ax, ay))
    set_pair(block, work + at.ARM_B_X, lane, (bx, by))
    set_triple(block, work + at.K11, lane, (k11, k12, k13))
    set_triple(block, work + at.K22, lane, (k22, k23, k33))
    set_triple(block, work + at.ADJ_X, lane, (adj_x, adj_y, adj_z))
    determinant3 = (k11 * adj_x + k12 * adj_y) + k13 * adj_z
    set_pair(block, work + at.INV_DET3, lane, (ONE / determinant3, ONE / (k11 * k22 - k12 * k12)))
    set_pair(block, work + at.THRESHOLD, lane, (ZERO if state != ZERO else INFINITY, ONE / k33))

    px, py = pair(block, joint + at.IMPULSE_X, lane)
    motor = block[(joint + at.MOTOR_IMPULSE) * LANES + lane]
    vx, vy, w = velocity(block, lane, a)
    turn = ((ax * py - ay * px) + motor) + limit
    set_velocity(block, lane, a, (vx - m_a * px, vy - m_a * py, w - i_a * turn))
    vx, vy, w = velocity(block, lane, b)
    turn = ((bx * py - by * px) + motor) + limit
    set_velocity(block, lane, b, (vx + m_b * px, vy + m_b * py, w + i_b * turn))


@njit(**INLINE)
def solve_velocity(block, lane, joint, work, mass_a, mass_b, drive, velocity_a, b):
    """One sequential impulse; takes and returns the velocity of body A, and updates that of body B.

    ``drive`` is the motor's speed (rad/s) and limit (N m s).
    """
    m_a, i_a = mass_a
    m_b, i_b = mass_b
    speed, torque_limit = drive
    vax, vay, wa = velocity_a
    vbx, vby, wb = velocity(block, lane, b)

    # motor: drive w_B - w_A to its speed, within its torque
    old = block[(joint + at.MOTOR_IMPULSE) * LANES + lane]
    new = old - block[(work + at.MOTOR_MASS) * LANES + lane] * ((wb - wa) - speed)
    new = clamped(new, -torque_limit, torque_limit)
    block[(joint + at.MOTOR_IMPULSE) * LANES + lane] = new
    wa = wa - i_a * (new - old)
    wb = wb + i_b * (new - old)

    # pin and limit
    ax, ay = pair(block, work + at.ARM_A_X, lane)
    bx, by = pair(block, work + at.ARM_B_X, lane)
    k11, k12, k13 = triple(block, work + at.K11, lane)
    k22, k23, k33 = triple(block, work + at.K22, lane)
    adj_x, adj_y, adj_z = triple(block, work + at.ADJ_X, lane)
    inv_det3, inv_det2 = pair(block, work + at.INV_DET3, lane)
    cx = ((vbx - wb * by) - vax) + wa * ay
    cy = ((vby + wb * bx) - vay) - wa * ax
    cz = wb - wa
    # K^-1 C' by Cramer's rule: C' and its cross products with the columns of K
    full_x = inv_det3 * ((cx * adj_x + cy * adj_y) + cz * adj_z)
    full_y = inv_det3 * ((k11 * (cy * k33 - cz * k23) + k12 * (cz * k13 - cx * k33)) + k13 * (cx * k23 - cy * k13))
    full_z = inv_det3 * ((k11 * (k22 * cz - k23 * cy) + k12 * (k23 * cx - k12 * cz)) + k13 * (k12 * cy - k22 * cx))
    # the same without the limit, whose accumulated impulse is taken back
    limit = block[(joint + at.LIMIT_IMPULSE) * LANES + lane]
    gx = cx - limit * k13
    gy = cy - limit * k23
    pin_x = inv_det2 * (k22 * gx - k12 * gy)
    pin_y = inv_det2 * (k11 * gy - k12 * gx)
    new_limit = limit - full_z
    # The limit may only push. THRESHOLD is 0 at a limit and infinite away from it, so that one comparison decides.
    state = block[(joint + at.LIMIT_STATE) * LANES + lane]
    pushes = state * new_limit >= block[(work + at.THRESHOLD) * LANES + lane]
    push_x, push_y = either(pushes, (full_x, full_y), (pin_x, pin_y))
    push_z = full_z if pushes else limit
    block[(joint + at.LIMIT_IMPULSE) * LANES + lane] = new_limit if pushes else ZERO
    impulse_x, impulse_y = pair(block, joint + at.IMPULSE_X, lane)
    set_pair(block, joint + at.IMPULSE_X, lane, (impulse_x - push_x, impulse_y - push_y))
    turn = (bx * push_y - by * push_x) + push_z
    set_velocity(block, lane, b, (vbx - m_b * push_x, vby - m_b * push_y, wb - i_b * turn))
    return vax + m_a * push_x, vay + m_a * push_y, wa + i_a * ((ax * push_y - ay * push_x) + push_z)


@njit(**INLINE)
def solve_position(block, lane, joint, mass_a, mass_b, anchor_a, anchor_b, limits, place_a, place_b):
    """Moves and turns both bodies to satisfy limit and pin; returns their poses, and whether limit and pin held."""
    m_a, i_a = mass_a
    m_b, i_b = mass_b
    lower, upper, reference = limits
    x_a, y_a, angle_a = place_a
    x_b, y_b, angle_b = place_b
    state = block[(joint + at.LIMIT_STATE) * LANES + lane]
    # limit
    angle = (angle_b - angle_a) - reference
    low = clamped((angle - lower) + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, ZERO)
    high = clamped((angle - upper) - ANGULAR_SLOP, ZERO, MAX_ANGULAR_CORRECTION)
    correction = low if state > ZERO else high
    angular_error = -(angle - lower) if state > ZERO else angle - upper
    correction = correction if state != ZERO else ZERO
    angular_error = angular_error if state != ZERO else ZERO
    turn = -(ONE / (i_a + i_b)) * correction
    angle_a = angle_a - i_a * turn
    angle_b = angle_b + i_b * turn
    # pin
    sin_a, cos_a = sin_cos(angle_a)
    sin_b, cos_b = sin_cos(angle_b)
    ax, ay = turned((cos_a, sin_a), anchor_a)
    bx, by = turned((cos_b, sin_b), anchor_b)
    cx = ((x_b + bx) - x_a) - ax
    cy = ((y_b + by) - y_a) - ay
    position_error = math.sqrt(cx * cx + cy * cy)
    k11 = ((m_a + m_b) + (i_a * ay) * ay) + (i_b * by) * by
    k12 = (-i_a * ax) * ay - (i_b * bx) * by
    k22 = ((m_a + m_b) + (i_a * ax) * ax) + (i_b * bx) * bx
    inv_det = ONE / (k11 * k22 - k12 * k12)
    px, py = times(inv_det, (k22 * cx - k12 * cy, k11 * cy - k12 * cx))
    okay = (position_error <= LINEAR_SLOP) and (angular_error <= ANGULAR_SLOP)
    new_a = x_a + m_a * px, y_a + m_a * py, angle_a + i_a * (ax * py - ay * px)
    new_b = x_b - m_b * px, y_b - m_b * py, angle_b - i_b * (bx * py - by * px)
    return new_a, new_b, okay


@njit(**INLINE)
def mark_solved(block, lane, world, okay):
    """Sets SOLVED if joints (``okay``) and contacts are within tolerance, and returns 1 where it is set, else 0.

    ``world`` is where the fields of the world begin.
    """
    solved = block[(world + at.SOLVED) * LANES + lane] != ZERO
    now = solved or (okay and block[(world + at.PENETRATION) * LANES + lane] >= CONTACT_TOLERANCE)
    block[(world + at.SOLVED) * LANES + lane] = ONE if now else ZERO
    return 1 if now else 0
