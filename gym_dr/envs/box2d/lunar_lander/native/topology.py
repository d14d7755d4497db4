"""The joints of a lander: two legs on the hull, in Box2D's order, in the form that ``solver.island`` takes.

Box2D solves the joint of leg 1 before that of leg 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import layout as fields
from gym_dr.envs.box2d.lunar_lander.native.layout import JOINT_0, JOINT_1, LANDER, LEG_0, LEG_1, WORK_0, WORK_1
from gym_dr.envs.box2d.lunar_lander.native.shapes import (
    HULL_COUNT,
    HULL_VERTICES,
    LEG_COUNT,
    LEG_INV_INERTIA,
    LEG_INV_MASS,
    LEG_VERTICES,
)
from gym_dr.envs.box2d.solver.broad_phase import update_lane
from gym_dr.envs.box2d.solver.island import Topology
from gym_dr.envs.box2d.solver.joints import mark_solved, prepare, solve_position, solve_velocity
from gym_dr.envs.box2d.solver.lanes import center_and_angle, set_center_and_angle, set_velocity, velocity
from gym_dr.envs.box2d.solver.layout import LANES, ZERO, f32

# Of each joint: where it sits on its leg (m), limits and angle of the leg when built (rad), motor speed (rad/s).
_ANCHOR_Y = f32(lander.LEG_DOWN / lander.SCALE)
ANCHOR_0 = f32(-lander.LEG_AWAY / lander.SCALE), _ANCHOR_Y
ANCHOR_1 = f32(lander.LEG_AWAY / lander.SCALE), _ANCHOR_Y
_NEAR, _FAR = lander.LEG_ANGLE_MIN, lander.LEG_ANGLE_MAX
LIMITS_0 = f32(_NEAR), f32(_FAR), f32(-lander.LEG_TILT)
LIMITS_1 = f32(-_FAR), f32(-_NEAR), f32(lander.LEG_TILT)
SPEED_0, SPEED_1 = f32(-lander.LEG_MOTOR_SPEED), f32(lander.LEG_MOTOR_SPEED)
LEG_MASS = LEG_INV_MASS, LEG_INV_INERTIA
MIDDLE = ZERO, ZERO  # of a leg, its center of mass


@njit(**INLINE)
def _hull(block, lane):
    """The hull's inverse mass and inertia, and the joints, which are at its origin, from its center of mass (m)."""
    mass = block[fields.INV_MASS * LANES + lane], block[fields.INV_INERTIA * LANES + lane]
    return mass, (ZERO, -block[fields.MASS_CENTER_Y * LANES + lane])


@njit(**KERNEL)
def prepare_joints(block):
    """``b2RevoluteJoint::InitVelocityConstraints`` of both joints of every lane."""
    for lane in range(LANES):
        mass, anchor = _hull(block, lane)
        prepare(block, lane, JOINT_1, WORK_1, LANDER, LEG_1, mass, LEG_MASS, anchor, ANCHOR_1, LIMITS_1)
        prepare(block, lane, JOINT_0, WORK_0, LANDER, LEG_0, mass, LEG_MASS, anchor, ANCHOR_0, LIMITS_0)


@njit(**INLINE)
def _solve_lane(block, lane, joint, work, leg, speed, mass, v):
    """One sequential impulse of one joint; returns the hull's new velocity."""
    drive = speed, block[fields.MOTOR_LIMIT * LANES + lane]
    return solve_velocity(block, lane, joint, work, mass, LEG_MASS, drive, v, leg)


@njit(**KERNEL)
def solve_joints(block, iterations):
    """``b2RevoluteJoint::SolveVelocityConstraints`` of both joints of every lane, ``iterations`` times."""
    for _ in range(iterations):
        for lane in range(LANES):
            mass, _anchor = _hull(block, lane)
            v = velocity(block, lane, LANDER)
            v = _solve_lane(block, lane, JOINT_1, WORK_1, LEG_1, SPEED_1, mass, v)
            v = _solve_lane(block, lane, JOINT_0, WORK_0, LEG_0, SPEED_0, mass, v)
            set_velocity(block, lane, LANDER, v)


@njit(**KERNEL)
def solve_joint_pair(blocks, iterations):
    """Like ``solve_joints`` for two blocks at once, so that each hides the latency of the other."""
    for _ in range(iterations):
        for lane in range(LANES):
            other = lane + fields.BLOCK_FLOATS
            mass, _anchor = _hull(blocks, lane)
            other_mass, _anchor = _hull(blocks, other)
            v = velocity(blocks, lane, LANDER)
            u = velocity(blocks, other, LANDER)
            v = _solve_lane(blocks, lane, JOINT_1, WORK_1, LEG_1, SPEED_1, mass, v)
            u = _solve_lane(blocks, other, JOINT_1, WORK_1, LEG_1, SPEED_1, other_mass, u)
            v = _solve_lane(blocks, lane, JOINT_0, WORK_0, LEG_0, SPEED_0, mass, v)
            u = _solve_lane(blocks, other, JOINT_0, WORK_0, LEG_0, SPEED_0, other_mass, u)
            set_velocity(blocks, lane, LANDER, v)
            set_velocity(blocks, other, LANDER, u)


@njit(**KERNEL)
def solve_joint_positions(block):
    """``b2RevoluteJoint::SolvePositionConstraints`` of every lane that is not solved yet; returns how many now are.

    A lane is solved once both joints and its contacts (PENETRATION) are within tolerance; it then keeps its pose, as
    Box2D leaves its loop.
    """
    count = 0
    for lane in range(LANES):
        solved = block[fields.SOLVED * LANES + lane] != ZERO
        mass, anchor = _hull(block, lane)
        start = center_and_angle(block, lane, LANDER)
        start_0, start_1 = center_and_angle(block, lane, LEG_0), center_and_angle(block, lane, LEG_1)
        hull, leg_1, okay_1 = solve_position(
            block, lane, JOINT_1, mass, LEG_MASS, anchor, ANCHOR_1, LIMITS_1, start, start_1
        )
        hull, leg_0, okay_0 = solve_position(
            block, lane, JOINT_0, mass, LEG_MASS, anchor, ANCHOR_0, LIMITS_0, hull, start_0
        )
        set_center_and_angle(block, lane, LANDER, start, hull, solved)
        set_center_and_angle(block, lane, LEG_0, start_0, leg_0, solved)
        set_center_and_angle(block, lane, LEG_1, start_1, leg_1, solved)
        count += mark_solved(block, lane, fields.WORLD, okay_0 and okay_1)
    return count


@njit(**KERNEL)
def update_boxes(block):
    """``SynchronizeFixtures`` of every body and lane: rotations, fat boxes, and MOVED."""
    for lane in range(LANES):
        center = ZERO, block[fields.MASS_CENTER_Y * LANES + lane]
        moved = update_lane(block, lane, LANDER, HULL_VERTICES, HULL_COUNT, center)
        moved += update_lane(block, lane, LEG_0, LEG_VERTICES, LEG_COUNT, MIDDLE)
        moved += update_lane(block, lane, LEG_1, LEG_VERTICES, LEG_COUNT, MIDDLE)
        block[fields.MOVED * LANES + lane] = moved


TOPOLOGY = Topology(
    bodies=np.int64(fields.BODIES),
    order=(LEG_1, LANDER, LEG_0),
    packed=np.int64(fields.PACKED),
    returned=np.int64(fields.RETURNED),
    block=np.int64(fields.BLOCK),
    prepare_joints=prepare_joints,
    solve_joints=solve_joints,
    solve_joint_pair=solve_joint_pair,
    solve_joint_positions=solve_joint_positions,
    update_boxes=update_boxes,
)
