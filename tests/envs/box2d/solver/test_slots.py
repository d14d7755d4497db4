"""From a row's contacts to the slots of a block, and the impulses back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver import slots
from gym_dr.envs.box2d.solver.layout import CONTACT_FLOATS, LANES, SLOT
from gym_dr.envs.box2d.solver.memory import World
from tests.envs.box2d.solver.worlds import BRICK, KITE, make_world

IMPULSES = np.arange(at.NORMAL_IMPULSE_1, at.TANGENT_IMPULSE_2 + 1)


@njit(**ENTRY)
def _load(memory: Any, first: int, last: int, lane: int, world: Any, body: int) -> int:
    slots.load(memory, first, last, lane, world, 0, body)
    return slots.touching(world, 0, body)


@njit(**ENTRY)
def _store(memory: Any, first: int, last: int, lane: int, world: Any, body: int) -> None:
    slots.store(memory, first, last, lane, world, 0, body)


for _kernel in (_load, _store):
    cache_on_disk(_kernel, "the solver's tests")


def four_contacts() -> World:
    """Contacts of bodies 0, 1, 0, 0 with grounds 0 to 3 (a box, then edges), the third of which does not touch."""
    edges = [(0.0, 0.0, 1.0, 0.0)] * 3
    world = make_world([BRICK, KITE], edges=edges, boxes=[(0.0, 1.0, 0.0, -1.0)], friction=0.4, density=2.0)
    world.boxes[0, 0, at.BOX_FRICTION] = 0.9
    world.edges[0, :, at.EDGE_FRICTION] = 0.1, 0.225, 1.6
    for i, (body, touches) in enumerate([(0, 1), (1, 1), (0, 0), (0, 1)]):
        world.contact_ints[0, i] = [body, i, touches, i % 2, 1 + i % 2, 0, 0]
        world.contact_floats[0, i] = 100 * i + np.arange(CONTACT_FLOATS)
    world.status[0, at.S_CONTACTS] = 4
    return world


def slot_of(memory: Any, slot: int, lane: int) -> Any:
    return memory.reshape(-1, SLOT, LANES)[slot, :, lane]


def test_a_bodys_touching_contacts_are_loaded_newest_first() -> None:
    world, memory = four_contacts(), np.zeros(4 * SLOT * LANES, np.float32)
    assert _load(memory, 1, 3, 5, world, 0) == 2
    for slot, contact in ((1, 3), (2, 0)):
        own = slot_of(memory, slot, 5)
        assert own[at.LOCAL_NORMAL_X : at.TANGENT_IMPULSE_2 + 1].tolist() == world.contact_floats[0, contact].tolist()
        assert (own[at.FACE_B], own[at.POINTS]) == (contact % 2, 1 + contact % 2)
    untouched = memory.reshape(-1, SLOT, LANES).copy()
    untouched[1:3, :, 5] = 0.0
    assert not untouched.any()


def test_friction_is_the_geometric_mean_of_body_and_ground() -> None:
    world, memory = four_contacts(), np.zeros(4 * SLOT * LANES, np.float32)
    _load(memory, 0, 2, 0, world, 0)
    # sqrt(0.4 * 1.6) of the last edge, and sqrt(0.4 * 0.9) of the box
    assert slot_of(memory, 0, 0)[at.SLOT_FRICTION] == pytest.approx(0.8)
    assert slot_of(memory, 1, 0)[at.SLOT_FRICTION] == pytest.approx(0.6)


def test_a_slot_knows_the_mass_of_its_body() -> None:
    world, memory = four_contacts(), np.zeros(SLOT * LANES, np.float32)
    _load(memory, 0, 1, 0, world, 1)
    own = slot_of(memory, 0, 0)
    fields = own[[at.SLOT_INV_MASS, at.SLOT_INV_INERTIA, at.SLOT_CENTER_X, at.SLOT_CENTER_Y]]
    assert fields.tolist() == world.properties[0, 1, : at.FRICTION].tolist()
    assert own[at.SLOT_INV_MASS] == pytest.approx(1 / 1.5)  # a kite 1 m wide and 1.5 m high, 2 kg/m^2


def test_more_contacts_than_slots_are_left_out() -> None:
    world, memory = four_contacts(), np.zeros(4 * SLOT * LANES, np.float32)
    _load(memory, 0, 1, 0, world, 0)
    assert slot_of(memory, 0, 0)[at.LOCAL_NORMAL_X] == 300.0
    assert not slot_of(memory, 1, 0).any()


def test_impulses_come_back_to_the_contacts_that_they_came_from_and_nothing_else_does() -> None:
    world, memory = four_contacts(), np.zeros(4 * SLOT * LANES, np.float32)
    before = world.contact_floats.copy()
    _load(memory, 0, 2, 3, world, 0)
    memory += 1000.0
    _store(memory, 0, 2, 3, world, 0)
    changed = world.contact_floats[0] - before[0]
    expected = np.zeros_like(changed)
    expected[np.ix_([0, 3], IMPULSES - at.LOCAL_NORMAL_X)] = 1000.0
    assert changed.tolist() == expected.tolist()
