"""The two revolute joints that hold the legs: motor, limit and pin, by sequential impulses over all lanes of a block.

The method is Catto's ("Iterative Dynamics with Temporal Coherence", 2005; b2RevoluteJoint.cpp). With ``A`` the lander,
``B`` a leg, ``r`` the arms from the centres of mass to the pin, and ``m``, ``i`` inverse masses and inertias, the
velocity error of pin and angle is

    C' = (v_B + w_B x r_B - v_A - w_A x r_A,  w_B - w_A)

and the impulse that removes it is ``-K^-1 C'`` with K the symmetric 3x3 matrix of ``prepare``. A joint at its limit
takes the angular row only while the limit pushes; otherwise the 2x2 block of the pin is solved alone.
Box2D solves the joint of leg 1 before that of leg 0.

Order of operations and association are Box2D's, because float32 rounding depends on them. Impulses are kept with the
sign that Box2D gives them; the locals ``push_*`` are their negatives, which saves sign flips and rounds the same.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import BODY, LANES, LEG_0, LEG_1
from gym_dr.envs.box2d.lunar_lander.native.shapes import ANGULAR_SLOP, LEG_INV_INERTIA, LEG_INV_MASS, LINEAR_SLOP
from gym_dr.envs.box2d.lunar_lander.native.trigonometry import sin_cos

f32 = np.float32
ZERO, ONE = f32(0), f32(1)
INFINITY = f32(np.inf)

# Of each joint: where it sits on its leg (m), limits (rad), angle of the leg when built (rad), motor speed (rad/s).
ANCHOR_Y = f32(lander.LEG_DOWN / lander.SCALE)
ANCHOR_X_0, ANCHOR_X_1 = f32(-lander.LEG_AWAY / lander.SCALE), f32(lander.LEG_AWAY / lander.SCALE)
LOWER_0, UPPER_0 = f32(lander.LEG_ANGLE_MAX - lander.LEG_ANGLE_TRAVEL), f32(lander.LEG_ANGLE_MAX)
LOWER_1, UPPER_1 = f32(-lander.LEG_ANGLE_MAX), f32(-lander.LEG_ANGLE_MAX + lander.LEG_ANGLE_TRAVEL)
REFERENCE_0, REFERENCE_1 = f32(-lander.LEG_TILT), f32(lander.LEG_TILT)
SPEED_0, SPEED_1 = f32(-lander.LEG_MOTOR_SPEED), f32(lander.LEG_MOTOR_SPEED)

MAX_ANGULAR_CORRECTION = f32(f32(8) / f32(180) * f32(3.14159265359))  # rad, b2_maxAngularCorrection
CONTACT_TOLERANCE = f32(f32(-3) * LINEAR_SLOP)  # m, deepest contact that counts as solved


@njit(**INLINE)
def _prepare(block, lane, joint, work, leg, anchor_x, lower, upper, reference):
    """Arm, matrix K with what is needed to invert it, and the state of the limit; then the warm start."""
    cosine = block[(leg * BODY + at.COS) * LANES + lane]
    sine = block[(leg * BODY + at.SIN) * LANES + lane]
    inv_mass = block[at.INV_MASS * LANES + lane]
    inv_inertia = block[at.INV_INERTIA * LANES + lane]
    ax = block[at.ARM_A_X * LANES + lane]
    ay = block[at.ARM_A_Y * LANES + lane]
    k33 = block[at.INERTIA_SUM * LANES + lane]
    bx = cosine * anchor_x - sine * ANCHOR_Y
    by = sine * anchor_x + cosine * ANCHOR_Y
    k11 = ((inv_mass + LEG_INV_MASS) + (ay * ay) * inv_inertia) + (by * by) * LEG_INV_INERTIA
    k12 = (-ay * ax) * inv_inertia - (by * bx) * LEG_INV_INERTIA
    k13 = -ay * inv_inertia - by * LEG_INV_INERTIA
    k22 = ((inv_mass + LEG_INV_MASS) + (ax * ax) * inv_inertia) + (bx * bx) * LEG_INV_INERTIA
    k23 = ax * inv_inertia + bx * LEG_INV_INERTIA
    adj_x = k22 * k33 - k23 * k23
    adj_y = k23 * k13 - k12 * k33
    adj_z = k12 * k23 - k22 * k13

    angle = (block[(leg * BODY + at.ANGLE) * LANES + lane] - block[at.ANGLE * LANES + lane]) - reference
    state = ONE if angle <= lower else (-ONE if angle >= upper else ZERO)
    same = (state == block[(joint + at.LIMIT_STATE) * LANES + lane]) and (state != ZERO)
    limit = block[(joint + at.LIMIT_IMPULSE) * LANES + lane]
    limit = limit if same else ZERO
    block[(joint + at.LIMIT_STATE) * LANES + lane] = state
    block[(joint + at.LIMIT_IMPULSE) * LANES + lane] = limit

    block[(work + at.ARM_B_X) * LANES + lane] = bx
    block[(work + at.ARM_B_Y) * LANES + lane] = by
    block[(work + at.K11) * LANES + lane] = k11
    block[(work + at.K12) * LANES + lane] = k12
    block[(work + at.K13) * LANES + lane] = k13
    block[(work + at.K22) * LANES + lane] = k22
    block[(work + at.K23) * LANES + lane] = k23
    block[(work + at.ADJ_X) * LANES + lane] = adj_x
    block[(work + at.ADJ_Y) * LANES + lane] = adj_y
    block[(work + at.ADJ_Z) * LANES + lane] = adj_z
    block[(work + at.INV_DET3) * LANES + lane] = ONE / ((k11 * adj_x + k12 * adj_y) + k13 * adj_z)
    block[(work + at.INV_DET2) * LANES + lane] = ONE / (k11 * k22 - k12 * k12)
    block[(work + at.THRESHOLD) * LANES + lane] = ZERO if state != ZERO else INFINITY

    px = block[(joint + at.IMPULSE_X) * LANES + lane]
    py = block[(joint + at.IMPULSE_Y) * LANES + lane]
    motor = block[(joint + at.MOTOR_IMPULSE) * LANES + lane]
    block[at.VELOCITY_X * LANES + lane] -= inv_mass * px
    block[at.VELOCITY_Y * LANES + lane] -= inv_mass * py
    block[at.OMEGA * LANES + lane] -= inv_inertia * (((ax * py - ay * px) + motor) + limit)
    block[(leg * BODY + at.VELOCITY_X) * LANES + lane] += LEG_INV_MASS * px
    block[(leg * BODY + at.VELOCITY_Y) * LANES + lane] += LEG_INV_MASS * py
    block[(leg * BODY + at.OMEGA) * LANES + lane] += LEG_INV_INERTIA * (((bx * py - by * px) + motor) + limit)


@njit(**KERNEL)
def prepare(block):
    """``b2RevoluteJoint::InitVelocityConstraints`` of both joints of every lane."""
    for lane in range(LANES):
        inv_inertia = block[at.INV_INERTIA * LANES + lane]
        center_y = block[at.MASS_CENTER_Y * LANES + lane]
        block[at.ARM_A_X * LANES + lane] = block[at.SIN * LANES + lane] * center_y
        block[at.ARM_A_Y * LANES + lane] = -(block[at.COS * LANES + lane] * center_y)
        block[at.INERTIA_SUM * LANES + lane] = inv_inertia + LEG_INV_INERTIA
        block[at.MOTOR_MASS * LANES + lane] = ONE / (inv_inertia + LEG_INV_INERTIA)
        _prepare(block, lane, at.JOINT_1, at.WORK_1, LEG_1, ANCHOR_X_1, LOWER_1, UPPER_1, REFERENCE_1)
        _prepare(block, lane, at.JOINT_0, at.WORK_0, LEG_0, ANCHOR_X_0, LOWER_0, UPPER_0, REFERENCE_0)


@njit(**INLINE)
def _solve_velocity(block, lane, joint, work, leg, speed, vax, vay, wa):
    """One sequential impulse of one joint; returns the lander's new velocity (x, y, angular)."""
    inv_mass = block[at.INV_MASS * LANES + lane]
    inv_inertia = block[at.INV_INERTIA * LANES + lane]
    ax = block[at.ARM_A_X * LANES + lane]
    ay = block[at.ARM_A_Y * LANES + lane]
    k33 = block[at.INERTIA_SUM * LANES + lane]
    vbx = block[(leg * BODY + at.VELOCITY_X) * LANES + lane]
    vby = block[(leg * BODY + at.VELOCITY_Y) * LANES + lane]
    wb = block[(leg * BODY + at.OMEGA) * LANES + lane]

    # motor: drive w_B - w_A to its speed, within its torque
    torque_limit = block[at.MOTOR_LIMIT * LANES + lane]
    old = block[(joint + at.MOTOR_IMPULSE) * LANES + lane]
    new = old - block[at.MOTOR_MASS * LANES + lane] * ((wb - wa) - speed)
    new = torque_limit if new > torque_limit else new
    new = -torque_limit if new < -torque_limit else new
    block[(joint + at.MOTOR_IMPULSE) * LANES + lane] = new
    wa = wa - inv_inertia * (new - old)
    wb = wb + LEG_INV_INERTIA * (new - old)

    # pin and limit
    bx = block[(work + at.ARM_B_X) * LANES + lane]
    by = block[(work + at.ARM_B_Y) * LANES + lane]
    k11 = block[(work + at.K11) * LANES + lane]
    k12 = block[(work + at.K12) * LANES + lane]
    k13 = block[(work + at.K13) * LANES + lane]
    k22 = block[(work + at.K22) * LANES + lane]
    k23 = block[(work + at.K23) * LANES + lane]
    inv_det3 = block[(work + at.INV_DET3) * LANES + lane]
    inv_det2 = block[(work + at.INV_DET2) * LANES + lane]
    adj_x = block[(work + at.ADJ_X) * LANES + lane]
    adj_y = block[(work + at.ADJ_Y) * LANES + lane]
    adj_z = block[(work + at.ADJ_Z) * LANES + lane]
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
    push_x = full_x if pushes else pin_x
    push_y = full_y if pushes else pin_y
    push_z = full_z if pushes else limit
    block[(joint + at.LIMIT_IMPULSE) * LANES + lane] = new_limit if pushes else ZERO
    block[(joint + at.IMPULSE_X) * LANES + lane] -= push_x
    block[(joint + at.IMPULSE_Y) * LANES + lane] -= push_y
    block[(leg * BODY + at.VELOCITY_X) * LANES + lane] = vbx - LEG_INV_MASS * push_x
    block[(leg * BODY + at.VELOCITY_Y) * LANES + lane] = vby - LEG_INV_MASS * push_y
    block[(leg * BODY + at.OMEGA) * LANES + lane] = wb - LEG_INV_INERTIA * ((bx * push_y - by * push_x) + push_z)
    return (
        vax + inv_mass * push_x,
        vay + inv_mass * push_y,
        wa + inv_inertia * ((ax * push_y - ay * push_x) + push_z),
    )


@njit(**KERNEL)
def solve_velocities(block, iterations):
    """``b2RevoluteJoint::SolveVelocityConstraints`` of both joints of every lane, ``iterations`` times."""
    for _ in range(iterations):
        for lane in range(LANES):
            vx = block[at.VELOCITY_X * LANES + lane]
            vy = block[at.VELOCITY_Y * LANES + lane]
            w = block[at.OMEGA * LANES + lane]
            vx, vy, w = _solve_velocity(block, lane, at.JOINT_1, at.WORK_1, LEG_1, SPEED_1, vx, vy, w)
            vx, vy, w = _solve_velocity(block, lane, at.JOINT_0, at.WORK_0, LEG_0, SPEED_0, vx, vy, w)
            block[at.VELOCITY_X * LANES + lane] = vx
            block[at.VELOCITY_Y * LANES + lane] = vy
            block[at.OMEGA * LANES + lane] = w


@njit(**KERNEL)
def solve_pair(blocks, iterations):
    """The same for two blocks at once, which hides the latency of each one's chain of operations behind the other's."""
    for _ in range(iterations):
        for lane in range(LANES):
            other = lane + at.BLOCK * LANES
            vx = blocks[at.VELOCITY_X * LANES + lane]
            vy = blocks[at.VELOCITY_Y * LANES + lane]
            w = blocks[at.OMEGA * LANES + lane]
            ux = blocks[at.VELOCITY_X * LANES + other]
            uy = blocks[at.VELOCITY_Y * LANES + other]
            uw = blocks[at.OMEGA * LANES + other]
            vx, vy, w = _solve_velocity(blocks, lane, at.JOINT_1, at.WORK_1, LEG_1, SPEED_1, vx, vy, w)
            ux, uy, uw = _solve_velocity(blocks, other, at.JOINT_1, at.WORK_1, LEG_1, SPEED_1, ux, uy, uw)
            vx, vy, w = _solve_velocity(blocks, lane, at.JOINT_0, at.WORK_0, LEG_0, SPEED_0, vx, vy, w)
            ux, uy, uw = _solve_velocity(blocks, other, at.JOINT_0, at.WORK_0, LEG_0, SPEED_0, ux, uy, uw)
            blocks[at.VELOCITY_X * LANES + lane] = vx
            blocks[at.VELOCITY_Y * LANES + lane] = vy
            blocks[at.OMEGA * LANES + lane] = w
            blocks[at.VELOCITY_X * LANES + other] = ux
            blocks[at.VELOCITY_Y * LANES + other] = uy
            blocks[at.OMEGA * LANES + other] = uw


@njit(**INLINE)
def _solve_position(block, lane, joint, leg, anchor_x, limits, pose):
    """Move and turn lander and leg to where limit and pin hold; returns the lander's pose and whether they did."""
    lower, upper, reference = limits
    ax_, ay_, aa = pose
    inv_mass = block[at.INV_MASS * LANES + lane]
    inv_inertia = block[at.INV_INERTIA * LANES + lane]
    center_y = block[at.MASS_CENTER_Y * LANES + lane]
    state = block[(joint + at.LIMIT_STATE) * LANES + lane]
    solved = block[at.SOLVED * LANES + lane] != ZERO
    cbx = block[(leg * BODY + at.CENTER_X) * LANES + lane]
    cby = block[(leg * BODY + at.CENTER_Y) * LANES + lane]
    ab = block[(leg * BODY + at.ANGLE) * LANES + lane]
    # limit
    angle = (ab - aa) - reference
    low = angle - lower
    low_error = -low
    low = low + ANGULAR_SLOP
    low = ZERO if low > ZERO else low
    low = -MAX_ANGULAR_CORRECTION if low < -MAX_ANGULAR_CORRECTION else low
    high = angle - upper
    high_error = high
    high = high - ANGULAR_SLOP
    high = MAX_ANGULAR_CORRECTION if high > MAX_ANGULAR_CORRECTION else high
    high = ZERO if high < ZERO else high
    correction = low if state > ZERO else high
    angular_error = low_error if state > ZERO else high_error
    correction = correction if state != ZERO else ZERO
    angular_error = angular_error if state != ZERO else ZERO
    turn = -block[at.MOTOR_MASS * LANES + lane] * correction
    new_aa = aa - inv_inertia * turn
    new_ab = ab + LEG_INV_INERTIA * turn
    # pin
    sin_a, cos_a = sin_cos(new_aa)
    sin_b, cos_b = sin_cos(new_ab)
    ax = sin_a * center_y
    ay = -(cos_a * center_y)
    bx = cos_b * anchor_x - sin_b * ANCHOR_Y
    by = sin_b * anchor_x + cos_b * ANCHOR_Y
    cx = ((cbx + bx) - ax_) - ax
    cy = ((cby + by) - ay_) - ay
    position_error = math.sqrt(cx * cx + cy * cy)
    k11 = ((inv_mass + LEG_INV_MASS) + (inv_inertia * ay) * ay) + (LEG_INV_INERTIA * by) * by
    k12 = (-inv_inertia * ax) * ay - (LEG_INV_INERTIA * bx) * by
    k22 = ((inv_mass + LEG_INV_MASS) + (inv_inertia * ax) * ax) + (LEG_INV_INERTIA * bx) * bx
    inv_det = ONE / (k11 * k22 - k12 * k12)
    px = inv_det * (k22 * cx - k12 * cy)
    py = inv_det * (k11 * cy - k12 * cx)
    block[(leg * BODY + at.CENTER_X) * LANES + lane] = cbx if solved else cbx - LEG_INV_MASS * px
    block[(leg * BODY + at.CENTER_Y) * LANES + lane] = cby if solved else cby - LEG_INV_MASS * py
    block[(leg * BODY + at.ANGLE) * LANES + lane] = ab if solved else new_ab - LEG_INV_INERTIA * (bx * py - by * px)
    okay = (position_error <= LINEAR_SLOP) and (angular_error <= ANGULAR_SLOP)
    return (ax_ + inv_mass * px, ay_ + inv_mass * py, new_aa + inv_inertia * (ax * py - ay * px)), okay


@njit(**KERNEL)
def solve_positions(block):
    """``b2RevoluteJoint::SolvePositionConstraints`` of every lane that is not solved yet; returns how many now are.

    A lane is solved once both joints and its contacts (PENETRATION) are within tolerance; it then keeps its pose, as
    Box2D leaves its loop.
    """
    count = 0
    for lane in range(LANES):
        solved = block[at.SOLVED * LANES + lane] != ZERO
        x0 = block[at.CENTER_X * LANES + lane]
        y0 = block[at.CENTER_Y * LANES + lane]
        a0 = block[at.ANGLE * LANES + lane]
        limits_1, limits_0 = (LOWER_1, UPPER_1, REFERENCE_1), (LOWER_0, UPPER_0, REFERENCE_0)
        pose, okay_1 = _solve_position(block, lane, at.JOINT_1, LEG_1, ANCHOR_X_1, limits_1, (x0, y0, a0))
        (x, y, a), okay_0 = _solve_position(block, lane, at.JOINT_0, LEG_0, ANCHOR_X_0, limits_0, pose)
        block[at.CENTER_X * LANES + lane] = x0 if solved else x
        block[at.CENTER_Y * LANES + lane] = y0 if solved else y
        block[at.ANGLE * LANES + lane] = a0 if solved else a
        okay = okay_0 and okay_1 and (block[at.PENETRATION * LANES + lane] >= CONTACT_TOLERANCE)
        now = solved or okay
        block[at.SOLVED * LANES + lane] = ONE if now else ZERO
        count += 1 if now else 0
    return count
