"""Forces on the lander before the solver runs: gravity, wind and engines.

Engines and wind are the float64 formulas of ``physics.py``; Box2D takes their results as float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.flags import INLINE
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.box2d.lunar_lander.native import layout as fields
from gym_dr.envs.box2d.lunar_lander.native.layout import LANDER, LEG_0, LEG_1
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import origin
from gym_dr.envs.box2d.solver.layout import BODY, DT, ZERO, f32
from gym_dr.envs.box2d.solver.vectors import along, cross, minus, set_vector, vector

SCALE = lander.SCALE
LEGS = 1 << int(LEG_0) | 1 << int(LEG_1)

_wind_strength, _tip_of = map(compile_formula, (physics.wind_strength, physics.tip_of))
_main_engine, _side_engine = map(compile_formula, (physics.main_engine, physics.side_engine))


@njit(**INLINE)
def _strength(gusts, index):
    """``wind_strength``, looked up in ``gusts`` for the indices that episodes of ordinary length reach."""
    place = index - lander.WIND_INDEX_LOW
    if 0 <= place < gusts.shape[0]:
        return gusts[place]
    return _wind_strength(index)


@njit(**INLINE)
def wind(arrays, gusts, env):
    """Force (N) and torque (N m) of this step's wind and turbulence; none while a leg stands on the ground."""
    status, params = arrays.world.status, arrays.params
    if params[env, fields.P_ENABLE_WIND] == 0.0 or status[env, at.S_TOUCHES] & LEGS != 0:
        return ZERO, ZERO
    force = _strength(gusts, status[env, fields.S_WIND]) * params[env, fields.P_WIND_POWER]
    torque = _strength(gusts, status[env, fields.S_TURBULENCE]) * params[env, fields.P_TURBULENCE_POWER]
    status[env, fields.S_WIND] += 1
    status[env, fields.S_TURBULENCE] += 1
    return f32(force), f32(torque)


@njit(**INLINE)
def apply(rows, env, force_x, force_y, torque):
    """Velocities after gravity on all bodies, and force (N) and torque (N m) on the lander."""
    gravity = rows[env, fields.GRAVITY]
    rows[env, at.VELOCITY_X] += DT * (rows[env, fields.INV_MASS] * force_x)
    rows[env, at.VELOCITY_Y] += DT * (gravity + rows[env, fields.INV_MASS] * force_y)
    rows[env, at.OMEGA] += (DT * rows[env, fields.INV_INERTIA]) * torque
    rows[env, LEG_0 * BODY + at.VELOCITY_Y] += DT * gravity
    rows[env, LEG_1 * BODY + at.VELOCITY_Y] += DT * gravity


@njit(**INLINE)
def _push(rows, env, thrust):
    """``ApplyLinearImpulse`` on the lander."""
    row = rows[env]
    impulse = f32(thrust.impulse[0]), f32(thrust.impulse[1])
    arm = minus((f32(thrust.point[0]), f32(thrust.point[1])), vector(row, at.CENTER_X))
    set_vector(row, at.VELOCITY_X, along(vector(row, at.VELOCITY_X), row[fields.INV_MASS], impulse))
    row[at.OMEGA] += row[fields.INV_INERTIA] * cross(arm, impulse)


@njit(**INLINE)
def engines(arrays, env, throttles):
    """Fires the engines; always draws two dispersions."""
    rows, params, streams = arrays.world.rows, arrays.params, arrays.streams
    along = pcg64.uniform(streams, env, -1.0, 2.0) / SCALE
    across = pcg64.uniform(streams, env, -1.0, 2.0) / SCALE
    main, side, direction = throttles
    if main == 0.0 and side == 0.0:
        return
    tip = _tip_of(np.float64(rows[env, at.ANGLE]))
    x, y = origin(arrays.world, env, LANDER)
    position = np.float64(x), np.float64(y)
    if main != 0.0:
        power = params[env, fields.P_MAIN_ENGINE_POWER]
        _push(rows, env, _main_engine(position, tip, (along, across), power, main))
    if side != 0.0:
        power = params[env, fields.P_SIDE_ENGINE_POWER]
        _push(rows, env, _side_engine(position, tip, (along, across), power, side, direction))
