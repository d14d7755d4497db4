"""The shapes of a lander: hull and leg. Only the hull's density varies; a leg's mass is a constant."""

from __future__ import annotations

import numpy as np

from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.solver.layout import f32
from gym_dr.envs.box2d.solver.shapes import box, hull, make_shapes, mass_properties

HULL, LEG = np.int64(0), np.int64(1)
SHAPES = make_shapes(
    [hull(lander.LANDER_POLY, lander.SCALE), box(lander.LEG_W / lander.SCALE, lander.LEG_H / lander.SCALE)],
    [HULL, LEG, LEG],
    one_ground=True,
)
HULL_VERTICES, LEG_VERTICES = SHAPES.vertices[HULL], SHAPES.vertices[LEG]
HULL_COUNT, LEG_COUNT = np.int64(6), np.int64(4)

LEG_INV_MASS, LEG_INV_INERTIA = (
    f32(value) for value in mass_properties.py_func(SHAPES, LEG, f32(lander.LEG_DENSITY))[:2]
)
