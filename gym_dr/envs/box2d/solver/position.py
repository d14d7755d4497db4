"""From velocities to positions: one explicit Euler step, with Box2D's limits on how far a body may go in a step."""

from __future__ import annotations

import math

from numba import njit

from gym_dr.compiled.flags import KERNEL
from gym_dr.envs.box2d.solver.lanes import ONLY, set_velocity, velocity
from gym_dr.envs.box2d.solver.layout import ANGLE, CENTER_X, CENTER_Y, LANES, f32

MAX_TRANSLATION = f32(2)  # m a step, b2_maxTranslation
MAX_TRANSLATION_SQUARED = f32(4)
MAX_ROTATION = f32(f32(0.5) * f32(3.14159265359))  # rad a step, b2_maxRotation
MAX_ROTATION_SQUARED = f32(MAX_ROTATION * MAX_ROTATION)


@njit(**KERNEL)
def integrate(body, dt):
    """Clamps the velocity of one body in every lane, then c += dt v and angle += dt w; ``dt`` in s."""
    for lane in range(LANES):
        vx, vy, w = velocity(body, lane, ONLY)
        dx = dt * vx
        dy = dt * vy
        squared = dx * dx + dy * dy
        ratio = MAX_TRANSLATION / math.sqrt(squared)
        far = squared > MAX_TRANSLATION_SQUARED
        vx = vx * ratio if far else vx
        vy = vy * ratio if far else vy
        turn = dt * w
        ratio = MAX_ROTATION / abs(turn)
        w = w * ratio if turn * turn > MAX_ROTATION_SQUARED else w
        set_velocity(body, lane, ONLY, (vx, vy, w))
        body[CENTER_X * LANES + lane] += dt * vx
        body[CENTER_Y * LANES + lane] += dt * vy
        body[ANGLE * LANES + lane] += dt * w
