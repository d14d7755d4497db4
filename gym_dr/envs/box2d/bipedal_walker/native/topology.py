"""The joints of a walker: two hips and a knee in each leg, in Box2D's order, in the form that ``solver.island`` takes.

The island begins with the body that was made last, so joints are solved in the order knee 1, hip 1, hip 0, knee 0.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions and would not check annotations.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.native import layout as at
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
from gym_dr.envs.box2d.solver.joints import (
    CONTACT_TOLERANCE,
    pose,
    prepare,
    set_pose,
    set_velocity,
    solve_position,
    solve_velocity,
    velocity,
)
from gym_dr.envs.box2d.solver.layout import LANES

f32 = np.float32
ZERO, ONE = f32(0), f32(1)
ONCE = np.int64(1)

# where joints are on the bodies (m), and the angles between these when built (rad)
HIP_Y = f32(walker.LEG_DOWN)
TOP, BOTTOM = (ZERO, f32(walker.LEG_H / 2)), (ZERO, f32(-walker.LEG_H / 2))
TILT_0, TILT_1 = f32(-walker.LEG_TILT), f32(walker.LEG_TILT)


@njit(**INLINE)
def _masses(block, lane):
    """Inverse mass and inertia of hull, upper and lower legs."""
    return (
        (block[at.HULL_INV_MASS * LANES + lane], block[at.HULL_INV_INERTIA * LANES + lane]),
        (block[at.UPPER_INV_MASS * LANES + lane], block[at.UPPER_INV_INERTIA * LANES + lane]),
        (block[at.LOWER_INV_MASS * LANES + lane], block[at.LOWER_INV_INERTIA * LANES + lane]),
    )


@njit(**INLINE)
def _hip(block, lane):
    """The hips from the hull's centre of mass (m)."""
    return ZERO - block[at.HULL_CENTER_X * LANES + lane], HIP_Y - block[at.HULL_CENTER_Y * LANES + lane]


@njit(**INLINE)
def _limits(block, lane, tilt):
    """Limits and reference angle of a hip and of a knee."""
    hip = block[at.HIP_LOWER * LANES + lane], block[at.HIP_UPPER * LANES + lane], tilt
    return hip, (block[at.KNEE_LOWER * LANES + lane], block[at.KNEE_UPPER * LANES + lane], ZERO)


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


@njit(**KERNEL)
def solve_joints(block, iterations):
    """``b2RevoluteJoint::SolveVelocityConstraints`` of all joints of every lane, ``iterations`` times."""
    for _ in range(iterations):
        for lane in range(LANES):
            hull, upper, lower = _masses(block, lane)
            v = velocity(block, lane, HULL)
            v_upper, v_lower = velocity(block, lane, UPPER_1), velocity(block, lane, LOWER_1)
            drive = block[at.SPEED_3 * LANES + lane], block[at.IMPULSE_3 * LANES + lane]
            v_upper, v_lower = solve_velocity(block, lane, KNEE_1, WORK_KNEE_1, upper, lower, drive, v_upper, v_lower)
            set_velocity(block, lane, LOWER_1, v_lower)
            drive = block[at.SPEED_2 * LANES + lane], block[at.IMPULSE_2 * LANES + lane]
            v, v_upper = solve_velocity(block, lane, HIP_1, WORK_HIP_1, hull, upper, drive, v, v_upper)
            set_velocity(block, lane, UPPER_1, v_upper)
            v_upper, v_lower = velocity(block, lane, UPPER_0), velocity(block, lane, LOWER_0)
            drive = block[at.SPEED_0 * LANES + lane], block[at.IMPULSE_0 * LANES + lane]
            v, v_upper = solve_velocity(block, lane, HIP_0, WORK_HIP_0, hull, upper, drive, v, v_upper)
            set_velocity(block, lane, HULL, v)
            drive = block[at.SPEED_1 * LANES + lane], block[at.IMPULSE_1 * LANES + lane]
            v_upper, v_lower = solve_velocity(block, lane, KNEE_0, WORK_KNEE_0, upper, lower, drive, v_upper, v_lower)
            set_velocity(block, lane, UPPER_0, v_upper)
            set_velocity(block, lane, LOWER_0, v_lower)


@njit(**KERNEL)
def solve_joint_pair(blocks, iterations):
    """Like ``solve_joints`` for two blocks, alternately."""
    for _ in range(iterations):
        solve_joints(blocks[: at.BLOCK_FLOATS], ONCE)
        solve_joints(blocks[at.BLOCK_FLOATS :], ONCE)


@njit(**KERNEL)
def solve_joint_positions(block):
    """``b2RevoluteJoint::SolvePositionConstraints`` of every lane that is not solved yet; returns how many now are.

    A lane is solved once all joints and its contacts (PENETRATION) are within tolerance; it then keeps its pose, as
    Box2D leaves its loop.
    """
    count = 0
    for lane in range(LANES):
        solved = block[at.SOLVED * LANES + lane] != ZERO
        hull, upper, lower = _masses(block, lane)
        anchor = _hip(block, lane)
        h = pose(block, lane, HULL)
        u0, l0, u1, l1 = (
            pose(block, lane, UPPER_0),
            pose(block, lane, LOWER_0),
            pose(block, lane, UPPER_1),
            pose(block, lane, LOWER_1),
        )
        hip, knee = _limits(block, lane, TILT_1)
        v1, m1, okay_3 = solve_position(block, lane, KNEE_1, WORK_KNEE_1, upper, lower, BOTTOM, TOP, knee, u1, l1)
        g, v1, okay_2 = solve_position(block, lane, HIP_1, WORK_HIP_1, hull, upper, anchor, TOP, hip, h, v1)
        hip, knee = _limits(block, lane, TILT_0)
        g, v0, okay_0 = solve_position(block, lane, HIP_0, WORK_HIP_0, hull, upper, anchor, TOP, hip, g, u0)
        v0, m0, okay_1 = solve_position(block, lane, KNEE_0, WORK_KNEE_0, upper, lower, BOTTOM, TOP, knee, v0, l0)
        set_pose(block, lane, HULL, h, g, solved)
        set_pose(block, lane, UPPER_0, u0, v0, solved)
        set_pose(block, lane, LOWER_0, l0, m0, solved)
        set_pose(block, lane, UPPER_1, u1, v1, solved)
        set_pose(block, lane, LOWER_1, l1, m1, solved)
        okay = okay_0 and okay_1 and okay_2 and okay_3 and (block[at.PENETRATION * LANES + lane] >= CONTACT_TOLERANCE)
        now = solved or okay
        block[at.SOLVED * LANES + lane] = ONE if now else ZERO
        count += 1 if now else 0
    return count


@njit(**KERNEL)
def update_boxes(block):
    """``SynchronizeFixtures`` of every body and lane: rotations, fat boxes, and MOVED."""
    for lane in range(LANES):
        center_x = block[at.HULL_CENTER_X * LANES + lane]
        center_y = block[at.HULL_CENTER_Y * LANES + lane]
        moved = update_lane(block, lane, HULL, HULL_VERTICES, HULL_COUNT, center_x, center_y)
        moved += update_lane(block, lane, UPPER_0, UPPER_VERTICES, LEG_COUNT, ZERO, ZERO)
        moved += update_lane(block, lane, LOWER_0, LOWER_VERTICES, LEG_COUNT, ZERO, ZERO)
        moved += update_lane(block, lane, UPPER_1, UPPER_VERTICES, LEG_COUNT, ZERO, ZERO)
        moved += update_lane(block, lane, LOWER_1, LOWER_VERTICES, LEG_COUNT, ZERO, ZERO)
        block[at.MOVED * LANES + lane] = moved


TOPOLOGY = Topology(
    bodies=np.int64(at.BODIES),
    order=(LOWER_1, UPPER_1, HULL, UPPER_0, LOWER_0),
    packed=np.int64(at.PACKED),
    returned=np.int64(at.RETURNED),
    block=np.int64(at.BLOCK),
    prepare_joints=prepare_joints,
    solve_joints=solve_joints,
    solve_joint_pair=solve_joint_pair,
    solve_joint_positions=solve_joint_positions,
    update_boxes=update_boxes,
)
