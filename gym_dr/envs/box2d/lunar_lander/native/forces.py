"""Forces on the lander before the solver runs: gravity, wind and engines.

Gymnasium computes engines and wind in float64 with the C library's ``sin``, ``cos`` and ``tanh``; Box2D takes the
results as float32. Both are repeated in the same order of operations.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import LEG_0, LEG_1
from gym_dr.envs.box2d.solver import layout as solver
from gym_dr.envs.box2d.solver.layout import BODY, DT

f32 = np.float32
ZERO = f32(0)
SCALE = lander.SCALE
LEGS = 1 << int(LEG_0) | 1 << int(LEG_1)


@njit(**KERNEL)
def _strength(gusts, index):
    """``tanh(sin(2 k i) + sin(pi k i))`` with k = 0.01, in (-1, 1): never periodic.

    ``gusts`` holds it for the indices that episodes of ordinary length can reach.
    """
    place = index - lander.WIND_INDEX_LOW
    if 0 <= place < gusts.shape[0]:
        return gusts[place]
    return math.tanh(math.sin(0.02 * index) + math.sin(math.pi * 0.01 * index))


@njit(**INLINE)
def wind(memory, gusts, env):
    """Force (N) and torque (N m) of this step's wind and turbulence; none while a leg stands on the ground."""
    status, params = memory.world.status, memory.params
    if params[env, at.P_ENABLE_WIND] == 0.0 or status[env, solver.S_TOUCHES] & LEGS != 0:
        return ZERO, ZERO
    force = _strength(gusts, status[env, at.S_WIND]) * params[env, at.P_WIND_POWER]
    torque = _strength(gusts, status[env, at.S_TURBULENCE]) * params[env, at.P_TURBULENCE_POWER]
    status[env, at.S_WIND] += 1
    status[env, at.S_TURBULENCE] += 1
    return f32(force), f32(torque)


@njit(**KERNEL)
def apply(rows, env, force_x, force_y, torque):
    """Velocities after gravity on all bodies, and force (N) and torque (N m) on the lander."""
    gravity = rows[env, at.GRAVITY]
    rows[env, solver.VELOCITY_X] += DT * (rows[env, at.INV_MASS] * force_x)
    rows[env, solver.VELOCITY_Y] += DT * (gravity + rows[env, at.INV_MASS] * force_y)
    rows[env, solver.OMEGA] += (DT * rows[env, at.INV_INERTIA]) * torque
    rows[env, LEG_0 * BODY + solver.VELOCITY_Y] += DT * gravity
    rows[env, LEG_1 * BODY + solver.VELOCITY_Y] += DT * gravity


@njit(**KERNEL)
def _push(rows, env, impulse_x, impulse_y, point_x, point_y):
    """``ApplyLinearImpulse`` on the lander: N s at a point in the world (m)."""
    fx = f32(impulse_x)
    fy = f32(impulse_y)
    rx = f32(point_x) - rows[env, solver.CENTER_X]
    ry = f32(point_y) - rows[env, solver.CENTER_Y]
    rows[env, solver.VELOCITY_X] += rows[env, at.INV_MASS] * fx
    rows[env, solver.VELOCITY_Y] += rows[env, at.INV_MASS] * fy
    rows[env, solver.OMEGA] += rows[env, at.INV_INERTIA] * (rx * fy - ry * fx)


@njit(**INLINE)
def engines(memory, env, main, side, direction):
    """Fires the engines: throttles 0 or 0.5 to 1, direction -1 (left engine) or 1; always draws two dispersions."""
    rows, params, streams = memory.world.rows, memory.params, memory.streams
    along = pcg64.uniform(streams, env, -1.0, 2.0) / SCALE
    across = pcg64.uniform(streams, env, -1.0, 2.0) / SCALE
    if main == 0.0 and side == 0.0:
        return
    angle = np.float64(rows[env, solver.ANGLE])
    tip_x = math.sin(angle)
    tip_y = math.cos(angle)
    side_x = -tip_y
    side_y = tip_x
    center_y = rows[env, at.MASS_CENTER_Y]
    x = np.float64(rows[env, solver.CENTER_X] + rows[env, solver.SIN] * center_y)
    y = np.float64(rows[env, solver.CENTER_Y] - rows[env, solver.COS] * center_y)
    if main != 0.0:
        power = params[env, at.P_MAIN_ENGINE_POWER]
        reach = lander.MAIN_ENGINE_Y_LOCATION / SCALE + 2 * along
        ox = tip_x * reach + side_x * across
        oy = -tip_y * reach - side_y * across
        _push(rows, env, -ox * power * main, -oy * power * main, x + ox, y + oy)
    if side != 0.0:
        power = params[env, at.P_SIDE_ENGINE_POWER]
        reach = 3 * across + direction * lander.SIDE_ENGINE_AWAY / SCALE
        ox = tip_x * along + side_x * reach
        oy = -tip_y * along - side_y * reach
        point_x = x + ox - tip_x * lander.SIDE_ENGINE_DROP / SCALE
        point_y = y + oy + tip_y * lander.SIDE_ENGINE_HEIGHT / SCALE
        _push(rows, env, -ox * power * side, -oy * power * side, point_x, point_y)
