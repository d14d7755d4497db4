"""The memory of small worlds: every field has a place of its own."""

from __future__ import annotations

import numpy as np
import pytest

from gym_dr.envs.box2d.bipedal_walker.native import layout as walker
from gym_dr.envs.box2d.lunar_lander.native import layout as lander
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.memory import Scratch
from tests.envs.box2d.solver.worlds import BRICK, KITE, make_world

FLOATS = {  # where each part of the float scratch begins, and how many floats it has
    "vertices": (at.W_VERTICES, 16),
    "normals": (at.W_NORMALS, 16),
    "incident": (at.W_INCIDENT, 4),
    "clipped": (at.W_CLIPPED, 4),
    "simplex": (at.W_SIMPLEX, 3 * 7),
    "metric": (at.W_METRIC, 1),
    "ground": (at.W_GROUND, 2 * at.BOX_CORNERS),
    "sweeps": (at.W_SWEEPS, at.MAX_BODIES * at.SWEEP),
    "backup": (at.W_BACKUP, at.SWEEP),
    "times": (at.W_TIMES, at.MAX_CONTACTS),
    "ground times": (at.W_GROUND_TIMES, at.MAX_CONTACTS),
}
INTS = {
    "incident": (at.I_INCIDENT, 2),
    "clipped": (at.I_CLIPPED, 2),
    "simplex": (at.I_SIMPLEX, 7),
    "saved": (at.I_SAVED, 6),
    "ground count": (at.I_GROUND_COUNT, 1),
    "impacts": (at.I_IMPACTS, at.MAX_CONTACTS),
    "known": (at.I_KNOWN, at.MAX_CONTACTS),
    "enabled": (at.I_ENABLED, at.MAX_CONTACTS),
    "selected": (at.I_SELECTED, at.MAX_CONTACTS),
    "bases": (at.I_BASES, 2 * at.MAX_CONTACTS),
    "kinds": (at.I_KINDS, 2 * at.MAX_CONTACTS),
    "order": (at.I_ORDER, at.CHUNK),
    "class": (at.I_CLASS, at.CHUNK),
    "histogram": (at.I_HISTOGRAM, at.CLASSES + 1),
}


@pytest.mark.parametrize(
    ("parts", "size"), [(FLOATS, at.FLOAT_SCRATCH), (INTS, at.INT_SCRATCH)], ids=["floats", "ints"]
)
def test_parts_of_the_scratch_memory_fill_it_without_overlap(parts: dict[str, tuple[int, int]], size: int) -> None:
    taken = np.zeros(int(size), int)
    for first, count in parts.values():
        taken[int(first) : int(first) + count] += 1
    assert (taken == 1).all()


@pytest.mark.parametrize("family", [lander, walker], ids=["lander", "walker"])
def test_the_solvers_limits_hold_for_every_family(family: object) -> None:
    assert family.BODIES <= at.MAX_BODIES
    assert family.WORLD == family.BODIES * at.BODY
    assert family.RETURNED <= family.PACKED <= min(family.ROW, family.BLOCK)


def test_a_contact_keeps_exactly_what_a_slot_takes_from_it() -> None:
    assert make_world([BRICK]).contact_floats.shape[-1] == at.TANGENT_IMPULSE_2 - at.LOCAL_NORMAL_X + 1
    assert at.CONTACT_INTS == at.C_ID_2 + 1


def test_working_memory_begins_at_cache_lines_and_is_zero() -> None:
    scratch = Scratch.allocate(37)
    assert len(scratch.blocks) == 2 * 37 * at.LANES
    for floats in (scratch.floats, scratch.blocks, scratch.slots, scratch.substep):
        assert floats.ctypes.data % 64 == 0
    assert not any(array.any() for array in scratch)


def test_a_world_takes_the_bytes_of_its_arrays_and_grows_with_their_number() -> None:
    one, ten = (make_world([BRICK, KITE], num_envs=n, edges=[(0, 0, 1, 0)] * 3) for n in (1, 10))
    # rows, properties, edges, highest, contacts and status
    floats = (2 * at.BODY + at.HEAD) + 2 * at.PROPERTIES + 3 * at.EDGE + 1 + 8 * at.CONTACT_FLOATS
    assert one.nbytes == 4 * floats + 2 * 8 * at.CONTACT_INTS + 8 * at.STATUS
    assert ten.nbytes == 10 * one.nbytes
