"""Revolute joints: pin, motor and limit, by impulses that act on both bodies alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY, INLINE
from gym_dr.envs.box2d.solver import joints, lanes
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, JOINT, LANES, WORK
from tests.envs.box2d.solver.lanes import field_of, filled, value_of
from tests.strategies import few

A, B, PIN, NEEDED = np.int64(0), np.int64(1), np.int64(2 * BODY), np.int64(2 * BODY + JOINT)
FIELDS = int(NEEDED) + WORK
FREE = -100.0, 100.0, 0.0  # lower and upper limit, reference angle, rad
OFF = 0.0, 0.0  # speed and limit of a motor
CENTER = 0.0, 0.0


@njit(**INLINE)
def _prepare(block: Any, lane: int, masses: Any, anchors: Any, limits: Any) -> None:
    ends = limits[0], limits[1], limits[2]
    joints.prepare(block, lane, PIN, NEEDED, A, B, masses[0], masses[1], anchors[0], anchors[1], ends)


@njit(**ENTRY)
def _solve(block: Any, masses: Any, anchors: Any, limits: Any, drive: Any, iterations: int) -> None:
    for lane in range(LANES):
        _prepare(block, lane, masses, anchors, limits)
        for _ in range(iterations):
            v = lanes.velocity(block, lane, A)
            v = joints.solve_velocity(block, lane, PIN, NEEDED, masses[0], masses[1], drive, v, B)
            lanes.set_velocity(block, lane, A, v)


@njit(**ENTRY)
def _settle(block: Any, masses: Any, anchors: Any, limits: Any, keep: bool) -> int:
    count = 0
    for lane in range(LANES):
        _prepare(block, lane, masses, anchors, limits)
        joints.prepare_position(block, lane, NEEDED, masses[0], masses[1])
        old_a, old_b = lanes.center_and_angle(block, lane, A), lanes.center_and_angle(block, lane, B)
        new_a, new_b, okay = joints.solve_position(
            block,
            lane,
            PIN,
            NEEDED,
            masses[0],
            masses[1],
            anchors[0],
            anchors[1],
            (limits[0], limits[1], limits[2]),
            old_a,
            old_b,
        )
        lanes.set_center_and_angle(block, lane, A, old_a, new_a, keep)
        lanes.set_center_and_angle(block, lane, B, old_b, new_b, keep)
        count += 1 if okay else 0
    return count


for _kernel in (_solve, _settle):
    cache_on_disk(_kernel, "the solver's tests")


class Pair:
    """Two upright bodies with a joint: masses are (kg, kg m^2), anchors from the centers of mass (m)."""

    def __init__(
        self,
        masses: Any = ((1.0, 1.0), (1.0, 1.0)),
        anchors: Any = (CENTER, CENTER),
        limits: Any = FREE,
        drive: Any = OFF,
    ) -> None:
        self.masses = tuple((np.float32(1 / m), np.float32(1 / i)) for m, i in masses)
        self.kilograms = masses
        self.anchors = tuple((np.float32(x), np.float32(y)) for x, y in anchors)
        self.limits = tuple(map(np.float32, limits))
        self.drive = tuple(map(np.float32, drive))
        self.block = filled(FIELDS, {at.COS: 1.0, BODY + at.COS: 1.0})

    def set(self, body: int, first: int, *values: float) -> None:
        for k, value in enumerate(values):
            field_of(self.block, body * BODY + first + k)[:] = value

    def get(self, body: int, first: int) -> Any:
        """Three fields of a body: its pose from CENTER_X on, its velocity from VELOCITY_X on."""
        return np.array([value_of(self.block, body * BODY + first + k) for k in range(3)], np.float64)

    def impulse(self, field: int) -> float:
        return value_of(self.block, int(PIN) + field)

    def solve(self, iterations: int = 1) -> None:
        _solve(self.block, self.masses, self.anchors, self.limits, self.drive, iterations)

    def settle(self, keep: bool = False) -> bool:
        """One position iteration; whether pin and limit already held."""
        count = _settle(self.block, self.masses, self.anchors, self.limits, keep)
        assert count in (0, LANES)
        return count == LANES

    def momentum(self) -> Any:
        """Linear (x, y) and angular about the world's origin."""
        total = np.zeros(3)
        for body, (mass, inertia) in enumerate(self.kilograms):
            (x, y, _), (vx, vy, w) = self.get(body, at.CENTER_X), self.get(body, at.VELOCITY_X)
            total += [mass * vx, mass * vy, inertia * w + mass * (x * vy - y * vx)]
        return total

    def speed_of_pin(self) -> Any:
        """Velocity of the second body's end of the pin, seen from the first's."""
        ends = []
        for body, (x, y) in enumerate(self.anchors):
            vx, vy, w = self.get(body, at.VELOCITY_X)
            ends.append((vx - w * y, vy + w * x))
        return np.subtract(*ends[::-1])


def test_two_bodies_that_are_pinned_at_their_centers_go_on_together() -> None:
    pair = Pair(masses=((1.0, 1.0), (3.0, 1.0)))
    pair.set(0, at.VELOCITY_X, 8.0, 0.0, 1.0)
    pair.solve()
    # 8 kg m/s over 4 kg; nothing holds their rotations
    assert pair.get(0, at.VELOCITY_X) == pytest.approx([2.0, 0.0, 1.0])
    assert pair.get(1, at.VELOCITY_X) == pytest.approx([2.0, 0.0, 0.0])
    assert pair.impulse(at.IMPULSE_X) == pytest.approx(6.0)  # N s, on the second body


def test_a_motor_drives_the_second_body_against_the_first() -> None:
    # inertias 1 and 3: 4 rad/s between them take 4 / (1 + 1/3) = 3 N m s, which turn them by -3 and 1 rad/s
    pair = Pair(masses=((1.0, 1.0), (1.0, 3.0)), drive=(4.0, 10.0))
    pair.solve()
    assert pair.get(0, at.VELOCITY_X) == pytest.approx([0.0, 0.0, -3.0])
    assert pair.get(1, at.VELOCITY_X) == pytest.approx([0.0, 0.0, 1.0])
    assert pair.impulse(at.MOTOR_IMPULSE) == pytest.approx(3.0)


@pytest.mark.parametrize("speed", [4.0, -4.0])
def test_a_motors_impulses_add_up_to_its_limit_at_most(speed: float) -> None:
    pair = Pair(drive=(speed, 0.5))
    pair.solve(iterations=5)
    assert pair.impulse(at.MOTOR_IMPULSE) == np.sign(speed) * 0.5
    assert pair.get(1, at.VELOCITY_X)[2] == np.sign(speed) * 0.5


@pytest.mark.parametrize(("angle", "state", "sign"), [(-0.3, 1.0, 1.0), (0.4, -1.0, -1.0)], ids=["lower", "upper"])
def test_a_joint_at_its_limit_turns_no_further(angle: float, state: float, sign: float) -> None:
    pair = Pair(limits=(-0.25, 0.25, 0.0))
    pair.set(1, at.ANGLE, angle)
    pair.set(1, at.VELOCITY_X, 0.0, 0.0, -2.0 * sign)  # further beyond it
    pair.solve(iterations=3)
    assert pair.get(0, at.VELOCITY_X)[2] == pytest.approx(-sign)  # they share what there was
    assert pair.get(1, at.VELOCITY_X)[2] == pytest.approx(-sign)
    assert pair.impulse(at.LIMIT_STATE) == state
    assert pair.impulse(at.LIMIT_IMPULSE) == pytest.approx(sign)


def test_a_limit_does_not_hold_what_turns_back() -> None:
    pair = Pair(limits=(-0.25, 0.25, 0.0))
    pair.set(1, at.ANGLE, -0.3)
    pair.set(1, at.VELOCITY_X, 0.0, 0.0, 2.0)
    pair.solve(iterations=3)
    assert pair.get(1, at.VELOCITY_X)[2] == 2.0
    assert pair.impulse(at.LIMIT_IMPULSE) == 0.0


def test_limits_count_from_the_reference_angle() -> None:
    pair = Pair(limits=(-0.25, 0.25, 0.5))
    pair.set(1, at.ANGLE, 0.5)
    pair.solve()
    assert pair.impulse(at.LIMIT_STATE) == 0.0
    pair.set(1, at.ANGLE, 0.2)
    pair.solve()
    assert pair.impulse(at.LIMIT_STATE) == 1.0


def test_last_steps_impulses_are_applied_first_and_that_of_the_limit_only_while_it_is_the_same() -> None:
    for angle, kept in ((-0.3, 3.0), (0.0, 0.0), (0.3, 0.0)):
        pair = Pair(masses=((2.0, 1.0), (1.0, 1.0)), limits=(-0.25, 0.25, 0.0))
        pair.set(1, at.ANGLE, angle)
        for field, value in (
            (at.IMPULSE_X, 4.0),
            (at.MOTOR_IMPULSE, 0.5),
            (at.LIMIT_IMPULSE, 3.0),
            (at.LIMIT_STATE, 1.0),
        ):
            field_of(pair.block, int(PIN) + field)[:] = value
        pair.solve(iterations=0)
        assert pair.get(0, at.VELOCITY_X) == pytest.approx([-2.0, 0.0, -0.5 - kept])
        assert pair.get(1, at.VELOCITY_X) == pytest.approx([4.0, 0.0, 0.5 + kept])


numbers = st.floats(-3.0, 3.0, width=32)
sizes = st.floats(0.5, 4.0, width=32)
points = st.tuples(numbers, numbers)


@given(
    masses=st.tuples(st.tuples(sizes, sizes), st.tuples(sizes, sizes)),
    anchors=st.tuples(points, points),
    velocities=st.tuples(*[st.tuples(numbers, numbers, numbers)] * 2),
    drive=st.tuples(numbers, sizes),
    beyond=st.sampled_from([0.0, -0.5, 0.5]),
)
@few
def test_a_joint_holds_its_pin_and_neither_makes_nor_takes_momentum(
    masses: Any, anchors: Any, velocities: Any, drive: Any, beyond: float
) -> None:
    pair = Pair(masses, anchors, (-0.25, 0.25, -beyond), drive)  # upright bodies are at an angle of ``beyond``
    (ax, ay), (bx, by) = anchors
    pair.set(1, at.CENTER_X, ax - bx, ay - by)  # both ends of the pin at one place
    for body, velocity in enumerate(velocities):
        pair.set(body, at.VELOCITY_X, *velocity)
    before = pair.momentum()
    pair.solve(iterations=40)
    np.testing.assert_allclose(pair.momentum(), before, atol=5e-3)
    np.testing.assert_allclose(pair.speed_of_pin(), 0.0, atol=5e-3)
    assert abs(pair.impulse(at.MOTOR_IMPULSE)) <= np.float32(drive[1])
    assert pair.impulse(at.LIMIT_IMPULSE) * np.sign(-beyond) >= 0.0


def test_a_pin_that_has_come_apart_is_closed_from_both_sides() -> None:
    pair = Pair(masses=((1.0, 1.0), (3.0, 1.0)))
    pair.set(1, at.CENTER_X, 1.0, 0.5)
    assert not pair.settle()
    # the lighter body goes three quarters of the way
    assert pair.get(0, at.CENTER_X) == pytest.approx([0.75, 0.375, 0.0])
    assert pair.get(1, at.CENTER_X) == pytest.approx([0.75, 0.375, 0.0])
    assert pair.settle()


def test_an_angle_beyond_its_limit_is_turned_back_by_eight_degrees_at_most() -> None:
    for angle, turned in ((-0.25 - 0.1349, 0.1), (-1.25, np.radians(8))):
        pair = Pair(limits=(-0.25, 0.25, 0.0))
        pair.set(1, at.ANGLE, angle)
        assert not pair.settle()
        # all but the slop of 2 degrees, 0.0349 rad, half of it each
        assert pair.get(0, at.CENTER_X)[2] == pytest.approx(-turned / 2, abs=1e-4)
        assert pair.get(1, at.CENTER_X)[2] == pytest.approx(angle + turned / 2, abs=1e-4)


def test_what_holds_within_the_slop_is_left_alone() -> None:
    pair = Pair(limits=(-0.25, 0.25, 0.0))
    pair.set(1, at.ANGLE, -0.28)
    assert pair.settle()
    assert pair.get(1, at.CENTER_X)[2] == np.float32(-0.28)


def test_a_lane_that_is_solved_keeps_its_pose() -> None:
    pair = Pair()
    pair.set(1, at.CENTER_X, 1.0)
    pair.settle(keep=True)
    assert pair.get(0, at.CENTER_X).tolist() == [0.0, 0.0, 0.0]
    assert pair.get(1, at.CENTER_X).tolist() == [1.0, 0.0, 0.0]
