"""Observation and reward: the formulas of ``physics.py``."""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker import physics
from gym_dr.envs.box2d.bipedal_walker.native import layout as fields
from gym_dr.envs.box2d.bipedal_walker.native.layout import HULL, LOWER_0, LOWER_1, UPPER_0, UPPER_1
from gym_dr.envs.box2d.bipedal_walker.native.lidar import cast
from gym_dr.envs.box2d.bipedal_walker.native.topology import TILT_0, TILT_1
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import origin
from gym_dr.envs.box2d.solver.layout import BODY

f64 = np.float64
_FIRST, _SECOND = np.int64(4), np.int64(9)  # where a leg's part of the observation begins

_observe_hull, _observe_joints = map(compile_formula, (physics.observe_hull, physics.observe_leg))
_shaping, _outcome = map(compile_formula, (physics.shaping, physics.outcome))


@njit(**INLINE)
def _observe_leg(world, observations, env, first, upper, lower, tilt):
    rows = world.rows
    h, u, d = HULL * BODY, upper * BODY, lower * BODY
    hip = (rows[env, u + at.ANGLE] - rows[env, h + at.ANGLE]) - tilt
    knee = rows[env, d + at.ANGLE] - rows[env, u + at.ANGLE]
    hip_speed = rows[env, u + at.OMEGA] - rows[env, h + at.OMEGA]
    knee_speed = rows[env, d + at.OMEGA] - rows[env, u + at.OMEGA]
    contact = world.status[env, at.S_TOUCHES] >> lower & 1 != 0
    state = _observe_joints(f64(hip), f64(hip_speed), f64(knee), f64(knee_speed), contact)
    for k in range(5):
        observations[env, first + k] = state[k]


@njit(**INLINE)
def observe(arrays, actions, env):
    """Writes one environment's results."""
    world, observations, shaping = arrays.world, arrays.observations, arrays.shaping
    rows, status = world.rows, world.status
    x, y = origin(world, env, HULL)
    angle = f64(rows[env, at.ANGLE])
    velocity_x, velocity_y = f64(rows[env, at.VELOCITY_X]), f64(rows[env, at.VELOCITY_Y])
    state = _observe_hull(angle, f64(rows[env, at.OMEGA]), velocity_x, velocity_y)
    for k in range(4):
        observations[env, k] = state[k]
    _observe_leg(world, observations, env, _FIRST, UPPER_0, LOWER_0, TILT_0)
    _observe_leg(world, observations, env, _SECOND, UPPER_1, LOWER_1, TILT_1)
    for i in range(walker.LIDAR_RAYS):
        observations[env, 14 + i] = cast(world, env, x, y, i, arrays.params[env, fields.P_LIDAR_RANGE])
    potential = _shaping(f64(x), angle)
    growth = potential - shaping[env] if status[env, fields.S_HAS_SHAPING] != 0 else 0.0
    shaping[env] = potential
    status[env, fields.S_HAS_SHAPING] = 1
    touched = status[env, at.S_TOUCHED] & 1 != 0  # the hull is body 0
    arrays.rewards[env], arrays.terminations[env] = _outcome(f64(x), growth, actions[env], touched)
