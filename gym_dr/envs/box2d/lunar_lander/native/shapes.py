"""The two convex polygons, hull and leg, and their mass: Box2D's ``b2PolygonShape`` in float32.

All lengths are in metres in the body's own frame, whose origin is where the drawing puts the body. Only the hull's
density varies, so only the hull's mass is a function; a leg's is a constant.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.compiled.options import INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander import constants as lander

f32 = np.float32
Float32Array = npt.NDArray[np.float32]


def _hull_from_right(points: tuple[tuple[float, float], ...]) -> list[tuple[np.float32, np.float32]]:
    """The vertices counter-clockwise from the rightmost (the lower of two), where Box2D's convex hull starts."""
    centre_x = sum(x for x, _ in points) / len(points)
    centre_y = sum(y for _, y in points) / len(points)
    ordered = sorted(points, key=lambda p: np.arctan2(p[1] - centre_y, p[0] - centre_x))
    start = ordered.index(max(ordered, key=lambda p: (p[0], -p[1])))
    return [(f32(x / lander.SCALE), f32(y / lander.SCALE)) for x, y in ordered[start:] + ordered[:start]]


def _normals(vertices: list[tuple[np.float32, np.float32]]) -> list[tuple[np.float32, np.float32]]:
    """Outward unit normal of the edge that leaves each vertex."""
    normals = []
    for (x1, y1), (x2, y2) in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        edge_x, edge_y = x2 - x1, y2 - y1
        inverse_length = f32(1) / np.sqrt(edge_x * edge_x + edge_y * edge_y)
        normals.append((edge_y * inverse_length, -edge_x * inverse_length))
    return normals


def _centroid(vertices: list[tuple[np.float32, np.float32]]) -> tuple[np.float32, np.float32]:
    """Area centroid by triangles from the body's origin (``ComputeCentroid`` of b2PolygonShape.cpp)."""
    area = x = y = f32(0)
    third = f32(f32(1) / f32(3))
    for (x1, y1), (x2, y2) in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        triangle = f32(0.5) * (x1 * y2 - y1 * x2)
        area = area + triangle
        x = x + triangle * third * ((f32(0) + x1) + x2)
        y = y + triangle * third * ((f32(0) + y1) + y2)
    return x * (f32(1) / area), y * (f32(1) / area)


_HULL_POINTS = _hull_from_right(lander.LANDER_POLY)
_LEG_X, _LEG_Y = f32(lander.LEG_W / lander.SCALE), f32(lander.LEG_H / lander.SCALE)
_LEG_POINTS = [(-_LEG_X, -_LEG_Y), (_LEG_X, -_LEG_Y), (_LEG_X, _LEG_Y), (-_LEG_X, _LEG_Y)]  # SetAsBox
_LEG_NORMALS = [(f32(0), f32(-1)), (f32(1), f32(0)), (f32(0), f32(1)), (f32(-1), f32(0))]

HULL, LEG = np.int64(0), np.int64(1)  # which polygon a body has
MAX_VERTICES = 6
VERTEX_COUNT = np.array([len(_HULL_POINTS), len(_LEG_POINTS)], np.int64)

VERTICES: Float32Array = np.zeros((2, MAX_VERTICES, 2), np.float32)  # m, (polygon, vertex, x or y)
NORMALS: Float32Array = np.zeros((2, MAX_VERTICES, 2), np.float32)
CENTROID: Float32Array = np.zeros((2, 2), np.float32)  # m
VERTICES[HULL] = _HULL_POINTS
VERTICES[LEG, :4] = _LEG_POINTS
NORMALS[HULL] = _normals(_HULL_POINTS)
NORMALS[LEG, :4] = _LEG_NORMALS
CENTROID[HULL] = _centroid(_HULL_POINTS)

LINEAR_SLOP = f32(0.005)  # m, b2_linearSlop
ANGULAR_SLOP = f32(f32(2) / f32(180) * f32(3.14159265359))  # rad, b2_angularSlop
SKIN = f32(f32(2) * LINEAR_SLOP)  # m, b2_polygonRadius: polygons and edges are rounded by this much

# Distance of the farthest vertex from the centre of mass, generously: bounds how far a rotation can swing a corner.
REACH: Float32Array = np.array(
    [f32(1.05) * np.sqrt((v.astype(np.float64) ** 2).sum(axis=1)).max() for v in VERTICES], np.float32
)


@njit(**INLINE)
def segment(terrain, env, edge):
    """The ends of an edge of the ground (m): x1, y1, x2, y2."""
    return terrain[env, edge, 0], terrain[env, edge, 1], terrain[env, edge, 2], terrain[env, edge, 3]


@njit(**KERNEL)
def mass_properties(polygon, density):
    """Inverse mass (1/kg), inverse inertia about the centre of mass (1/(kg m^2)) and height of that centre (m).

    ``b2PolygonShape::ComputeMass``, then ``b2Body::ResetMassData``. The polygons are symmetric: the centre's x is 0.
    """
    count = VERTEX_COUNT[polygon]
    sum_x = f32(0)
    sum_y = f32(0)
    for i in range(count):
        sum_x += VERTICES[polygon, i, 0]
        sum_y += VERTICES[polygon, i, 1]
    scale = f32(1) / f32(count)
    sum_x *= scale
    sum_y *= scale
    third = f32(1) / f32(3)
    area = f32(0)
    inertia = f32(0)
    x = f32(0)
    y = f32(0)
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        x1 = VERTICES[polygon, i, 0] - sum_x
        y1 = VERTICES[polygon, i, 1] - sum_y
        x2 = VERTICES[polygon, j, 0] - sum_x
        y2 = VERTICES[polygon, j, 1] - sum_y
        cross = x1 * y2 - y1 * x2
        triangle = f32(0.5) * cross
        area += triangle
        x += (triangle * third) * (x1 + x2)
        y += (triangle * third) * (y1 + y2)
        second_x = (x1 * x1 + x2 * x1) + x2 * x2
        second_y = (y1 * y1 + y2 * y1) + y2 * y2
        inertia += ((f32(0.25) * third) * cross) * (second_x + second_y)
    mass = density * area
    inverse_area = f32(1) / area
    x *= inverse_area
    y *= inverse_area
    centre_x = x + sum_x
    centre_y = y + sum_y
    about_origin = density * inertia
    about_origin += mass * ((centre_x * centre_x + centre_y * centre_y) - (x * x + y * y))
    inverse_mass = f32(1) / mass
    local_x = (mass * centre_x) * inverse_mass
    local_y = (mass * centre_y) * inverse_mass
    about_centre = about_origin - mass * (local_x * local_x + local_y * local_y)
    return inverse_mass, f32(1) / about_centre, local_y


LEG_INV_MASS, LEG_INV_INERTIA, _ = (f32(value) for value in mass_properties.py_func(LEG, f32(lander.LEG_DENSITY)))
