"""Which body may touch what of the ground, and in which order contacts begin."""

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
from gym_dr.envs.box2d.solver import broad_phase
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.arrays import World
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.solver.worlds import BRICK, KITE, LOPSIDED, begin, make_world, place
from tests.strategies import few

BOX = slice(at.BOX_LOW_X, at.BOX_HIGH_Y + 1)


@njit(**ENTRY)
def _begin(world: Any, moved: int) -> None:
    broad_phase.begin_contacts(world, 0, moved)


@njit(**ENTRY)
def _move(world: Any, x: Any, y: Any, angle: Any) -> bool:
    row = world.rows[0]
    old_x, old_y = broad_phase.origin(world, 0, np.int64(0))
    before = row[at.COS], row[at.SIN], old_x, old_y
    row[at.SIN], row[at.COS] = sin_cos(angle)
    row[at.CENTER_X], row[at.CENTER_Y], row[at.ANGLE] = x, y, angle
    return broad_phase.update_body(world, 0, np.int64(0), before)


for _kernel in (_begin, _move):
    cache_on_disk(_kernel, "the solver's tests")


def moved(world: World, x: float, y: float, angle: float = 0.0) -> bool:
    """Moves the first body's center of mass to (x, y), m; whether it has left its fat box."""
    return bool(_move(world, np.float32(x), np.float32(y), np.float32(angle)))


def pairs_of(world: World) -> list[tuple[int, int]]:
    """The shape of the ground and the body of each contact, in the order in which they began."""
    contacts = world.contact_ints[0, : world.status[0, at.S_CONTACTS]]
    return [(int(own[at.C_GROUND]), int(own[at.C_BODY])) for own in contacts]


def test_a_bodys_first_box_has_its_skin_and_a_margin_of_ten_centimeters() -> None:
    world = make_world([BRICK])
    place(world, 3.0, 4.0)
    # 1 m and half a meter, 1 cm of skin, 10 cm of margin
    assert world.rows[0, BOX].tolist() == pytest.approx([3 - 1.11, 4 - 0.61, 3 + 1.11, 4 + 0.61])
    place(world, 3.0, 4.0, np.pi / 2)
    assert world.rows[0, BOX].tolist() == pytest.approx([3 - 0.61, 4 - 1.11, 3 + 0.61, 4 + 1.11], abs=1e-6)


def test_a_body_is_placed_by_its_origin() -> None:
    world = make_world([LOPSIDED])
    place(world, 3.0, 4.0, 0.7)
    assert [float(v) for v in broad_phase.origin.py_func(world, 0, 0)] == pytest.approx([3.0, 4.0], abs=1e-6)
    x, y = world.properties[0, 0, at.LOCAL_CENTER_X : at.LOCAL_CENTER_Y + 1]
    assert x != 0.0
    away = world.rows[0, at.CENTER_X : at.CENTER_Y + 1] - [3.0, 4.0]
    np.testing.assert_allclose(away, [x * np.cos(0.7) - y * np.sin(0.7), x * np.sin(0.7) + y * np.cos(0.7)], atol=1e-6)


def test_within_its_fat_box_a_body_moves_without_a_new_one() -> None:
    world = make_world([BRICK])
    place(world, 0.0, 0.0)
    before = world.rows[0, BOX].copy()
    assert not moved(world, 0.09, -0.09)
    assert (world.rows[0, BOX] == before).all()


def test_a_body_that_leaves_its_box_gets_one_that_reaches_two_such_steps_ahead() -> None:
    world = make_world([BRICK])
    place(world, 0.0, 0.0)
    assert moved(world, 0.5, -0.25)
    # from where it was to where it is, with skin and margin, then 2 * 0.5 further right and 2 * 0.25 further down
    expected = [-1.11, -0.61 - 0.25 - 0.5, 1.11 + 0.5 + 1.0, 0.61]
    assert world.rows[0, BOX].tolist() == pytest.approx(expected, abs=1e-6)


def test_contacts_begin_sorted_by_the_grounds_shape_then_body() -> None:
    edges = [(-1.0, 0.0, 1.0, 0.0), (5.0, 0.0, 6.0, 0.0), (-2.0, 0.2, 2.0, 0.2)]
    world = make_world([BRICK, KITE], edges=edges, boxes=[(-1.0, 1.0, 0.0, -1.0)])
    for body in range(2):
        place(world, 0.0, 0.5, body=body)
    begin(world)
    # the box is shape 0; edge 1, shape 2, is too far away
    assert pairs_of(world) == [(0, 0), (0, 1), (1, 0), (1, 1), (3, 0), (3, 1)]


def test_a_contact_begins_once_and_later_ones_come_after_it() -> None:
    world = make_world([BRICK, KITE], edges=[(-1.0, 0.0, 1.0, 0.0), (-1.0, 0.1, 1.0, 0.1)])
    place(world, 0.0, 0.5, body=1)
    place(world, 0.0, 50.0)
    begin(world)
    place(world, 0.0, 0.5)
    begin(world)
    begin(world)
    assert pairs_of(world) == [(0, 1), (1, 1), (0, 0), (1, 0)]


def test_without_memory_for_a_contact_it_does_not_begin() -> None:
    world = make_world([BRICK], edges=[(-1.0, 0.0, 1.0, 0.0)] * 3, contacts=2)
    place(world, 0.0, 0.5)
    begin(world)
    assert pairs_of(world) == [(0, 0), (1, 0)]


def test_boxes_that_an_episode_does_not_have_are_left_out() -> None:
    world = make_world([BRICK], boxes=[(-1.0, 1.0, 0.0, -1.0)] * 2)
    world.status[0, at.S_BOXES] = 1
    place(world, 0.0, 0.5)
    begin(world)
    assert pairs_of(world) == [(0, 0)]


@given(x=st.floats(-3.0, 23.0, width=32), y=st.floats(-1.0, 2.0, width=32), angle=st.floats(-4.0, 4.0, width=32))
@few
def test_knowing_the_width_of_all_edges_finds_the_same_contacts(x: float, y: float, angle: float) -> None:
    heights = np.random.default_rng(5).uniform(0, 1, 41)
    edges = [(0.5 * i, heights[i], 0.5 * (i + 1), heights[i + 1]) for i in range(40)]
    worlds = [make_world([LOPSIDED], edges=edges, edge_width=width, contacts=40) for width in (0.0, 0.5)]
    for world in worlds:
        place(world, x, y, angle)
        begin(world)
    assert pairs_of(worlds[0]) == pairs_of(worlds[1])


@pytest.mark.skipif(find_spec("Box2D") is None or not EXACT, reason="compares with Box2D, bit for bit")
def test_contacts_are_those_that_box2d_begins() -> None:
    import Box2D
    from Box2D.b2 import fixtureDef

    from tests.envs.box2d.solver.box2d_shapes import edge_of, polygon_of

    rng, begun = np.random.default_rng(6), 0
    for _ in range(150):
        edges = [tuple(map(float, own)) for own in rng.uniform(-3, 3, (6, 4)).astype(np.float32)]
        pose = tuple(map(float, rng.uniform(-3, 3, 3).astype(np.float32)))
        ours = make_world([LOPSIDED], edges=edges)
        place(ours, *pose)
        begin(ours)
        world = Box2D.b2World(gravity=(0, 0))
        ground = [world.CreateStaticBody(fixtures=fixtureDef(shape=edge_of(*ends))) for ends in edges]
        shape = fixtureDef(shape=polygon_of(LOPSIDED), density=1.0, isSensor=True)  # which no contact pushes away
        world.CreateDynamicBody(position=pose[:2], angle=pose[2], fixtures=shape)
        world.Step(1e-6, 1, 1)
        theirs = [(ground.index(contact.fixtureA.body), 0) for contact in world.contacts]  # oldest first
        assert pairs_of(ours) == theirs
        begun += len(theirs)
    assert begun > 100
