"""Observation and reward: the float64 formulas of ``physics.py``."""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.box2d.lunar_lander.native import layout as fields
from gym_dr.envs.box2d.lunar_lander.native.layout import LANDER, LEG_0, LEG_1
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import origin

f64 = np.float64
HULL_BIT, LEG_0_BIT, LEG_1_BIT = 1 << int(LANDER), 1 << int(LEG_0), 1 << int(LEG_1)

_observe, _shaping, _outcome = map(compile_formula, (physics.observe, physics.shaping, physics.outcome))


@njit(**INLINE)
def observe(arrays, env, throttles):
    """Writes one environment's results; ``throttles`` are those that this step used."""
    rows, status, shaping = arrays.world.rows, arrays.world.status, arrays.shaping
    x, y = origin(arrays.world, env, LANDER)
    state = _observe(
        (f64(x), f64(y)),
        (f64(rows[env, at.VELOCITY_X]), f64(rows[env, at.VELOCITY_Y])),
        f64(rows[env, at.ANGLE]),
        f64(rows[env, at.OMEGA]),
        status[env, at.S_TOUCHES] & LEG_0_BIT != 0,
        status[env, at.S_TOUCHES] & LEG_1_BIT != 0,
    )
    for k in range(fields.OBSERVATION):
        arrays.observations[env, k] = state[k]
    potential = _shaping(state)
    growth = potential - shaping[env] if status[env, fields.S_HAS_SHAPING] != 0 else 0.0
    shaping[env] = potential
    status[env, fields.S_HAS_SHAPING] = 1
    crashed = status[env, at.S_TOUCHED] & HULL_BIT != 0
    awake = rows[env, fields.AWAKE] != np.float32(0)
    arrays.rewards[env], arrays.terminations[env] = _outcome(state, growth, throttles, crashed, awake)
