"""Sleep: Box2D puts bodies to sleep that have hardly moved for half a second."""

from __future__ import annotations

from numba import njit

from gym_dr.compiled.flags import KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.lanes import ONLY, velocity
from gym_dr.envs.box2d.solver.layout import BODY_FLOATS, DT, LANES, ONE, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import ANGULAR_SLOP

TIME_TO_SLEEP = f32(0.5)  # s
ANGULAR_TOLERANCE_SQUARED = f32(ANGULAR_SLOP * ANGULAR_SLOP)  # b2_angularSleepTolerance is 2 degrees/s as well
LINEAR_TOLERANCE_SQUARED = f32(f32(0.01) * f32(0.01))  # (m/s)^2
_AGES = f32(1e9)  # s


@njit(**KERNEL)
def _count(body, least):
    """Adds a step to the time (s) that a body has been almost still, and updates the shortest such time."""
    for lane in range(LANES):
        vx, vy, w = velocity(body, lane, ONLY)
        moves = (w * w > ANGULAR_TOLERANCE_SQUARED) or (vx * vx + vy * vy > LINEAR_TOLERANCE_SQUARED)
        rest = body[at.REST_TIME * LANES + lane] + DT
        rest = ZERO if moves else rest
        body[at.REST_TIME * LANES + lane] = rest
        least[lane] = rest if rest < least[lane] else least[lane]


@njit(**KERNEL)
def _settle(body, awake):
    """A body that falls asleep has velocity 0."""
    for lane in range(LANES):
        asleep = awake[lane] == ZERO
        for k in range(3):  # x, y, angular
            velocity = body[(at.VELOCITY_X + k) * LANES + lane]
            body[(at.VELOCITY_X + k) * LANES + lane] = ZERO if asleep else velocity
        rest = body[at.REST_TIME * LANES + lane]
        body[at.REST_TIME * LANES + lane] = ZERO if asleep else rest


@njit(**KERNEL)
def update(block, bodies, awake, solved):
    """Counts rest times; all bodies sleep together, with velocity 0, once positions are solved.

    ``awake`` and ``solved`` (LANES,) are the block's AWAKE, which is set, and SOLVED.
    """
    for lane in range(LANES):
        awake[lane] = _AGES
    for body in range(bodies):
        _count(block[body * BODY_FLOATS : (body + 1) * BODY_FLOATS], awake)
    for lane in range(LANES):
        asleep = (awake[lane] >= TIME_TO_SLEEP) and (solved[lane] != ZERO)
        awake[lane] = ZERO if asleep else ONE
    for body in range(bodies):
        _settle(block[body * BODY_FLOATS : (body + 1) * BODY_FLOATS], awake)
