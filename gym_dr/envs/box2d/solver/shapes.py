"""Convex polygons and their mass: Box2D's ``b2PolygonShape`` in float32.

All lengths are in meters in the body's own frame, whose origin is where Gymnasium places the body.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Indices
from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import f32
from gym_dr.envs.box2d.solver.vectors import dot, times

LINEAR_SLOP = f32(0.005)  # m, b2_linearSlop
ANGULAR_SLOP = f32(f32(2) / f32(180) * f32(3.14159265359))  # rad, b2_angularSlop
SKIN = f32(f32(2) * LINEAR_SLOP)  # m, b2_polygonRadius: polygons and edges are rounded by this much
EPSILON = f32(1.1920929e-7)  # FLT_EPSILON
THIRD = f32(f32(1) / f32(3))


class Shapes(NamedTuple):
    """The shapes of a family's bodies."""

    polygon: Indices  # (bodies,) which polygon a body has
    counts: Indices  # (polygons,) of vertices
    vertices: Floats  # (polygons, 2 * most vertices) m, x and y of each, counter-clockwise
    normals: Floats  # (polygons, 2 * most vertices) outward, of the edge that leaves each vertex
    centroid: Floats  # (polygons, 2) m
    reach: Floats  # (polygons,) m, at least the distance of the farthest vertex from the center of mass
    one_ground: bool  # whether all shapes of the ground are on one static body, or each on its own


@njit(**INLINE)
def unit(vector):
    """The vector divided by its length, or itself if the length is almost 0 (``b2Vec2::Normalize``)."""
    length = math.sqrt(dot(vector, vector))
    return times(f32(1) / length if length >= EPSILON else f32(1), vector)


@njit(**KERNEL)
def centroid(vertices, count):
    """Area centroid by triangles from the frame's origin; ``vertices`` is flat, x and y of each."""
    area = f32(0)
    x = f32(0)
    y = f32(0)
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        x1, y1, x2, y2 = vertices[2 * i], vertices[2 * i + 1], vertices[2 * j], vertices[2 * j + 1]
        triangle = f32(0.5) * (x1 * y2 - y1 * x2)
        area += triangle
        x += (triangle * THIRD) * (x1 + x2)
        y += (triangle * THIRD) * (y1 + y2)
    inverse = f32(1) / area
    return x * inverse, y * inverse


@njit(**KERNEL)
def set_normals(vertices, count, normals):
    """Outward unit normal of the edge that leaves each vertex; both flat, x and y of each."""
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        edge_x = vertices[2 * j] - vertices[2 * i]
        edge_y = vertices[2 * j + 1] - vertices[2 * i + 1]
        inverse = f32(1) / np.sqrt(edge_x * edge_x + edge_y * edge_y)
        normals[2 * i] = edge_y * inverse
        normals[2 * i + 1] = -edge_x * inverse


class Polygon(NamedTuple):
    """A convex polygon, vertices counter-clockwise."""

    vertices: Floats  # (n, 2) m
    normals: Floats  # (n, 2) outward, of the edge that leaves each vertex


def hull(points: Sequence[tuple[float, float]], scale: float) -> Polygon:
    """Points divided by ``scale``, from the rightmost on (the lower of two), where Box2D's convex hull starts."""
    center_x = sum(x for x, _ in points) / len(points)
    center_y = sum(y for _, y in points) / len(points)
    ordered = sorted(points, key=lambda p: math.atan2(p[1] - center_y, p[0] - center_x))
    start = ordered.index(max(ordered, key=lambda p: (p[0], -p[1])))
    vertices = np.array([(x / scale, y / scale) for x, y in ordered[start:] + ordered[:start]], np.float32)
    normals = np.zeros_like(vertices)
    set_normals.py_func(vertices.ravel(), len(vertices), normals.ravel())
    return Polygon(vertices, normals)


def box(half_width: float, half_height: float) -> Polygon:
    """A box around the origin (``SetAsBox``)."""
    x, y = half_width, half_height
    vertices = np.array([(-x, -y), (x, -y), (x, y), (-x, y)], np.float32)
    return Polygon(vertices, np.array([(0, -1), (1, 0), (0, 1), (-1, 0)], np.float32))


def make_shapes(polygons: Sequence[Polygon], polygon: Sequence[np.int64], *, one_ground: bool) -> Shapes:
    """Tables of some polygons.

    Args:
        polygons: All polygons.
        polygon: Index of each body's polygon.
        one_ground: See ``Shapes``.
    """
    counts = np.array([len(p.vertices) for p in polygons], np.int64)
    vertices = np.zeros((len(polygons), 2 * counts.max()), np.float32)
    normals, centroids = np.zeros_like(vertices), np.zeros((len(polygons), 2), np.float32)
    reach = np.zeros(len(polygons), np.float32)
    for i, (own, directions) in enumerate(polygons):
        vertices[i, : own.size], normals[i, : own.size] = own.ravel(), directions.ravel()
        centroids[i] = centroid.py_func(own.ravel(), len(own))
        reach[i] = 1.2 * np.hypot(*own.T).max()
    return Shapes(np.array(polygon, np.int64), counts, vertices, normals, centroids, reach, one_ground)


@njit(**KERNEL)
def mass_properties(shapes, polygon, density):
    """Inverse mass (1/kg), inverse inertia about the center of mass (1/(kg m^2)) and that center (x and y, m).

    ``b2PolygonShape::ComputeMass``, then ``b2Body::ResetMassData``.
    """
    vertices = shapes.vertices
    count = shapes.counts[polygon]
    sum_x = f32(0)
    sum_y = f32(0)
    for i in range(count):
        sum_x += vertices[polygon, 2 * i]
        sum_y += vertices[polygon, 2 * i + 1]
    scale = f32(1) / f32(count)
    sum_x *= scale
    sum_y *= scale
    area = f32(0)
    inertia = f32(0)
    x = f32(0)
    y = f32(0)
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        x1 = vertices[polygon, 2 * i] - sum_x
        y1 = vertices[polygon, 2 * i + 1] - sum_y
        x2 = vertices[polygon, 2 * j] - sum_x
        y2 = vertices[polygon, 2 * j + 1] - sum_y
        cross = x1 * y2 - y1 * x2
        triangle = f32(0.5) * cross
        area += triangle
        x += (triangle * THIRD) * (x1 + x2)
        y += (triangle * THIRD) * (y1 + y2)
        second_x = (x1 * x1 + x2 * x1) + x2 * x2
        second_y = (y1 * y1 + y2 * y1) + y2 * y2
        inertia += ((f32(0.25) * THIRD) * cross) * (second_x + second_y)
    mass = density * area
    inverse_area = f32(1) / area
    x *= inverse_area
    y *= inverse_area
    center_x = x + sum_x
    center_y = y + sum_y
    about_origin = density * inertia
    about_origin += mass * ((center_x * center_x + center_y * center_y) - (x * x + y * y))
    inverse_mass = f32(1) / mass
    local_x = (mass * center_x) * inverse_mass
    local_y = (mass * center_y) * inverse_mass
    about_center = about_origin - mass * (local_x * local_x + local_y * local_y)
    return inverse_mass, f32(1) / about_center, local_x, local_y


@njit(**KERNEL)
def set_properties(properties, env, body, mass, friction):
    """Stores a body's ``mass_properties`` and friction."""
    for k in range(4):
        properties[env, body, at.INV_MASS + k] = mass[k]
    properties[env, body, at.FRICTION] = friction
