"""Pictures of Box2D environments with pygame alone; Gymnasium's rendering needs Box2D.

Imported when the first picture is painted, since pygame takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pygame
from pygame import gfxdraw

from gym_dr.envs.box2d.solver import broad_phase
from gym_dr.envs.box2d.solver.arrays import World
from gym_dr.envs.box2d.solver.layout import BODY, COS, SIN

Color = tuple[int, int, int]
Points = Sequence[tuple[float, float]]  # pixels, from the lower left

origin = cast(Callable[[World, int, int], tuple[np.float32, np.float32]], broad_phase.origin.py_func)
"""A body's origin (m), from world, sub-environment and body."""


def fill(surface: Any, points: Points, color: Color) -> None:
    """Paints a filled polygon with smooth edges."""
    pygame.draw.polygon(surface, color=color, points=points)
    gfxdraw.aapolygon(surface, points, color)


def body_points(world: World, env: int, body: int, scale: float) -> list[tuple[float, float]]:
    """A body's corners in pixels."""
    row, shapes = world.rows[env, body * BODY :], world.shapes
    polygon = shapes.polygon[body]
    cosine, sine, size = row[COS], row[SIN], np.float32(scale)
    x, y = origin(world, env, body)
    corners = shapes.vertices[polygon, : 2 * shapes.counts[polygon]].reshape(-1, 2)
    return [(float((cosine * u - sine * v + x) * size), float((sine * u + cosine * v + y) * size)) for u, v in corners]


def frame(surface: Any) -> npt.NDArray[np.uint8]:
    """The surface the right way up, shape ``(height, width, 3)``."""
    flipped = pygame.transform.flip(surface, False, True)
    return np.transpose(np.array(pygame.surfarray.pixels3d(flipped)), axes=(1, 0, 2))
