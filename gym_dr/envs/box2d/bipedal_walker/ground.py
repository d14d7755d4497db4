"""The terrain of an episode: 200 corner points joined by edges, and in the hardcore variant boxes of whole steps.

All implementations use one compiled function. Random numbers come from the environment's generator, in Gymnasium's
order; with nominal parameters the terrain equals Gymnasium's bit for bit. It consists of steps of 14/30 m:

- grass for 5 to 9 steps: its slope tends back to level and changes by ``roughness`` times a random number; after it,
  in the hardcore variant, one of three equally likely obstacles:
- a pit, ``pit_gap_low`` to ``pit_gap_high`` steps from one wall's left edge to the other's, four deep, walls one thick;
- a stump, a square of ``stump_height_low`` to ``stump_height_high`` steps;
- a flight of ``stair_steps`` or one more stairs, up or down, each four steps long and ``stair_height_low`` to
  ``stair_height_high`` high (the same for a flight).

Parameters are rounded to whole steps (halves up); a high below its low counts as the low. An obstacle of size 0 is left
out, and its stretch is level. A range of one value draws no random number, as in numpy; so the heights of stairs, which
Gymnasium does not draw, do not change its stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gym_dr.compiled import pcg64
from gym_dr.compiled.flags import KERNEL
from gym_dr.envs.box2d.bipedal_walker import constants as walker

GRASS, STUMP, STAIRS, PIT = range(4)
STEP = walker.TERRAIN_STEP
LENGTH = walker.TERRAIN_LENGTH
PIT_DEPTH = 4  # steps
STAIR_WIDTH = 4  # steps
MAX_BOXES = 64  # per episode; a test counts those of the worst parameters


class Obstacles(NamedTuple):
    """The parameters of the hardcore variant's obstacles, in steps."""

    pit_gap_low: float
    pit_gap_high: float
    stump_height_low: float
    stump_height_high: float
    stair_height_low: float
    stair_height_high: float
    stair_steps: float


@njit(**KERNEL)
def _whole(streams, env, low, high):
    """A random whole number from ``low`` to ``high``, both rounded."""
    first = np.int64(np.floor(low + 0.5))
    last = max(first, np.int64(np.floor(high + 0.5)))
    return first if last == first else pcg64.integer(streams, env, first, last - first + 1)


@njit(**KERNEL)
def _add_box(boxes, count, left, right, top, bottom):
    if count == boxes.shape[0]:  # parameters within their bounds never make as many
        return count
    boxes[count, 0] = left
    boxes[count, 1] = right
    boxes[count, 2] = top
    boxes[count, 3] = bottom
    return count + 1


@njit(**KERNEL)
def _add_pit(boxes, count, x, y, gap):
    """Adds two walls whose tops are level with the ground."""
    bottom = y - PIT_DEPTH * STEP
    count = _add_box(boxes, count, x, x + STEP, y, bottom)
    return _add_box(boxes, count, x + STEP * gap, (x + STEP) + STEP * gap, y, bottom)


@njit(**KERNEL)
def _add_stairs(boxes, count, x, y, stairs, height):
    """Adds boxes that each reach down to the one below."""
    thickness = max(abs(height), 1)
    for s in range(stairs):
        left = x + (s * STAIR_WIDTH) * STEP
        right = x + ((1 + s) * STAIR_WIDTH) * STEP
        count = _add_box(boxes, count, left, right, y + (s * height) * STEP, y + (s * height - thickness) * STEP)
    return count


@njit(**KERNEL)
def generate(streams, env, roughness, hardcore, obstacles, heights, boxes):
    """Draws the terrain; returns the number of boxes.

    ``heights`` (LENGTH,) float64 is filled with the corner points' heights (m) at x =
    ``i * TERRAIN_STEP``; ``boxes`` (MAX_BOXES, 4) float64 with left, right, top and bottom (m).
    """
    state = GRASS
    velocity = 0.0
    y = walker.TERRAIN_HEIGHT
    counter = np.int64(walker.TERRAIN_STARTPAD)
    begins = False  # a stretch of grass or an obstacle, in this step
    original_y = 0.0
    direction = 1
    height = np.int64(0)
    stairs = np.int64(0)
    count = 0
    for i in range(LENGTH):
        x = i * STEP
        if state == GRASS and not begins:
            velocity = 0.8 * velocity + 0.01 * np.sign(walker.TERRAIN_HEIGHT - y)
            if i > walker.TERRAIN_STARTPAD:
                velocity += roughness * pcg64.uniform(streams, env, -1.0, 2.0) / walker.SCALE
            y += velocity
        elif state == PIT and begins:
            gap = _whole(streams, env, obstacles.pit_gap_low, obstacles.pit_gap_high)
            if gap > 0:
                count = _add_pit(boxes, count, x, y, gap)
            counter = gap + 2
            original_y = y
        elif state == PIT:
            y = original_y - PIT_DEPTH * STEP if counter > 1 else original_y
        elif state == STUMP and begins:
            size = _whole(streams, env, obstacles.stump_height_low, obstacles.stump_height_high)
            if size > 0:
                count = _add_box(boxes, count, x, x + size * STEP, y + size * STEP, y)
            counter = size if size > 0 else np.int64(1)
        elif state == STAIRS and begins:
            direction = 1 if pcg64.uniform(streams, env, 0.0, 1.0) > 0.5 else -1
            height = direction * _whole(streams, env, obstacles.stair_height_low, obstacles.stair_height_high)
            stairs = _whole(streams, env, obstacles.stair_steps, obstacles.stair_steps + 1)
            original_y = y
            if height != 0:
                count = _add_stairs(boxes, count, x, y, stairs, height)
            counter = stairs * STAIR_WIDTH
        elif state == STAIRS:
            done = (stairs * STAIR_WIDTH - counter - direction) / STAIR_WIDTH
            y = original_y + (done * height) * STEP
        begins = False
        heights[i] = y
        counter -= 1
        if counter == 0:
            counter = pcg64.integer(streams, env, walker.TERRAIN_GRASS // 2, walker.TERRAIN_GRASS // 2)
            state = pcg64.integer(streams, env, 1, 3) if state == GRASS and hardcore else GRASS
            begins = True
    return count
