"""When the lander has come to rest: Box2D puts bodies to sleep that have hardly moved for half a second."""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import BODY, DT, LANDER, LANES, LEG_0, LEG_1
from gym_dr.envs.box2d.lunar_lander.native.shapes import ANGULAR_SLOP

f32 = np.float32
ZERO, ONE = f32(0), f32(1)
TIME_TO_SLEEP = f32(0.5)  # s
ANGULAR_TOLERANCE_SQUARED = f32(ANGULAR_SLOP * ANGULAR_SLOP)  # b2_angularSleepTolerance is 2 degrees/s as well
LINEAR_TOLERANCE_SQUARED = f32(f32(0.01) * f32(0.01))  # (m/s)^2


@njit(**INLINE)
def _rest_time(block, lane, body):
    """How long the body has been almost still (s), this step included."""
    vx = block[(body * BODY + at.VELOCITY_X) * LANES + lane]
    vy = block[(body * BODY + at.VELOCITY_Y) * LANES + lane]
    w = block[(body * BODY + at.OMEGA) * LANES + lane]
    moves = (w * w > ANGULAR_TOLERANCE_SQUARED) or (vx * vx + vy * vy > LINEAR_TOLERANCE_SQUARED)
    rest = block[(body * BODY + at.REST_TIME) * LANES + lane] + DT
    return ZERO if moves else rest


@njit(**INLINE)
def _settle(block, lane, body, rest, asleep):
    block[(body * BODY + at.REST_TIME) * LANES + lane] = ZERO if asleep else rest
    for k in range(3):  # x, y, angular
        velocity = block[(body * BODY + at.VELOCITY_X + k) * LANES + lane]
        block[(body * BODY + at.VELOCITY_X + k) * LANES + lane] = ZERO if asleep else velocity


@njit(**KERNEL)
def update(block):
    """Count rest times; all three bodies sleep together, with velocity 0, once positions are solved (SOLVED)."""
    for lane in range(LANES):
        rest = _rest_time(block, lane, LANDER)
        rest_0 = _rest_time(block, lane, LEG_0)
        rest_1 = _rest_time(block, lane, LEG_1)
        least = rest if rest < rest_0 else rest_0
        least = least if least < rest_1 else rest_1
        asleep = (least >= TIME_TO_SLEEP) and (block[at.SOLVED * LANES + lane] != ZERO)
        _settle(block, lane, LANDER, rest, asleep)
        _settle(block, lane, LEG_0, rest_0, asleep)
        _settle(block, lane, LEG_1, rest_1, asleep)
        block[at.AWAKE * LANES + lane] = ZERO if asleep else ONE
