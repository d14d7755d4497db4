"""Pictures of native walkers: Gymnasium's scene."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pygame
from pygame import gfxdraw

from gym_dr.compiled.pcg64 import generator
from gym_dr.envs.box2d import scene
from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.constants import SCALE, TERRAIN_STEP, VIEWPORT_H, VIEWPORT_W
from gym_dr.envs.box2d.bipedal_walker.native.layout import (
    HULL,
    LOWER_0,
    LOWER_1,
    OBSERVATION,
    P_LIDAR_RANGE,
    UPPER_0,
    UPPER_1,
)
from gym_dr.envs.box2d.bipedal_walker.physics import ray_end
from gym_dr.envs.box2d.solver.layout import S_BOXES

_SKY, _WHITE, _EARTH, _RAY = (215, 215, 255), (255, 255, 255), (102, 153, 76), (255, 0, 0)
_BOX_OUTLINE, _FLAG, _BLACK = (153, 153, 153), (230, 51, 0), (0, 0, 0)
_VIEW = VIEWPORT_W / SCALE  # m
# what is painted last is in front: fill and outline
_BODIES = (
    (UPPER_0, (178, 101, 152), (127, 76, 101)),
    (LOWER_0, (178, 101, 152), (127, 76, 101)),
    (UPPER_1, (128, 51, 102), (77, 26, 51)),
    (LOWER_1, (128, 51, 102), (77, 26, 51)),
    (HULL, (127, 51, 229), (76, 76, 127)),
)
_FIRST_RAY = OBSERVATION - walker.LIDAR_RAYS  # of an observation
_RAY_PICTURES = 100  # in a row, of which the first show the lidar's rays in turn, to and fro
_FIRST_PICTURE = 61  # so that the first picture shows the second ray, as Gymnasium's does
_SINCE_CLOUDS = walker.CLOUDS * (1 + 2 * walker.CLOUD_CORNERS) + 1  # random numbers: the clouds, and the first force


def render(arrays: Environments, env: int) -> Any:
    """An array ``(400, 600, 3)`` uint8 of one sub-environment."""
    x, y = (float(v) for v in scene.origin(arrays.world, env, int(HULL)))
    scroll = x - VIEWPORT_W / SCALE / 5
    surface = pygame.Surface((VIEWPORT_W + max(0.0, scroll) * SCALE, VIEWPORT_H))
    left = scroll * SCALE
    sky = [(left, 0), (left + VIEWPORT_W, 0), (left + VIEWPORT_W, VIEWPORT_H), (left, VIEWPORT_H)]
    pygame.draw.polygon(surface, color=_SKY, points=sky)
    _paint_clouds(surface, arrays, env, scroll)
    _paint_earth(surface, arrays, env, scroll)
    _paint_ray(surface, arrays, env, x, y)
    _paint_ground(surface, arrays, env)
    for body, fill, outline in _BODIES:
        points = scene.body_points(arrays.world, env, int(body), SCALE)
        scene.fill(surface, points, fill)
        _paint_outline(surface, points, outline)
    _paint_flag(surface)
    return scene.frame(surface)[:, -VIEWPORT_W:]


def _paint_ray(surface: Any, arrays: Environments, env: int, x: float, y: float) -> None:
    """Paints one of the lidar's rays now and then, a different one as the walker moves (in Gymnasium, each frame)."""
    i = (int(x * SCALE) + _FIRST_PICTURE) % _RAY_PICTURES
    if i >= 2 * walker.LIDAR_RAYS:
        return
    i = i if i < walker.LIDAR_RAYS else 2 * walker.LIDAR_RAYS - 1 - i
    length = arrays.params[env, P_LIDAR_RANGE] * float(arrays.observations[env, _FIRST_RAY + i])
    end_x, end_y = ray_end(x, y, i, length)
    end = end_x * SCALE, end_y * SCALE
    pygame.draw.line(surface, color=_RAY, start_pos=(x * SCALE, y * SCALE), end_pos=end, width=1)


def _paint_clouds(surface: Any, arrays: Environments, env: int, scroll: float) -> None:
    """Paints the clouds, which the physics only skips in the random stream: steps draw nothing, so they are found."""
    rng = generator(arrays.streams[env])
    rng.bit_generator.advance(-_SINCE_CLOUDS)  # type: ignore[attr-defined]  # PCG64's
    for _ in range(walker.CLOUDS):
        middle, corners = rng.uniform(0, walker.TERRAIN_LENGTH) * TERRAIN_STEP, []
        for corner in range(walker.CLOUD_CORNERS):
            angle = 3.14 * 2 * corner / walker.CLOUD_CORNERS
            x = middle + 15 * TERRAIN_STEP * math.sin(angle) + rng.uniform(0, 5 * TERRAIN_STEP)
            y = VIEWPORT_H / SCALE * 3 / 4 + 5 * TERRAIN_STEP * math.cos(angle) + rng.uniform(0, 5 * TERRAIN_STEP)
            corners.append((x, y))
        if max(x for x, _ in corners) >= scroll / 2 and min(x for x, _ in corners) <= scroll / 2 + _VIEW:
            scene.fill(surface, [(x * SCALE + scroll * SCALE / 2, y * SCALE) for x, y in corners], _WHITE)


def _paint_earth(surface: Any, arrays: Environments, env: int, scroll: float) -> None:
    """Paints what is below the ground."""
    for x1, y1, x2, y2 in arrays.world.edges[env, :, :4].tolist():
        if scroll <= x2 and x1 <= scroll + _VIEW:
            x1, y1, x2, y2 = (round(v, 6) * SCALE for v in (x1, y1, x2, y2))  # the way back from float32
            scene.fill(surface, [(x1, y1), (x2, y2), (x2, 0.0), (x1, 0.0)], _EARTH)


def _paint_ground(surface: Any, arrays: Environments, env: int) -> None:
    """Paints edges and boxes of the ground, from the far end to the near one as Gymnasium does."""
    edges = arrays.world.edges[env, :, :4] * np.float32(SCALE)
    for i in range(len(edges) - 1, -1, -1):
        x1, y1, x2, y2 = edges[i].tolist()
        color = (76, 255 if i % 2 == 0 else 204, 76)
        pygame.draw.aaline(surface, start_pos=(x1, y1), end_pos=(x2, y2), color=color)
    for box in reversed(arrays.world.boxes[env, : arrays.world.status[env, S_BOXES], :8]):
        corners = (box * np.float32(SCALE)).reshape(4, 2).tolist()
        points = [(x, y) for x, y in corners]
        scene.fill(surface, points, _WHITE)
        _paint_outline(surface, points, _BOX_OUTLINE)


def _paint_outline(surface: Any, points: list[tuple[float, float]], color: scene.Color) -> None:
    closed = [*points, points[0]]
    pygame.draw.polygon(surface, color=color, points=closed, width=1)
    gfxdraw.aapolygon(surface, closed, color)


def _paint_flag(surface: Any) -> None:
    """Paints the flag at the start."""
    low = walker.TERRAIN_HEIGHT * SCALE
    top = low + 50
    x = TERRAIN_STEP * 3 * SCALE
    pygame.draw.aaline(surface, color=_BLACK, start_pos=(x, low), end_pos=(x, top))
    corners = [(x, top), (x, top - 10), (x + 25, top - 5)]
    pygame.draw.polygon(surface, color=_FLAG, points=corners)
    pygame.draw.lines(surface, color=_BLACK, points=[*corners, corners[0]], width=1, closed=False)
