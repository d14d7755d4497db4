"""Forces on the lander before the solver runs: gravity, wind and engines.

Engines and wind are the float64 formulas of ``physics.py``; Box2D takes their results as float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import LANDER, LEG_0, LEG_1
from gym_dr.envs.box2d.solver import layout as solver
from gym_dr.envs.box2d.solver.broad_phase import origin
from gym_dr.envs.box2d.solver.layout import BODY, DT

f32 = np.float32
ZERO = f32(0)
SCALE = lander.SCALE
LEGS = 1 << int(LEG_0) | 1 << int(LEG_1)

_wind_strength, _tip_of = map(compile_formula, (physics.wind_strength, physics.tip_of))
_main_engine, _side_engine = map(compile_formula, (physics.main_engine, physics.side_engine))


@njit(**KERNEL)
def _strength(gusts, index):
    """``wind_strength``, which ``gusts`` holds for the indices that episodes of ordinary length can reach."""
    place = index - lander.WIND_INDEX_LOW
    if 0 <= place < gusts.shape[0]:
        return gusts[place]
    return _wind_strength(index)


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
def _push(rows, env, thrust):
    """``ApplyLinearImpulse`` on the lander."""
    fx = f32(thrust.impulse[0])
    fy = f32(thrust.impulse[1])
    rx = f32(thrust.point[0]) - rows[env, solver.CENTER_X]
    ry = f32(thrust.point[1]) - rows[env, solver.CENTER_Y]
    rows[env, solver.VELOCITY_X] += rows[env, at.INV_MASS] * fx
    rows[env, solver.VELOCITY_Y] += rows[env, at.INV_MASS] * fy
    rows[env, solver.OMEGA] += rows[env, at.INV_INERTIA] * (rx * fy - ry * fx)


@njit(**INLINE)
def engines(memory, env, throttles):
    """Fires the engines; always draws two dispersions."""
    rows, params, streams = memory.world.rows, memory.params, memory.streams
    along = pcg64.uniform(streams, env, -1.0, 2.0) / SCALE
    across = pcg64.uniform(streams, env, -1.0, 2.0) / SCALE
    main, side, direction = throttles
    if main == 0.0 and side == 0.0:
        return
    tip = _tip_of(np.float64(rows[env, solver.ANGLE]))
    x, y = origin(memory.world, env, LANDER)
    position = np.float64(x), np.float64(y)
    if main != 0.0:
        power = params[env, at.P_MAIN_ENGINE_POWER]
        _push(rows, env, _main_engine(position, tip, (along, across), power, main))
    if side != 0.0:
        power = params[env, at.P_SIDE_ENGINE_POWER]
        _push(rows, env, _side_engine(position, tip, (along, across), power, side, direction))
