"""What the solver is compared with: Box2D's own shapes and poses."""

from __future__ import annotations

from typing import Any

import Box2D
from Box2D.b2 import edgeShape, polygonShape


def polygon_of(points: Any) -> Any:
    return polygonShape(vertices=list(points))


def box_of(left: float, right: float, top: float, bottom: float) -> Any:
    return polygonShape(vertices=[(right, bottom), (right, top), (left, top), (left, bottom)])


def edge_of(x1: float, y1: float, x2: float, y2: float) -> Any:
    return edgeShape(vertices=[(x1, y1), (x2, y2)])


def transform_of(x: float = 0.0, y: float = 0.0, angle: float = 0.0) -> Any:
    transform = Box2D.b2Transform()
    transform.SetIdentity()
    transform.position = (x, y)
    transform.angle = angle
    return transform
