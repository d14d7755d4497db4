"""Polygons, their normals and masses: known answers, and Box2D's own."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.native import shapes as walker_shapes
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import shapes as lander_shapes
from gym_dr.envs.box2d.solver.shapes import (
    Polygon,
    box,
    centroid,
    hull,
    make_shapes,
    mass_properties,
)
from tests.envs.box2d.solver.worlds import LOPSIDED, SHAPES
from tests.strategies import few

needs_box2d = pytest.mark.skipif(find_spec("Box2D") is None, reason="compares with Box2D")


def masses(polygon: Polygon, density: float) -> tuple[float, ...]:
    """Inverse mass and inertia, center of mass."""
    tables = make_shapes([polygon], [np.int64(0)], one_ground=True)
    return tuple(map(float, mass_properties.py_func(tables, 0, np.float32(density))))


def test_a_box_has_the_mass_and_inertia_of_a_plate() -> None:
    # 4 m by 2 m at 3 kg/m^2: 24 kg, and about its middle 24 (4^2 + 2^2) / 12 = 40 kg m^2
    assert masses(box(2.0, 1.0), 3.0) == pytest.approx((1 / 24, 1 / 40, 0.0, 0.0), rel=1e-6)


def test_a_triangle_balances_at_a_third_of_its_height() -> None:
    # right-angled with legs 3 and 6: 9 m^2; about the center of mass m (3^2 + 6^2) / 18 = 9 * 45 / 18 = 22.5 kg m^2
    triangle = hull([(0.0, 0.0), (3.0, 0.0), (0.0, 6.0)], 1.0)
    assert masses(triangle, 1.0) == pytest.approx((1 / 9, 1 / 22.5, 1.0, 2.0), rel=1e-5)
    assert [float(v) for v in centroid.py_func(triangle.vertices.ravel(), 3)] == pytest.approx([1.0, 2.0])


@given(density=st.floats(0.25, 20.0, width=32), x=st.floats(-2.0, 2.0, width=32), y=st.floats(-2.0, 2.0, width=32))
@few
def test_mass_does_not_depend_on_where_the_frame_is(density: float, x: float, y: float) -> None:
    here = masses(hull(LOPSIDED, 1.0), density)
    there = masses(hull([(u + x, v + y) for u, v in LOPSIDED], 1.0), density)
    assert there[:2] == pytest.approx(here[:2], rel=1e-4)
    assert there[2:] == pytest.approx((here[2] + x, here[3] + y), abs=1e-4)


@pytest.mark.parametrize("points", SHAPES.values(), ids=list(SHAPES))
def test_normals_are_unit_vectors_that_point_outward(points: Any) -> None:
    vertices, normals = hull(points, 1.0)
    np.testing.assert_allclose(np.hypot(*normals.T), 1.0, rtol=1e-6)
    for i, normal in enumerate(normals):
        along = vertices @ normal
        np.testing.assert_allclose(along[[i, (i + 1) % len(points)]], along.max(), atol=1e-6)
        assert (np.sort(along)[:-2] < along.max() - 0.01).all()


def test_a_hull_begins_with_the_rightmost_point_and_goes_counterclockwise() -> None:
    square = hull([(-3.0, 3.0), (3.0, 3.0), (3.0, -3.0), (-3.0, -3.0)], 3.0)
    assert square.vertices.tolist() == [[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]]


HULLS = [
    (lander.LANDER_POLY, lander.SCALE, lander_shapes.SHAPES),
    (walker.HULL_POLY, walker.SCALE, walker_shapes.SHAPES),
]


@needs_box2d
@pytest.mark.parametrize(("points", "scale", "tables"), HULLS, ids=["lander", "walker"])
def test_shapes_and_masses_are_box2ds(points: Any, scale: float, tables: Any) -> None:
    import Box2D
    from Box2D.b2 import fixtureDef, polygonShape

    world = Box2D.b2World()
    corners = [(x / scale, y / scale) for x, y in points]
    for density in np.linspace(1.0, 20.0, 101):
        shape = polygonShape(vertices=corners)
        hull = world.CreateDynamicBody(fixtures=fixtureDef(shape=shape, density=float(density)))
        inverse_mass, inverse_inertia, *center = mass_properties.py_func(tables, 0, np.float32(density))
        assert np.float32(1) / np.float32(hull.mass) == inverse_mass
        assert tuple(hull.localCenter) == tuple(center)
        # Box2D tells the inertia about the origin, rounded once more
        about_origin = 1 / inverse_inertia + hull.mass * (center[0] ** 2 + center[1] ** 2)
        assert np.isclose(hull.inertia, about_origin, rtol=1e-5)
    shape, count = hull.fixtures[0].shape, tables.counts[0]
    assert [tuple(v) for v in shape.vertices] == [tuple(v) for v in tables.vertices[0].reshape(-1, 2)[:count].tolist()]
    assert [tuple(v) for v in shape.normals] == [tuple(v) for v in tables.normals[0].reshape(-1, 2)[:count].tolist()]
    assert tuple(shape.centroid) == tuple(tables.centroid[0].tolist())
