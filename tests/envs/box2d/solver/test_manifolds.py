"""Where a body touches the ground: known answers, and Box2D's own for any pose."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver import manifolds
from gym_dr.envs.box2d.solver.arrays import World
from gym_dr.envs.box2d.solver.broad_phase import origin
from gym_dr.envs.box2d.solver.manifolds import FACE_A, FACE_B, IMPULSES, POINT
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.solver.worlds import SHAPES, make_scratch, make_world, place, touch
from tests.strategies import few

EDGE, BOX = (-5.0, 0.0, 5.0, 0.0), (-5.0, 5.0, 0.0, -1.0)  # both have their top at y = 0
EITHER = pytest.mark.parametrize("ground", [{"edges": [EDGE]}, {"boxes": [BOX]}], ids=["edge", "box"])
SCRATCH = make_scratch()


@njit(**ENTRY)
def _update(world: Any, contact: int, scratch: Any) -> None:
    manifolds.update(world, 0, np.int64(contact), scratch)


@njit(**ENTRY)
def _update_all(world: Any, scratch: Any) -> None:
    manifolds.update_all(world, 0, scratch)


for _kernel in (_update, _update_all):
    cache_on_disk(_kernel, "the solver's tests")


def collided(world: World, x: float, y: float, angle: float = 0.0) -> World:
    """The world with its body's origin at (x, y), and its contact up to date."""
    place(world, x, y, angle)
    if world.status[0, at.S_CONTACTS] == 0:
        touch(world)
    _update(world, 0, SCRATCH)
    return world


def points_of(world: World) -> Any:
    """The contact's points, in the frame of the shape that has not the reference face: (points, 2)."""
    count = world.contact_ints[0, 0, at.C_POINTS]
    return world.contact_floats[0, 0, POINT : POINT + 2 * count].reshape(-1, 2)


def ids_of(world: World) -> list[int]:
    count = world.contact_ints[0, 0, at.C_POINTS]
    return world.contact_ints[0, 0, at.C_ID_1 : at.C_ID_1 + count].tolist()


def normal_of(world: World) -> list[float]:
    return world.contact_floats[0, 0, :2].tolist()


@EITHER
def test_a_brick_that_lies_flat_touches_with_both_lower_corners(ground: Any) -> None:
    world = collided(make_world(**ground), 0.0, 0.5)
    # the brick's corners, 1 to the side and 0.5 below its middle, in its own frame; the ground pushes up
    assert sorted(points_of(world).tolist()) == [[-1.0, -0.5], [1.0, -0.5]]
    assert normal_of(world) == [0.0, 1.0]
    assert world.contact_ints[0, 0, at.C_FACE_B] == 0


@EITHER
def test_a_brick_on_its_corner_touches_with_that_one(ground: Any) -> None:
    # turned by 0.5 rad to the left, its lower left corner (-1, -0.5) is lowest, at -sin 0.5 - 0.5 cos 0.5 = -0.918
    world = collided(make_world(**ground), 0.0, 0.918, 0.5)
    np.testing.assert_allclose(points_of(world), [[-1.0, -0.5]], atol=1e-6)
    assert normal_of(world) == [0.0, 1.0]


@EITHER
def test_shapes_touch_within_their_skins_of_a_centimeter_each(ground: Any) -> None:
    world = make_world(**ground)
    assert len(points_of(collided(world, 0.0, 0.5 + 0.0199))) == 2
    assert len(points_of(collided(world, 0.0, 0.5 + 0.0201))) == 0


def test_beyond_the_end_of_an_edge_there_is_nothing_to_stand_on() -> None:
    # the brick is over x = 4.5 to 6.5 and the edge ends at 5, half a meter left of the brick's middle
    world = collided(make_world(edges=[EDGE]), 5.5, 0.5)
    np.testing.assert_allclose(sorted(points_of(world).tolist()), [[-1.0, -0.5], [-0.5, -0.5]])
    assert len(points_of(collided(world, 6.5, 0.5))) == 0


def test_an_edge_pushes_to_the_side_on_which_the_body_is() -> None:
    assert normal_of(collided(make_world(edges=[EDGE]), 0.0, 0.5)) == [0.0, 1.0]
    assert normal_of(collided(make_world(edges=[EDGE]), 0.0, -0.5)) == [0.0, -1.0]


def test_over_the_corner_of_a_box_the_bodys_face_is_the_reference() -> None:
    # turned by -0.7 rad over the box's right upper corner (5, 0), the brick's lower face (normal (0, -1)) lies on it:
    # half a brick's height, 0.5, away from its middle along (sin 0.7, cos 0.7)
    world = collided(make_world(boxes=[BOX]), 5.0 + 0.5 * np.sin(0.7), 0.5 * np.cos(0.7), -0.7)
    assert world.contact_ints[0, 0, at.C_FACE_B] == 1
    assert normal_of(world) == [0.0, -1.0]
    np.testing.assert_allclose(points_of(world), [[5.0, 0.0]], atol=1e-6)  # of the box, in the world


@EITHER
def test_impulses_stay_with_the_corners_that_they_are_at(ground: Any) -> None:
    world = collided(make_world(**ground), 0.0, 0.5)
    world.contact_floats[0, 0, IMPULSES : IMPULSES + 4] = [1.0, 2.0, 3.0, 4.0]  # normal and tangent of each
    first, second = ids_of(world)
    assert world.contact_floats[0, 0, IMPULSES : IMPULSES + 4].tolist() == [1.0, 2.0, 3.0, 4.0]
    # it rolls onto the second corner
    lower_right = points_of(world)[1, 0] > 0
    collided(world, 0.0, 0.918, -0.5 if lower_right else 0.5)
    assert ids_of(world) == [second] != [first]
    assert world.contact_floats[0, 0, IMPULSES : IMPULSES + 2].tolist() == [3.0, 4.0]


@EITHER
def test_a_corner_that_begins_to_touch_has_no_impulse(ground: Any) -> None:
    world = collided(make_world(**ground), 0.0, 0.918, 0.5)
    world.contact_floats[0, 0, IMPULSES : IMPULSES + 2] = [1.0, 2.0]
    (own,) = ids_of(world)
    collided(world, 0.0, 0.5)
    impulses = world.contact_floats[0, 0, IMPULSES : IMPULSES + 4].reshape(2, 2).tolist()
    assert impulses[ids_of(world).index(own)] == [1.0, 2.0]
    assert impulses[1 - ids_of(world).index(own)] == [0.0, 0.0]


def test_that_a_contact_begins_and_ends_is_told_of_its_body() -> None:
    world = make_world([SHAPES["brick"], SHAPES["kite"]], edges=[EDGE])
    place(world, 0.0, 0.5, body=1)
    touch(world, body=1)
    told = []
    for height in (5.0, 0.5, 5.0):
        place(world, 0.0, height, body=1)
        _update(world, 0, SCRATCH)
        told.append((int(world.status[0, at.S_TOUCHES]), int(world.status[0, at.S_TOUCHED])))
    assert told == [(0, 0), (0b10, 0b10), (0, 0b10)]


def test_contacts_whose_boxes_have_parted_are_dropped_and_the_others_keep_their_order() -> None:
    world = make_world(edges=[EDGE, (-5.0, 9.0, 5.0, 9.0), (-5.0, 0.1, 5.0, 0.1)])
    place(world, 0.0, 0.5)
    for contact in range(3):
        world.contact_ints[0, contact] = [0, contact, 1, 0, 0, 0, 0]
    world.status[0, at.S_CONTACTS], world.status[0, at.S_TOUCHES] = 3, 1
    _update_all(world, SCRATCH)
    assert world.status[0, at.S_CONTACTS] == 2
    assert world.contact_ints[0, :2, at.C_GROUND].tolist() == [0, 2]
    assert world.contact_ints[0, :2, at.C_POINTS].tolist() == [2, 2]


@given(
    shape=st.sampled_from(sorted(SHAPES)),
    x=st.floats(-6.0, 6.0),
    y=st.floats(-1.2, 1.2),
    angle=st.floats(-7.0, 7.0),
    boxed=st.booleans(),
)
@few
def test_points_are_on_both_shapes_up_to_their_skins(shape: str, x: float, y: float, angle: float, boxed: bool) -> None:
    world = collided(make_world([SHAPES[shape]], **({"boxes": [BOX]} if boxed else {"edges": [EDGE]})), x, y, angle)
    cosine, sine = np.cos(angle), np.sin(angle)
    corners = np.array(SHAPES[shape])
    for point in points_of(world):
        if world.contact_ints[0, 0, at.C_FACE_B]:  # on the ground
            assert -5.02 <= point[0] <= 5.02
            assert (-1.02 if boxed else -0.02) <= point[1] <= 0.02
            continue
        assert (corners.min(axis=0) - 0.021 <= point).all()
        assert (point <= corners.max(axis=0) + 0.021).all()
        across = x + cosine * point[0] - sine * point[1]
        assert -5.03 <= across <= 5.03


def box2ds_manifold(shape: str, ground: Any, boxed: bool, pose: tuple[float, float, float]) -> Any:
    """What Box2D finds, as ``[face_b, [normal, face point, points ...], ids]``; None if nothing touches."""
    import Box2D

    from tests.envs.box2d.solver.box2d_shapes import box_of, edge_of, polygon_of, transform_of

    manifold = Box2D.b2Manifold()
    collide = Box2D.b2CollidePolygons if boxed else Box2D.b2CollideEdgeAndPolygon
    own = polygon_of(SHAPES[shape]), transform_of(*pose)
    collide(manifold, box_of(*ground) if boxed else edge_of(*ground), transform_of(), *own)
    if manifold.pointCount == 0:
        return None
    points = [manifold.points[i] for i in range(manifold.pointCount)]
    numbers = [*manifold.localNormal, *manifold.localPoint]
    ids = []
    for point in points:
        numbers += [*point.localPoint]
        key = point.id.cf
        faces = (FACE_A if key.typeA else 0) | (FACE_B if key.typeB else 0)
        ids.append(int(key.indexA | key.indexB << 3 | faces))
    return [manifold.type_ == 2, numbers, ids]


@pytest.mark.skipif(find_spec("Box2D") is None or not EXACT, reason="compares with Box2D, bit for bit")
@pytest.mark.parametrize("boxed", [False, True], ids=["edge", "box"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_contacts_are_box2ds(shape: str, boxed: bool) -> None:
    rng, touched, faces = np.random.default_rng(0), 0, set()
    for _ in range(400):
        if boxed:
            left, top = rng.uniform(-2, 0, 2)
            ground = (left, left + rng.uniform(0.3, 3), top, top - rng.uniform(0.3, 3))
        else:
            x1, y1, length, slope = rng.uniform((-3, -1, 0.3, -1.5), (0, 1, 4, 1.5))
            ground = (x1, y1, x1 + length, y1 + slope * length)
        ground = tuple(map(float, np.array(ground, np.float32)))
        pose = tuple(map(float, rng.uniform((-2, -1, -7), (2, 1, 7)).astype(np.float32)))
        world = collided(make_world([SHAPES[shape]], **{"boxes" if boxed else "edges": [ground]}), *pose)
        found = None
        if world.contact_ints[0, 0, at.C_POINTS] > 0:
            numbers = [*world.contact_floats[0, 0, :4].tolist(), *points_of(world).ravel().tolist()]
            found = [bool(world.contact_ints[0, 0, at.C_FACE_B]), numbers, ids_of(world)]
            faces.add(found[0])
        at_origin = *map(float, origin.py_func(world, 0, 0)), pose[2]  # rounded on its way through the center of mass
        assert found == box2ds_manifold(shape, ground, boxed, at_origin), (ground, pose)
        touched += found is not None
    assert touched > 50
    assert faces == {False, True}
