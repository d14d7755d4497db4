"""The joints of a walker: two hips and a knee in each leg, in Box2D's order, in the form that ``solver.island`` takes.

The island begins with the body that was made last, so joints are solved in the order knee 1, hip 1, hip 0, knee 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.native import layout as fields
from gym_dr.envs.box2d.bipedal_walker.native.layout import (
    HIP_0,
    HIP_1,
    HULL,
    KNEE_0,
    KNEE_1,
    LOWER_0,
    LOWER_1,
    UPPER_0,
    UPPER_1,
    WORK_HIP_0,
    WORK_HIP_1,
    WORK_KNEE_0,
    WORK_KNEE_1,
)
from gym_dr.envs.box2d.bipedal_walker.native.shapes import (
    HULL_COUNT,
    HULL_VERTICES,
    LEG_COUNT,
    LOWER_VERTICES,
    UPPER_VERTICES,
)
from gym_dr.envs.box2d.solver.broad_phase import update_lane
from gym_dr.envs.box2d.solver.island import Topology
from gym_dr.envs.box2d.solver.joints import mark_solved, prepare, solve_position, solve_velocity
from gym_dr.envs.box2d.solver.lanes import center_and_angle, pair, set_center_and_angle, set_velocity, velocity
from gym_dr.envs.box2d.solver.layout import LANES, ZERO, f32

# positions of the joints on the bodies (m), and angles between the bodies when built (rad)
HIP_Y = f32(walker.LEG_DOWN)
TOP, BOTTOM = (ZERO, f32(walker.LEG_H / 2)), (ZERO, f32(-walker.LEG_H / 2))
MIDDLE = ZERO, ZERO  # of a leg, its center of mass
TILT_0, TILT_1 = f32(-walker.LEG_TILT), f32(walker.LEG_TILT)
# offsets in a block of the speeds and impulse limits of the motors
HIP_DRIVE_0, KNEE_DRIVE_0 = (
    (np.int64(fields.SPEED_0), np.int64(fields.IMPULSE_0)),
    (np.int64(fields.SPEED_1), np.int64(fields.IMPULSE_1)),
)
HIP_DRIVE_1, KNEE_DRIVE_1 = (
    (np.int64(fields.SPEED_2), np.int64(fields.IMPULSE_2)),
    (np.int64(fields.SPEED_3), np.int64(fields.IMPULSE_3)),
)


@njit(**INLINE)
def _masses(block, lane):
    """Inverse mass and inertia of hull, upper and lower legs."""
    return (
        pair(block, fields.HULL_INV_MASS, lane),
        pair(block, fields.UPPER_INV_MASS, lane),
        pair(block, fields.LOWER_INV_MASS, lane),
    )


@njit(**INLINE)
def _hip(block, lane):
    """The hips from the hull's center of mass (m)."""
    return ZERO - block[fields.HULL_CENTER_X * LANES + lane], HIP_Y - block[fields.HULL_CENTER_Y * LANES + lane]


@njit(**INLINE)
def _limits(block, lane, tilt):
    """Limits and reference angle of a hip and of a knee."""
    hip = block[fields.HIP_LOWER * LANES + lane], block[fields.HIP_UPPER * LANES + lane], tilt
    return hip, (block[fields.KNEE_LOWER * LANES + lane], block[fields.KNEE_UPPER * LANES + lane], ZERO)


@njit(**KERNEL)
def prepare_joints(block):
    """``b2RevoluteJoint::InitVelocityConstraints`` of all joints of every lane."""
    for lane in range(LANES):
        hull, upper, lower = _masses(block, lane)
        anchor = _hip(block, lane)
        hip, knee = _limits(block, lane, TILT_1)
        prepare(block, lane, KNEE_1, WORK_KNEE_1, UPPER_1, LOWER_1, upper, lower, BOTTOM, TOP, knee)
        prepare(block, lane, HIP_1, WORK_HIP_1, HULL, UPPER_1, hull, upper, anchor, TOP, hip)
        hip, knee = _limits(block, lane, TILT_0)
        prepare(block, lane, HIP_0, WORK_HIP_0, HULL, UPPER_0, hull, upper, anchor, TOP, hip)
        prepare(block, lane, KNEE_0, WORK_KNEE_0, UPPER_0, LOWER_0, upper, lower, BOTTOM, TOP, knee)


@njit(**INLINE)
def _solve(block, lane, joint, work, mass_a, mass_b, drive, v_a, body_b):
    """One sequential impulse of a joint; takes and returns the velocity of its first body, and updates the second's.

    ``drive`` are the offsets of the motor's speed and limit.
    """
    speed, limit = drive
    motor = block[speed * LANES + lane], block[limit * LANES + lane]
    return solve_velocity(block, lane, joint, work, mass_a, mass_b, motor, v_a, body_b)


@njit(**INLINE)
def _solve_knee(block, lane, joint, work, upper, lower, masses, drive):
    """One sequential impulse of a knee."""
    v = velocity(block, lane, upper)
    set_velocity(block, lane, upper, _solve(block, lane, joint, work, masses[1], masses[2], drive, v, lower))


@njit(**INLINE)
def _solve_hip(block, lane, joint, work, upper, masses, drive, v):
    """One sequential impulse of a hip; takes and returns the hull's velocity."""
    return _solve(block, lane, joint, work, masses[0], masses[1], drive, v, upper)


@njit(**KERNEL)
def solve_joints(block, iterations):
    """``b2RevoluteJoint::SolveVelocityConstraints`` of all joints of every lane, ``iterations`` times."""
    for _ in range(iterations):
        for lane in range(LANES):
            masses = _masses(block, lane)
            v = velocity(block, lane, HULL)
            _solve_knee(block, lane, KNEE_1, WORK_KNEE_1, UPPER_1, LOWER_1, masses, KNEE_DRIVE_1)
            v = _solve_hip(block, lane, HIP_1, WORK_HIP_1, UPPER_1, masses, HIP_DRIVE_1, v)
            v = _solve_hip(block, lane, HIP_0, WORK_HIP_0, UPPER_0, masses, HIP_DRIVE_0, v)
            _solve_knee(block, lane, KNEE_0, WORK_KNEE_0, UPPER_0, LOWER_0, masses, KNEE_DRIVE_0)
            set_velocity(block, lane, HULL, v)


@njit(**KERNEL)
def solve_joint_pair(blocks, iterations):
    """Like ``solve_joints`` for two blocks at once, so that each hides the latency of the other."""
    for _ in range(iterations):
        for lane in range(LANES):
            other = lane + fields.BLOCK_FLOATS
            masses, other_masses = _masses(blocks, lane), _masses(blocks, other)
            v, u = velocity(blocks, lane, HULL), velocity(blocks, other, HULL)
            _solve_knee(blocks, lane, KNEE_1, WORK_KNEE_1, UPPER_1, LOWER_1, masses, KNEE_DRIVE_1)
            _solve_knee(blocks, other, KNEE_1, WORK_KNEE_1, UPPER_1, LOWER_1, other_masses, KNEE_DRIVE_1)
            v = _solve_hip(blocks, lane, HIP_1, WORK_HIP_1, UPPER_1, masses, HIP_DRIVE_1, v)
            u = _solve_hip(blocks, other, HIP_1, WORK_HIP_1, UPPER_1, other_masses, HIP_DRIVE_1, u)
            v = _solve_hip(blocks, lane, HIP_0, WORK_HIP_0, UPPER_0, masses, HIP_DRIVE_0, v)
            u = _solve_hip(blocks, other, HIP_0, WORK_HIP_0, UPPER_0, other_masses, HIP_DRIVE_0, u)
            _solve_knee(blocks, lane, KNEE_0, WORK_KNEE_0, UPPER_0, LOWER_0, masses, KNEE_DRIVE_0)
            _solve_knee(blocks, other, KNEE_0, WORK_KNEE_0, UPPER_0, LOWER_0, other_masses, KNEE_DRIVE_0)
            set_velocity(blocks, lane, HULL, v)
            set_velocity(blocks, other, HULL, u)


@njit(**KERNEL)
def solve_joint_positions(block):
    """``b2RevoluteJoint::SolvePositionConstraints`` of every lane that is not solved yet; returns how many now are.

    A lane is solved once all joints and its contacts (PENETRATION) are within tolerance; it then keeps its pose, as
    Box2D leaves its loop.
    """
    count = 0
    for lane in range(LANES):
        solved = block[fields.SOLVED * LANES + lane] != ZERO
        hull, upper, lower = _masses(block, lane)
        anchor = _hip(block, lane)
        h = center_and_angle(block, lane, HULL)
        u0, l0 = center_and_angle(block, lane, UPPER_0), center_and_angle(block, lane, LOWER_0)
        u1, l1 = center_and_angle(block, lane, UPPER_1), center_and_angle(block, lane, LOWER_1)
        hip, knee = _limits(block, lane, TILT_1)
        v1, m1, okay_3 = solve_position(block, lane, KNEE_1, upper, lower, BOTTOM, TOP, knee, u1, l1)
        g, v1, okay_2 = solve_position(block, lane, HIP_1, hull, upper, anchor, TOP, hip, h, v1)
        hip, knee = _limits(block, lane, TILT_0)
        g, v0, okay_0 = solve_position(block, lane, HIP_0, hull, upper, anchor, TOP, hip, g, u0)
        v0, m0, okay_1 = solve_position(block, lane, KNEE_0, upper, lower, BOTTOM, TOP, knee, v0, l0)
        set_center_and_angle(block, lane, HULL, h, g, solved)
        set_center_and_angle(block, lane, UPPER_0, u0, v0, solved)
        set_center_and_angle(block, lane, LOWER_0, l0, m0, solved)
        set_center_and_angle(block, lane, UPPER_1, u1, v1, solved)
        set_center_and_angle(block, lane, LOWER_1, l1, m1, solved)
        count += mark_solved(block, lane, fields.WORLD, okay_0 and okay_1 and okay_2 and okay_3)
    return count


@njit(**KERNEL)
def update_boxes(block):
    """``SynchronizeFixtures`` of every body and lane: rotations, fat boxes, and MOVED."""
    for lane in range(LANES):
        center = pair(block, fields.HULL_CENTER_X, lane)
        moved = update_lane(block, lane, HULL, HULL_VERTICES, HULL_COUNT, center)
        moved += update_lane(block, lane, UPPER_0, UPPER_VERTICES, LEG_COUNT, MIDDLE)
        moved += update_lane(block, lane, LOWER_0, LOWER_VERTICES, LEG_COUNT, MIDDLE)
        moved += update_lane(block, lane, UPPER_1, UPPER_VERTICES, LEG_COUNT, MIDDLE)
        moved += update_lane(block, lane, LOWER_1, LOWER_VERTICES, LEG_COUNT, MIDDLE)
        block[fields.MOVED * LANES + lane] = moved


TOPOLOGY = Topology(
    bodies=np.int64(fields.BODIES),
    order=(LOWER_1, UPPER_1, HULL, UPPER_0, LOWER_0),
    packed=np.int64(fields.PACKED),
    returned=np.int64(fields.RETURNED),
    block=np.int64(fields.BLOCK),
    prepare_joints=prepare_joints,
    solve_joints=solve_joints,
    solve_joint_pair=solve_joint_pair,
    solve_joint_positions=solve_joint_positions,
    update_boxes=update_boxes,
)
