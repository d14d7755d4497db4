"""The start of an episode: terrain, bodies and their parameters, with random numbers in Gymnasium's order."""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.flags import KERNEL
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.native import layout as fields
from gym_dr.envs.box2d.bipedal_walker.native import shapes
from gym_dr.envs.box2d.bipedal_walker.native.layout import (
    BODIES,
    HULL,
    LOWER_0,
    LOWER_1,
    ROW,
    STATUS,
    UPPER_0,
    UPPER_1,
)
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import begin_contacts, place
from gym_dr.envs.box2d.solver.layout import ZERO, f32
from gym_dr.envs.box2d.solver.shapes import centroid, mass_properties, set_normals, set_properties
from gym_dr.envs.box2d.solver.vectors import set_vector

_EDGES = walker.TERRAIN_LENGTH - 1
_CLOUD_DRAWS = walker.CLOUDS * (1 + 2 * walker.CLOUD_CORNERS)
_ALL = np.int64((1 << BODIES) - 1)
_FAT = f32(0.2)  # m, more than the margin of a fat box of the ground
_UPPER_Y, _LOWER_Y = f32(walker.UPPER_Y), f32(walker.LOWER_Y)


@njit(**KERNEL)
def _obstacles(params, env):
    """Parameters of the hardcore variant."""
    return ground.Obstacles(
        params[env, fields.P_OBSTACLES],
        params[env, fields.P_OBSTACLES + 1],
        params[env, fields.P_OBSTACLES + 2],
        params[env, fields.P_OBSTACLES + 3],
        params[env, fields.P_OBSTACLES + 4],
        params[env, fields.P_OBSTACLES + 5],
        params[env, fields.P_OBSTACLES + 6],
    )


@njit(**KERNEL)
def _set_box(boxes, env, i, box, friction):
    """A box of the ground: corners as Box2D orders them, from the right one below on."""
    left, right, top, bottom = f32(box[0]), f32(box[1]), f32(box[2]), f32(box[3])
    own = boxes[env, i]
    own[0], own[1], own[2], own[3] = right, bottom, right, top
    own[4], own[5], own[6], own[7] = left, top, left, bottom
    corners = own[: at.BOX_NORMALS]
    set_normals(corners, np.int64(at.BOX_CORNERS), own[at.BOX_NORMALS : at.BOX_CENTROID])
    set_vector(own, np.int64(at.BOX_CENTROID), centroid(corners, np.int64(at.BOX_CORNERS)))
    own[at.BOX_FRICTION] = friction


@njit(**KERNEL)
def _build_terrain(walkers, env):
    """Edges and boxes of the ground."""
    arrays, heights, boxes = walkers.arrays, walkers.heights, walkers.boxes
    world, params = arrays.world, arrays.params
    hardcore = params.shape[1] > fields.P_OBSTACLES
    obstacles = _obstacles(params, env) if hardcore else ground.Obstacles(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    roughness = params[env, fields.P_ROUGHNESS]
    count = ground.generate(arrays.streams, env, roughness, hardcore, obstacles, heights, boxes)
    friction = f32(params[env, fields.P_GROUND_FRICTION])
    highest = f32(heights[0])
    for i in range(_EDGES):
        world.edges[env, i, 0] = f32(i * walker.TERRAIN_STEP)
        world.edges[env, i, 1] = f32(heights[i])
        world.edges[env, i, 2] = f32((i + 1) * walker.TERRAIN_STEP)
        world.edges[env, i, 3] = f32(heights[i + 1])
        world.edges[env, i, at.EDGE_FRICTION] = friction
        highest = max(highest, f32(heights[i + 1]))
    for i in range(count):
        _set_box(world.boxes, env, i, boxes[i], friction)
        highest = max(highest, f32(boxes[i, 2]))
    world.status[env, at.S_BOXES] = count
    world.highest[env] = highest + _FAT


@njit(**KERNEL)
def _apply_parameters(world, params, env):
    """Derived physics, once per episode: masses, friction, joint limits."""
    rows, properties, polygons = world.rows, world.properties, world.shapes
    hull = mass_properties(polygons, shapes.HULL, f32(params[env, fields.P_HULL_DENSITY]))
    upper = mass_properties(polygons, shapes.UPPER, f32(params[env, fields.P_LEG_DENSITY]))
    lower = mass_properties(polygons, shapes.LOWER, f32(params[env, fields.P_LEG_DENSITY]))
    for k in range(2):
        rows[env, fields.UPPER_INV_MASS + k] = upper[k]
        rows[env, fields.LOWER_INV_MASS + k] = lower[k]
    for k in range(4):
        rows[env, fields.HULL_INV_MASS + k] = hull[k]
        rows[env, fields.HIP_LOWER + k] = f32(params[env, fields.P_HIP_LOWER + k])
    rows[env, fields.GRAVITY] = f32(params[env, fields.P_GRAVITY])
    friction = f32(params[env, fields.P_LEG_FRICTION])
    set_properties(properties, env, HULL, hull, f32(walker.HULL_FRICTION))
    set_properties(properties, env, UPPER_0, upper, friction)
    set_properties(properties, env, LOWER_0, lower, friction)
    set_properties(properties, env, UPPER_1, upper, friction)
    set_properties(properties, env, LOWER_1, lower, friction)


@njit(**KERNEL)
def begin(walkers, env):
    """Builds a new world; returns the random push on the hull (N), which its first step applies."""
    arrays = walkers.arrays
    world, params, streams = arrays.world, arrays.params, arrays.streams
    for k in range(ROW):
        world.rows[env, k] = ZERO
    for k in range(STATUS):
        world.status[env, k] = 0
    _apply_parameters(world, params, env)
    _build_terrain(walkers, env)
    for _ in range(_CLOUD_DRAWS):  # of Gymnasium's clouds
        pcg64.next_word(streams, env)
    x, y = f32(walker.START_X), f32(walker.START_Y)
    push = params[env, fields.P_INITIAL_RANDOM]
    force = pcg64.uniform(streams, env, -push, push - -push)
    place(world, env, HULL, x, y, ZERO)
    place(world, env, UPPER_0, x, _UPPER_Y, f32(-walker.LEG_TILT))
    place(world, env, LOWER_0, x, _LOWER_Y, f32(-walker.LEG_TILT))
    place(world, env, UPPER_1, x, _UPPER_Y, f32(walker.LEG_TILT))
    place(world, env, LOWER_1, x, _LOWER_Y, f32(walker.LEG_TILT))
    begin_contacts(world, env, _ALL)
    return f32(force)
