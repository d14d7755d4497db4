"""Observation and reward, in float64 as Gymnasium computes them."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gym_dr.compiled.options import INLINE
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import LANDER, LEG_0, LEG_1
from gym_dr.envs.box2d.solver import layout as solver

HULL_BIT, LEG_0_BIT, LEG_1_BIT = 1 << int(LANDER), 1 << int(LEG_0), 1 << int(LEG_1)
_HALF_W = lander.WORLD_W / 2
_HALF_H = lander.WORLD_H / 2
_STANDING_Y = lander.HELIPAD_Y + lander.LEG_DOWN / lander.SCALE  # m, of the lander's origin when it stands on the pad


@njit(**INLINE)
def observe(memory, env, main, side):
    """Writes one environment's results; ``main`` and ``side`` are the throttles that this step used.

    The reward is the growth of a potential (``shaping``) less fuel, or a fixed prize at the end of an episode.
    """
    rows, status, shaping, observations = memory.world.rows, memory.world.status, memory.shaping, memory.observations
    center_y = rows[env, at.MASS_CENTER_Y]
    x = (np.float64(rows[env, solver.CENTER_X] + rows[env, solver.SIN] * center_y) - _HALF_W) / _HALF_W
    y = (np.float64(rows[env, solver.CENTER_Y] - rows[env, solver.COS] * center_y) - _STANDING_Y) / _HALF_H
    vx = np.float64(rows[env, solver.VELOCITY_X]) * _HALF_W / lander.FPS
    vy = np.float64(rows[env, solver.VELOCITY_Y]) * _HALF_H / lander.FPS
    angle = np.float64(rows[env, solver.ANGLE])
    leg_0 = 1.0 if status[env, solver.S_TOUCHES] & LEG_0_BIT != 0 else 0.0
    leg_1 = 1.0 if status[env, solver.S_TOUCHES] & LEG_1_BIT != 0 else 0.0
    observations[env, 0] = x
    observations[env, 1] = y
    observations[env, 2] = vx
    observations[env, 3] = vy
    observations[env, 4] = angle
    observations[env, 5] = 20.0 * np.float64(rows[env, solver.OMEGA]) / lander.FPS
    observations[env, 6] = leg_0
    observations[env, 7] = leg_1
    potential = (
        -100 * math.sqrt(x * x + y * y)
        - 100 * math.sqrt(vx * vx + vy * vy)
        - 100 * abs(angle)
        + 10 * leg_0
        + 10 * leg_1
    )
    reward = potential - shaping[env] if status[env, at.S_HAS_SHAPING] != 0 else 0.0
    shaping[env] = potential
    status[env, at.S_HAS_SHAPING] = 1
    reward -= main * lander.MAIN_ENGINE_COST
    reward -= side * lander.SIDE_ENGINE_COST
    terminated = False
    if status[env, solver.S_TOUCHED] & HULL_BIT != 0 or abs(x) >= 1.0:
        terminated = True
        reward = lander.CRASH_REWARD
    if rows[env, at.AWAKE] == np.float32(0):
        terminated = True
        reward = lander.LANDED_REWARD
    memory.rewards[env] = reward
    memory.terminations[env] = terminated
