"""The shapes of a walker: hull, upper leg and lower leg."""

from __future__ import annotations

import numpy as np

from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.solver.shapes import box, hull, make_shapes

HULL, UPPER, LOWER = np.int64(0), np.int64(1), np.int64(2)
SHAPES = make_shapes(
    [
        hull(walker.HULL_POLY, walker.SCALE),
        box(walker.LEG_W / 2, walker.LEG_H / 2),
        box(walker.LOWER_WIDTH * walker.LEG_W / 2, walker.LEG_H / 2),
    ],
    [HULL, UPPER, LOWER, UPPER, LOWER],
    one_ground=False,
)
HULL_VERTICES, UPPER_VERTICES, LOWER_VERTICES = SHAPES.vertices[HULL], SHAPES.vertices[UPPER], SHAPES.vertices[LOWER]
HULL_COUNT, LEG_COUNT = np.int64(5), np.int64(4)
