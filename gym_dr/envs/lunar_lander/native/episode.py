"""The start of an episode: terrain, bodies, and what the parameters make of them, in Gymnasium's order of draws."""

from __future__ import annotations

import numpy as np
from numba import njit

from .. import constants as lander
from . import broad_phase, shapes, stream
from .compiler import KERNEL
from .layout import (
    ANGLE,
    BODY,
    CENTER_X,
    CENTER_Y,
    COS,
    DT,
    EDGES,
    FRICTION,
    GRAVITY,
    INV_INERTIA,
    INV_MASS,
    LANDER,
    LEG_0,
    LEG_1,
    MASS_CENTER_Y,
    MOTOR_LIMIT,
    P_ENABLE_WIND,
    P_GRAVITY,
    P_GROUND_FRICTION,
    P_INITIAL_RANDOM,
    P_LANDER_DENSITY,
    P_LEG_SPRING_TORQUE,
    ROW,
    S_TURBULENCE,
    S_WIND,
    SIN,
    STATUS,
)
from .trigonometry import sin_cos

f32 = np.float32
ZERO = f32(0)
CORNERS = lander.CHUNKS
_PAD = CORNERS // 2
HEIGHTS = CORNERS + 1
_TO_PIT = lander.WORLD_H / 2  # m, terrain is drawn from [0, this)
_CORNER_STEP = lander.WORLD_W / (CORNERS - 1)
_MIX = (f32(lander.LANDER_FRICTION), f32(lander.LEG_FRICTION))
_BASELINE = f32(lander.BASELINE_FRICTION)
_WIND_SPAN = lander.WIND_INDEX_HIGH - lander.WIND_INDEX_LOW


@njit(**KERNEL)
def _build_terrain(terrain, streams, env):
    """Edge 0 is flat at y = 0; the others join smoothed random heights that are level around the pad (m)."""
    heights = np.empty(HEIGHTS)
    for i in range(HEIGHTS):
        heights[i] = stream.uniform(streams, env, 0.0, _TO_PIT)
    for i in range(_PAD - 2, _PAD + 3):
        heights[i] = lander.HELIPAD_Y
    terrain[env, 0, 0] = ZERO
    terrain[env, 0, 1] = ZERO
    terrain[env, 0, 2] = f32(lander.WORLD_W)
    terrain[env, 0, 3] = ZERO
    for i in range(CORNERS):
        before = heights[i - 1] if i > 0 else heights[HEIGHTS - 1]  # Python's index -1
        x = f32(_CORNER_STEP * i)
        y = f32(lander.TERRAIN_SMOOTHING * (before + heights[i] + heights[i + 1]))
        if i > 0:
            terrain[env, i, 2] = x
            terrain[env, i, 3] = y
        if i + 1 < EDGES:
            terrain[env, i + 1, 0] = x
            terrain[env, i + 1, 1] = y


@njit(**KERNEL)
def _apply_parameters(rows, params, env):
    """Derived physics, once an episode: masses, motor impulse, mixed friction (the root of the product)."""
    inv_mass, inv_inertia, center_y = shapes.mass_properties(shapes.HULL, f32(params[env, P_LANDER_DENSITY]))
    rows[env, INV_MASS] = inv_mass
    rows[env, INV_INERTIA] = inv_inertia
    rows[env, MASS_CENTER_Y] = center_y
    rows[env, MOTOR_LIMIT] = DT * f32(params[env, P_LEG_SPRING_TORQUE])
    rows[env, GRAVITY] = f32(params[env, P_GRAVITY])
    ground = f32(params[env, P_GROUND_FRICTION])
    for i in range(2):
        rows[env, FRICTION + 2 * i] = np.sqrt(_BASELINE * _MIX[i])
        rows[env, FRICTION + 2 * i + 1] = np.sqrt(ground * _MIX[i])


@njit(**KERNEL)
def _place(rows, env, body, x, y, angle, mass_center_y):
    """A body at rest with its origin at (x, y) m and its angle in rad."""
    base = body * BODY
    sine, cosine = sin_cos(angle)
    rows[env, base + COS] = cosine
    rows[env, base + SIN] = sine
    rows[env, base + CENTER_X] = x - sine * mass_center_y
    rows[env, base + CENTER_Y] = y + cosine * mass_center_y
    rows[env, base + ANGLE] = angle
    broad_phase.first_box(rows, env, body, mass_center_y)


@njit(**KERNEL)
def begin(rows, terrain, status, params, streams, env):
    """Build a new world; returns the random push on the lander (N), which its first step applies."""
    for k in range(ROW):
        rows[env, k] = ZERO
    for k in range(STATUS):
        status[env, k] = 0
    _apply_parameters(rows, params, env)
    _build_terrain(terrain, streams, env)
    x = lander.WORLD_W / 2
    y = f32(lander.WORLD_H)
    away = lander.LEG_AWAY / lander.SCALE
    _place(rows, env, LANDER, f32(x), y, ZERO, rows[env, MASS_CENTER_Y])
    push = params[env, P_INITIAL_RANDOM]
    push_x = stream.uniform(streams, env, -push, push - -push)
    push_y = stream.uniform(streams, env, -push, push - -push)
    if params[env, P_ENABLE_WIND] != 0.0:
        status[env, S_WIND] = stream.integer(streams, env, lander.WIND_INDEX_LOW, _WIND_SPAN)
        status[env, S_TURBULENCE] = stream.integer(streams, env, lander.WIND_INDEX_LOW, _WIND_SPAN)
    _place(rows, env, LEG_0, f32(x + away), y, f32(-lander.LEG_TILT), ZERO)
    _place(rows, env, LEG_1, f32(x - away), y, f32(lander.LEG_TILT), ZERO)
    return f32(push_x), f32(push_y)
