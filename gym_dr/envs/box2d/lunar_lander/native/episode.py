"""The start of an episode: terrain, bodies and their parameters, with random numbers in Gymnasium's order."""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.flags import KERNEL
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.box2d.lunar_lander.native import layout as fields
from gym_dr.envs.box2d.lunar_lander.native.layout import BODIES, EDGES, LANDER, LEG_0, LEG_1, ROW, STATUS
from gym_dr.envs.box2d.lunar_lander.native.shapes import HULL, LEG_INV_INERTIA, LEG_INV_MASS
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import place
from gym_dr.envs.box2d.solver.layout import DT, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import mass_properties, set_properties
from gym_dr.envs.box2d.solver.vectors import set_vector

HEIGHTS = lander.CHUNKS + 1
_FIRST, _SECOND = np.int64(0), np.int64(1)
_START, _END = np.int64(0), np.int64(2)  # of an edge, where its vectors lie
_TO_PIT = lander.WORLD_H / 2  # m, terrain is drawn from [0, this)
_ABOVE_TERRAIN = f32(lander.TERRAIN_SMOOTHING * 3 * lander.WORLD_H / 2 + 0.2)  # m, higher than any edge's fat box
_BASELINE = f32(lander.BASELINE_FRICTION)
_WIND_SPAN = lander.WIND_INDEX_HIGH - lander.WIND_INDEX_LOW

_rough_height, _corner = map(compile_formula, (physics.rough_height, physics.corner))


@njit(**KERNEL)
def _random_height(streams, env, i):
    """Height of the terrain before smoothing (m), drawn also where it is level."""
    return _rough_height(i, pcg64.uniform(streams, env, 0.0, _TO_PIT))


@njit(**KERNEL)
def _set_corner(terrain, env, i, left, middle, right):
    """Corner i ends edge i and begins edge i + 1."""
    x, y = _corner(i, left, middle, right)
    if i > 0:
        set_vector(terrain[env, i], _END, (f32(x), f32(y)))
    if i + 1 < EDGES:
        set_vector(terrain[env, i + 1], _START, (f32(x), f32(y)))


@njit(**KERNEL)
def _build_terrain(terrain, streams, env):
    """Edge 0 is flat at y = 0; the others join the corners of the terrain (m)."""
    set_vector(terrain[env, 0], _START, (ZERO, ZERO))
    set_vector(terrain[env, 0], _END, (f32(lander.WORLD_W), ZERO))
    first = _random_height(streams, env, _FIRST)
    second = _random_height(streams, env, _SECOND)
    left = first
    middle = second
    right = second
    for i in range(2, HEIGHTS):
        right = _random_height(streams, env, i)
        _set_corner(terrain, env, i - 1, left, middle, right)
        left = middle
        middle = right
    _set_corner(terrain, env, _FIRST, right, first, second)


@njit(**KERNEL)
def _apply_parameters(world, params, env):
    """Derived physics, once per episode: masses, motor impulse, friction."""
    rows, properties = world.rows, world.properties
    density = f32(params[env, fields.P_LANDER_DENSITY])
    hull = mass_properties(world.shapes, HULL, density)
    rows[env, fields.INV_MASS], rows[env, fields.INV_INERTIA], _, rows[env, fields.MASS_CENTER_Y] = hull
    rows[env, fields.MOTOR_LIMIT] = DT * f32(params[env, fields.P_LEG_SPRING_TORQUE])
    rows[env, fields.GRAVITY] = f32(params[env, fields.P_GRAVITY])
    set_properties(properties, env, LANDER, hull, f32(lander.LANDER_FRICTION))
    for leg in range(1, BODIES):
        leg_mass = LEG_INV_MASS, LEG_INV_INERTIA, ZERO, ZERO  # a box has its center of mass in the middle
        set_properties(properties, env, leg, leg_mass, f32(lander.LEG_FRICTION))
    for edge in range(EDGES):
        world.edges[env, edge, at.EDGE_FRICTION] = f32(params[env, fields.P_GROUND_FRICTION]) if edge > 0 else _BASELINE
    world.highest[env] = _ABOVE_TERRAIN


@njit(**KERNEL)
def begin(arrays, env):
    """Builds a new world; returns the random push on the lander (N), which its first step applies."""
    world, params, streams = arrays.world, arrays.params, arrays.streams
    rows, status = world.rows, world.status
    for k in range(ROW):
        rows[env, k] = ZERO
    for k in range(STATUS):
        status[env, k] = 0
    _apply_parameters(world, params, env)
    _build_terrain(world.edges, streams, env)
    x = lander.WORLD_W / 2
    y = f32(lander.WORLD_H)
    away = lander.LEG_AWAY / lander.SCALE
    place(world, env, LANDER, f32(x), y, ZERO)
    push = params[env, fields.P_INITIAL_RANDOM]
    push_x = pcg64.uniform(streams, env, -push, push - -push)
    push_y = pcg64.uniform(streams, env, -push, push - -push)
    if params[env, fields.P_ENABLE_WIND] != 0.0:
        status[env, fields.S_WIND] = pcg64.integer(streams, env, lander.WIND_INDEX_LOW, _WIND_SPAN)
        status[env, fields.S_TURBULENCE] = pcg64.integer(streams, env, lander.WIND_INDEX_LOW, _WIND_SPAN)
    place(world, env, LEG_0, f32(x + away), y, f32(-lander.LEG_TILT))
    place(world, env, LEG_1, f32(x - away), y, f32(lander.LEG_TILT))
    return f32(push_x), f32(push_y)
