"""Rotations and poses of vectors in the plane, with the order of operations of Box2D's ``b2Rot`` and ``b2Transform``.

A rotation is ``(cosine, sine)``; a pose is ``(cosine, sine, x, y)`` of a body's frame, whose origin is at (x, y) m.
"""

from __future__ import annotations

from numba import njit

from gym_dr.compiled.flags import INLINE


@njit(**INLINE)
def turned(rotation, vector):
    """A vector of a body's frame in the world (``b2Mul`` of a b2Rot)."""
    cosine, sine = rotation
    x, y = vector
    return cosine * x - sine * y, sine * x + cosine * y


@njit(**INLINE)
def placed(pose, point):
    """A point of a body's frame in the world (``b2Mul`` of a b2Transform)."""
    cosine, sine, origin_x, origin_y = pose
    x, y = turned((cosine, sine), point)
    return x + origin_x, y + origin_y


@njit(**INLINE)
def pose_of(rotation, center, local):
    """The pose of a body whose center of mass is at ``center`` in the world and at ``local`` in its frame."""
    x, y = turned(rotation, local)
    return rotation[0], rotation[1], center[0] - x, center[1] - y


@njit(**INLINE)
def either(condition, first, second):
    """One of two vectors, without a branch."""
    return first[0] if condition else second[0], first[1] if condition else second[1]


@njit(**INLINE)
def farthest(vectors, first, count, x, y):
    """Index of the first of ``count`` vectors, x and y from ``vectors[first]`` on, that is farthest along (x, y)."""
    found = 0
    largest = vectors[first] * x + vectors[first + 1] * y
    for i in range(1, count):
        along = vectors[first + 2 * i] * x + vectors[first + 2 * i + 1] * y
        if along > largest:
            largest = along
            found = i
    return found
