"""Impulses at touching contacts: bodies stop at the ground, friction has its limit, and momentum is accounted for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY
from gym_dr.envs.box2d.solver import contacts
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, LANES, SLOT
from tests.envs.box2d.solver.lanes import field_of, filled, value_of
from tests.strategies import few

VELOCITY = at.VELOCITY_X, at.VELOCITY_Y, at.OMEGA
NORMAL = at.NORMAL_IMPULSE_1, at.NORMAL_IMPULSE_2
TANGENT = at.TANGENT_IMPULSE_1, at.TANGENT_IMPULSE_2


@njit(**ENTRY)
def _solve(body: Any, slot: Any, iterations: int, single: bool) -> int:
    contacts.prepare(body, slot)
    contacts.warm_start(body, slot)
    for _ in range(iterations):
        if single:
            contacts.solve_single_velocity(body, slot)
        else:
            contacts.solve_velocity(body, slot)
    return contacts.kind_of(slot)


@njit(**ENTRY)
def _push_out(body: Any, slot: Any, penetration: Any, frozen: Any, baumgarte: Any, single: bool) -> None:
    if single:
        contacts.solve_single_position(body, slot, penetration, frozen, baumgarte)
    else:
        contacts.solve_position(body, slot, penetration, frozen, baumgarte)


for _kernel in (_solve, _push_out):
    cache_on_disk(_kernel, "the solver's tests")


def body_of(vx: float = 0.0, vy: float = 0.0, w: float = 0.0, height: float = 0.51) -> Any:
    """A body that is upright over the origin."""
    return filled(BODY, dict(zip(VELOCITY, (vx, vy, w), strict=True)) | {at.CENTER_Y: height, at.COS: 1.0})


def slot_of(
    *corners: tuple[float, float], inv_mass: float = 1.0, inv_inertia: float = 2.4, friction: float = 0.0
) -> Any:
    """A body of 1 kg and 5/12 kg m^2, as a brick of 2 m by 1 m has it, with one or two corners on the ground y = 0."""
    places = (at.POINT_1_X, at.POINT_1_Y), (at.POINT_2_X, at.POINT_2_Y)
    points = {
        field: v for pair, corner in zip(places, corners, strict=False) for field, v in zip(pair, corner, strict=True)
    }
    mass = {at.SLOT_INV_MASS: inv_mass, at.SLOT_INV_INERTIA: inv_inertia, at.SLOT_FRICTION: friction}
    return filled(SLOT, {at.POINTS: len(corners), at.LOCAL_NORMAL_Y: 1.0} | points | mass)


BOTH = (-1.0, -0.5), (1.0, -0.5)


def solved(body: Any, slot: Any, iterations: int = 1, single: bool = False) -> tuple[list[float], int]:
    """The velocity after some iterations, and the kind of the slot."""
    kind = _solve(body, slot, iterations, single)
    return [value_of(body, field) for field in VELOCITY], kind


def test_a_brick_that_falls_flat_stops_by_equal_impulses_at_both_corners() -> None:
    body, slot = body_of(vy=-3.0), slot_of(*BOTH)
    velocity, kind = solved(body, slot)
    assert velocity == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    # 1 kg at 3 m/s
    assert [value_of(slot, field) for field in NORMAL] == pytest.approx([1.5, 1.5])
    assert kind == contacts.TWO + contacts.PAIR


def test_a_brick_that_falls_on_one_corner_begins_to_turn_about_it() -> None:
    # the corner stops: vy + w = 0 with impulse P, vy = P - 3 and w = 2.4 P at 1 m to the right: P = 3 / 3.4
    body, slot = body_of(vy=-3.0), slot_of((1.0, -0.5))
    velocity, kind = solved(body, slot)
    assert velocity == pytest.approx([0.0, 3 / 3.4 - 3, 2.4 * 3 / 3.4], rel=1e-5)
    assert kind == 0


def test_a_brick_that_rises_is_not_held_back() -> None:
    body, slot = body_of(vy=2.0), slot_of(*BOTH)
    assert solved(body, slot)[0] == [0.0, 2.0, 0.0]
    assert [value_of(slot, field) for field in NORMAL] == [0.0, 0.0]


def test_friction_takes_at_most_its_share_of_the_normal_impulse() -> None:
    # it falls with 2 N s onto its lowest point, straight below its middle, and slides with 5 m/s
    body, slot = body_of(vx=5.0, vy=-2.0), slot_of((0.0, -0.5), friction=0.5)
    velocity, _ = solved(body, slot, iterations=10)
    assert value_of(slot, at.NORMAL_IMPULSE_1) == pytest.approx(2.0)
    assert value_of(slot, at.TANGENT_IMPULSE_1) == pytest.approx(-1.0)
    # the friction of 1 N s acts half a meter (and half of the skins, 5 mm) below the middle
    assert velocity == pytest.approx([4.0, 0.0, -2.4 * 0.505], abs=0.02)


def test_enough_friction_holds_the_point_still() -> None:
    body, slot = body_of(vx=1.0, vy=-2.0), slot_of((0.0, -0.5), friction=5.0)
    (vx, _, w), _ = solved(body, slot, iterations=50)
    arm = value_of(slot, at.ARM_1_Y)
    assert vx - w * arm == pytest.approx(0.0, abs=1e-5)


def test_last_steps_impulses_are_applied_first() -> None:
    body, slot = body_of(vy=-3.0), slot_of(*BOTH)
    for field in NORMAL:
        field_of(slot, field)[:] = 1.5
    assert solved(body, slot, iterations=0)[0] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_an_empty_slot_changes_nothing() -> None:
    body = body_of(1.0, -2.0, 3.0)
    before = body.copy()
    assert solved(body, filled(SLOT, {}), iterations=3)[1] == 0
    assert (body == before).all()


def test_two_points_that_nearly_coincide_are_solved_as_one() -> None:
    _, kind = solved(body_of(vy=-3.0), slot_of((1.0, -0.5), (1.0, -0.5)))
    assert kind == contacts.TWO


speeds, shares = st.floats(-20.0, 20.0, width=32), st.floats(0.0, 2.0, width=32)
arms = st.floats(0.125, 2.0, width=32)


@given(velocity=st.tuples(speeds, speeds, speeds), left=arms, right=arms, friction=shares, two=st.booleans())
@few
def test_impulses_push_only_and_are_the_change_of_momentum(
    velocity: tuple[float, float, float], left: float, right: float, friction: float, two: bool
) -> None:
    corners = [(-left, -0.5), (right, -0.5)][: 1 + two]
    body, slot = body_of(*velocity), slot_of(*corners, friction=friction, inv_mass=0.5)
    (vx, vy, w), _ = solved(body, slot, iterations=60)
    before = slot_of(*corners, friction=friction, inv_mass=0.5)
    solved(body_of(*velocity), before, iterations=59)
    normal = np.array([value_of(slot, field) for field in NORMAL])
    tangent = np.array([value_of(slot, field) for field in TANGENT])
    ends = np.array(
        [[value_of(slot, f) for f in pair] for pair in ((at.ARM_1_X, at.ARM_1_Y), (at.ARM_2_X, at.ARM_2_Y))]
    )
    assert (normal >= 0.0).all()
    # an iteration solves friction first, with the normal impulses of the one before: some pairs never settle
    limits = friction * np.array([value_of(before, field) for field in NORMAL])
    assert (np.abs(tangent) <= limits + 1e-3).all()
    # 2 kg; the tangent of an upward normal is to the right
    assert 2 * (vx - velocity[0]) == pytest.approx(tangent.sum(), abs=1e-3)
    assert 2 * (vy - velocity[1]) == pytest.approx(normal.sum(), abs=1e-3)
    turning = (ends[:, 0] * normal - ends[:, 1] * tangent).sum()
    assert (w - velocity[2]) / 2.4 == pytest.approx(turning, abs=2e-3)


@given(velocity=st.tuples(speeds, speeds, speeds), left=arms, right=arms)
@few
def test_no_point_moves_into_the_ground_and_only_resting_points_are_pushed(
    velocity: tuple[float, float, float], left: float, right: float
) -> None:
    body, slot = body_of(*velocity), slot_of((-left, -0.5), (right, -0.5))
    (_, vy, w), _ = solved(body, slot, iterations=60)
    for arm, field in ((at.ARM_1_X, NORMAL[0]), (at.ARM_2_X, NORMAL[1])):
        speed = vy + w * value_of(slot, arm)  # upward, of the point
        assert speed > -1e-3
        assert speed * value_of(slot, field) == pytest.approx(0.0, abs=2e-2)


@given(velocity=st.tuples(speeds, speeds, speeds), at_x=st.floats(-2.0, 2.0, width=32), friction=shares)
@few
def test_the_quick_way_for_single_points_gives_the_same_bits(
    velocity: tuple[float, float, float], at_x: float, friction: float
) -> None:
    bodies = body_of(*velocity), body_of(*velocity)
    slots = slot_of((at_x, -0.5), friction=friction), slot_of((at_x, -0.5), friction=friction)
    for body, slot, single in zip(bodies, slots, (False, True), strict=True):
        solved(body, slot, iterations=5, single=single)
    assert bodies[0].tobytes() == bodies[1].tobytes()
    assert slots[0].tobytes() == slots[1].tobytes()


def pushed_out(
    height: float, *, baumgarte: float = 0.2, frozen: float = 0.0, single: bool = False
) -> tuple[Any, float]:
    """A body that lies flat, its lower side ``height`` above the ground, and the penetration that was found."""
    body, slot = body_of(height=0.5 + height), slot_of(*(BOTH[:1] if single else BOTH))
    penetration, still = np.zeros(LANES, np.float32), np.full(LANES, frozen, np.float32)
    _push_out(body, slot, penetration, still, np.float32(baumgarte), single)
    return body, float(penetration[0])


def test_a_share_of_the_overlap_beyond_the_slop_is_resolved() -> None:
    # 5 cm deep, with skins of 2 cm: 7 cm, of which 5 mm may stay; each corner in turn pushes out by a share of what
    # is left, here all of it: first at the left corner, an arm of 1 m: 0.065 / 3.4 up and 2.4 times that in turn
    body, deepest = pushed_out(-0.05, baumgarte=1.0, single=True)
    assert deepest == pytest.approx(-0.07, abs=1e-6)
    assert value_of(body, at.CENTER_Y) == pytest.approx(0.45 + 0.065 / 3.4, abs=1e-5)
    assert value_of(body, at.ANGLE) == pytest.approx(-2.4 * 0.065 / 3.4, abs=1e-5)


def test_no_correction_is_above_twenty_centimeters() -> None:
    body, _ = pushed_out(-3.0, baumgarte=1.0, single=True)
    assert value_of(body, at.CENTER_Y) == pytest.approx(-2.5 + 0.2 / 3.4, abs=1e-5)


def test_what_is_within_the_slop_is_left_alone() -> None:
    body, deepest = pushed_out(0.0155)  # 4.5 mm into the skins
    assert deepest == pytest.approx(-0.0045, abs=1e-6)
    assert value_of(body, at.CENTER_Y) == np.float32(0.5155)


def test_both_corners_push_out_in_turn() -> None:
    body, deepest = pushed_out(-0.05)
    alone, _ = pushed_out(-0.05, single=True)
    assert value_of(body, at.CENTER_Y) > value_of(alone, at.CENTER_Y) > 0.45
    assert deepest < -0.07  # the second corner, which the first one's push has turned down


def test_frozen_lanes_keep_their_pose_and_tell_their_penetration() -> None:
    body, deepest = pushed_out(-0.05, frozen=1.0)
    assert [value_of(body, field) for field in (at.CENTER_X, at.CENTER_Y, at.ANGLE)] == [0.0, np.float32(0.45), 0.0]
    assert deepest <= -0.07 + 1e-6
