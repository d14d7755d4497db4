"""Vectors ``(x, y)`` in the plane, with the order of operations of Box2D's ``b2Vec2``, ``b2Rot`` and ``b2Transform``.

A rotation is ``(cosine, sine)``; a pose is ``(cosine, sine, x, y)`` of a body's frame, whose origin is at (x, y) m.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE

HALF = np.float32(0.5)


@njit(**INLINE)
def vector(flat, place):
    """The vector that a flat array has from a place on."""
    return flat[place], flat[place + 1]


@njit(**INLINE)
def set_vector(flat, place, value):
    """Stores a vector."""
    flat[place] = value[0]
    flat[place + 1] = value[1]


@njit(**INLINE)
def minus(a, b):
    """The difference."""
    return a[0] - b[0], a[1] - b[1]


@njit(**INLINE)
def negative(a):
    """The vector the other way round."""
    return -a[0], -a[1]


@njit(**INLINE)
def middle_of(a, b):
    """The point halfway between two."""
    return HALF * (a[0] + b[0]), HALF * (a[1] + b[1])


@njit(**INLINE)
def times(factor, a):
    """A vector times a number."""
    return factor * a[0], factor * a[1]


@njit(**INLINE)
def along(start, distance, direction):
    """The point that lies ``distance * direction`` from the start."""
    return start[0] + distance * direction[0], start[1] + distance * direction[1]


@njit(**INLINE)
def dot(a, b):
    """The scalar product."""
    return a[0] * b[0] + a[1] * b[1]


@njit(**INLINE)
def cross(a, b):
    """The vector product, which is a number in the plane."""
    return a[0] * b[1] - a[1] * b[0]


@njit(**INLINE)
def turned(rotation, vector):
    """A vector of a body's frame in the world (``b2Mul`` of a b2Rot); a pose also tells the rotation."""
    cosine, sine = rotation[0], rotation[1]
    x, y = vector
    return cosine * x - sine * y, sine * x + cosine * y


@njit(**INLINE)
def turned_back(rotation, vector):
    """A vector of the world in a body's frame (``b2MulT`` of a b2Rot)."""
    cosine, sine = rotation[0], rotation[1]
    x, y = vector
    return cosine * x + sine * y, -sine * x + cosine * y


@njit(**INLINE)
def placed(pose, point):
    """A point of a body's frame in the world (``b2Mul`` of a b2Transform)."""
    x, y = turned(pose, point)
    return x + pose[2], y + pose[3]


@njit(**INLINE)
def pose_of(rotation, center, local):
    """The pose of a body whose center of mass is at ``center`` in the world and at ``local`` in its frame."""
    x, y = turned(rotation, local)
    return rotation[0], rotation[1], center[0] - x, center[1] - y


@njit(**INLINE)
def clamped(number, low, high):
    """A number within bounds, without a branch; nan stays."""
    number = high if number > high else number
    return low if number < low else number


@njit(**INLINE)
def either(condition, first, second):
    """One of two vectors, without a branch."""
    return first[0] if condition else second[0], first[1] if condition else second[1]


@njit(**INLINE)
def farthest(vectors, first, count, direction):
    """Index of the first of ``count`` vectors, from ``vectors[first]`` on, that is farthest along a direction."""
    found = 0
    largest = dot(vector(vectors, first), direction)
    for i in range(1, count):
        reach = dot(vector(vectors, first + 2 * i), direction)
        if reach > largest:
            largest = reach
            found = i
    return found
