"""Pictures of native landers: Gymnasium's scene, without the engines' sparks."""

from __future__ import annotations

from typing import Any

import pygame

from gym_dr.envs.box2d import scene
from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.constants import SCALE
from gym_dr.envs.box2d.lunar_lander.native.layout import BODIES, EDGES

_WHITE, _BLACK, _FLAG = (255, 255, 255), (0, 0, 0), (204, 204, 0)
_FILL, _OUTLINE = (128, 102, 230), (77, 77, 128)
_HELIPAD = [lander.CORNER_STEP * (lander.CHUNKS // 2 + side) for side in (-1, 1)]  # m, its flags


def render(arrays: Environments, env: int) -> Any:
    """An array ``(400, 600, 3)`` uint8 of one sub-environment."""
    surface = pygame.Surface((lander.VIEWPORT_W, lander.VIEWPORT_H))
    surface.fill(_WHITE)
    for edge in range(1, EDGES):
        # float32's rounding may put a whole number of pixels just below it
        x1, y1, x2, y2 = (round(float(v), 6) * SCALE for v in arrays.world.edges[env, edge, :4])
        scene.fill(surface, [(x1, y1), (x2, y2), (x2, lander.VIEWPORT_H), (x1, lander.VIEWPORT_H)], _BLACK)
    for body in range(BODIES):
        points = scene.body_points(arrays.world, env, body, SCALE)
        scene.fill(surface, points, _FILL)
        pygame.draw.aalines(surface, color=_OUTLINE, points=points, closed=True)
        _paint_flags(surface)  # again on top of each body, as Gymnasium does
    return scene.frame(surface)


def _paint_flags(surface: Any) -> None:
    """Paints the helipad's two flags."""
    low = lander.HELIPAD_Y * SCALE
    top = low + 50
    for place in _HELIPAD:
        x = place * SCALE
        pygame.draw.line(surface, color=_WHITE, start_pos=(x, low), end_pos=(x, top), width=1)
        scene.fill(surface, [(x, top), (x, top - 10), (x + 25, top - 5)], _FLAG)
