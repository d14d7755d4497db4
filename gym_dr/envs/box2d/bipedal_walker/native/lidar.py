"""Ten rays from the hull to the ground, as Box2D casts them (``b2EdgeShape::RayCast``, ``b2PolygonShape::RayCast``).

Box2D queries a tree for the shapes that a ray may hit and shortens the ray at each hit. The result is the nearest hit,
whatever the order of the shapes; so only those below the ray are checked here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker import physics
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.broad_phase import segment
from gym_dr.envs.box2d.solver.layout import ONE, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import unit
from gym_dr.envs.box2d.solver.vectors import along, cross, dot, minus, vector

ROOM = f32(0.02)  # m, for rounding
_EDGES = walker.TERRAIN_LENGTH - 1

_ray_end = compile_formula(physics.ray_end)


@njit(**INLINE)
def _cast_edge(world, env, edge, ray, fraction):
    """Fraction of the ray up to an edge, or ``fraction`` if the ray does not reach it."""
    start, direction = ray
    first, second = segment(world, env, edge)
    # most edges lie clearly on one side of the ray, for which no root is needed
    room = ROOM * (abs(direction[0]) + abs(direction[1]))
    side_1 = cross(direction, minus(first, start))
    side_2 = cross(direction, minus(second, start))
    if (side_1 > room and side_2 > room) or (side_1 < -room and side_2 < -room):
        return fraction
    ex, ey = minus(second, first)
    normal = unit((ey, -ex))
    denominator = dot(normal, direction)
    if denominator == ZERO:
        return fraction
    t = dot(normal, minus(first, start)) / denominator
    if t < ZERO or fraction < t:
        return fraction
    share = dot(minus(along(start, t, direction), first), (ex, ey)) / dot((ex, ey), (ex, ey))
    return fraction if share < ZERO or share > ONE else t


@njit(**INLINE)
def _cast_box(world, env, i, ray, fraction):
    """Like ``_cast_edge``, for a box."""
    start, direction = ray
    box = world.boxes[env, i]
    lower = ZERO
    upper = fraction
    enters = False
    for k in range(at.BOX_CORNERS):
        normal = vector(box, at.BOX_NORMALS + 2 * k)
        numerator = dot(normal, minus(vector(box, 2 * k), start))
        denominator = dot(normal, direction)
        if denominator == ZERO:
            if numerator < ZERO:
                return fraction
        elif denominator < ZERO and numerator < lower * denominator:
            lower = numerator / denominator
            enters = True
        elif denominator > ZERO and numerator < upper * denominator:
            upper = numerator / denominator
        if upper < lower:
            return fraction
    return lower if enters else fraction


@njit(**INLINE)
def cast(world, env, x, y, i, reach):
    """Fraction of ray ``i``, of length ``reach`` (m), from (x, y) to the ground; 1 if it does not reach the ground."""
    far_x, far_y = _ray_end(np.float64(x), np.float64(y), i, reach)
    end_x, end_y = f32(far_x), f32(far_y)
    ray = (x, y), (end_x - x, end_y - y)
    fraction = ONE
    for box in range(world.status[env, at.S_BOXES]):
        left, right = world.boxes[env, box, 4], world.boxes[env, box, 0]
        if left <= end_x + ROOM and right >= x - ROOM:
            fraction = _cast_box(world, env, box, ray, fraction)
    first = np.int64(np.floor((x - ROOM) / world.edge_width)) - 1
    first = min(max(first, np.int64(0)), np.int64(_EDGES))
    for edge in range(first, _EDGES):
        if world.edges[env, edge, 0] > x + fraction * (end_x - x) + ROOM:
            break  # beyond the nearest hit so far
        fraction = _cast_edge(world, env, edge, ray, fraction)
    return fraction
