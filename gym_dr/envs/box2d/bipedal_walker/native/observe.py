"""Observation and reward, in float64 as Gymnasium computes them; the motors' cost is in float32, like the actions."""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.native import layout as at
from gym_dr.envs.box2d.bipedal_walker.native.layout import HULL, LOWER_0, LOWER_1, UPPER_0, UPPER_1
from gym_dr.envs.box2d.bipedal_walker.native.lidar import cast
from gym_dr.envs.box2d.bipedal_walker.native.topology import TILT_0, TILT_1
from gym_dr.envs.box2d.solver import layout as solver
from gym_dr.envs.box2d.solver.broad_phase import origin
from gym_dr.envs.box2d.solver.layout import BODY

f32 = np.float32
f64 = np.float64
_WIDTH, _HEIGHT = walker.VIEWPORT_W / walker.SCALE, walker.VIEWPORT_H / walker.SCALE
_COST = f32(walker.TORQUE_COST)
_FIRST, _SECOND = np.int64(4), np.int64(9)  # where a leg's part of the observation begins


@njit(**KERNEL)
def _observe_leg(world, observations, env, at_place, upper, lower, tilt):
    rows = world.rows
    h, u, d = HULL * BODY, upper * BODY, lower * BODY
    hip = (rows[env, u + solver.ANGLE] - rows[env, h + solver.ANGLE]) - tilt
    knee = rows[env, d + solver.ANGLE] - rows[env, u + solver.ANGLE]
    hip_speed = rows[env, u + solver.OMEGA] - rows[env, h + solver.OMEGA]
    knee_speed = rows[env, d + solver.OMEGA] - rows[env, u + solver.OMEGA]
    observations[env, at_place] = hip
    observations[env, at_place + 1] = f64(hip_speed) / walker.SPEED_HIP
    observations[env, at_place + 2] = f64(knee) + 1.0
    observations[env, at_place + 3] = f64(knee_speed) / walker.SPEED_KNEE
    observations[env, at_place + 4] = 1.0 if world.status[env, solver.S_TOUCHES] >> lower & 1 != 0 else 0.0


@njit(**INLINE)
def observe(memory, actions, env):
    """Writes one environment's results.

    The reward is the growth of a potential (``shaping``) less the motors' cost, or a fixed price for a fall.
    """
    world, observations, shaping = memory.world, memory.observations, memory.shaping
    rows, status = world.rows, world.status
    x, y = origin(world, env, HULL)
    angle = f64(rows[env, solver.ANGLE])
    observations[env, 0] = angle
    observations[env, 1] = 2.0 * f64(rows[env, solver.OMEGA]) / walker.FPS
    observations[env, 2] = 0.3 * f64(rows[env, solver.VELOCITY_X]) * _WIDTH / walker.FPS
    observations[env, 3] = 0.3 * f64(rows[env, solver.VELOCITY_Y]) * _HEIGHT / walker.FPS
    _observe_leg(world, observations, env, _FIRST, UPPER_0, LOWER_0, TILT_0)
    _observe_leg(world, observations, env, _SECOND, UPPER_1, LOWER_1, TILT_1)
    for i in range(walker.LIDAR_RAYS):
        observations[env, 14 + i] = cast(world, env, x, y, i, memory.params[env, at.P_LIDAR_RANGE])
    potential = walker.PROGRESS_REWARD * f64(x) / walker.SCALE - walker.TILT_COST * abs(angle)
    reward = f32(potential - shaping[env] if status[env, at.S_HAS_SHAPING] != 0 else 0.0)
    shaping[env] = potential
    status[env, at.S_HAS_SHAPING] = 1
    for i in range(at.ACTIONS):
        size = min(abs(actions[env, i]), f32(1))
        reward = f32(reward - _COST * size)
    fell = status[env, solver.S_TOUCHED] & 1 != 0 or x < f32(0)  # the hull is body 0
    memory.rewards[env] = walker.FALL_REWARD if fell else f64(reward)
    memory.terminations[env] = fell or f64(x) > walker.GOAL_X
