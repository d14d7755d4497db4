"""When a world falls asleep: all of its bodies have been almost still for half a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver import sleep
from gym_dr.envs.box2d.solver.layout import BODY, LANES
from tests.envs.box2d.solver.lanes import field_of, filled, value_of

STEPS = 25  # of 1/50 s, half a second


@njit(**ENTRY)
def _update(block: Any, bodies: int, awake: Any, solved: Any) -> None:
    sleep.update(block, np.int64(bodies), awake, solved)


cache_on_disk(_update, "the solver's tests")


class Sleepers:
    """Two bodies, of which the first has a velocity."""

    def __init__(self, vx: float = 0.0, vy: float = 0.0, w: float = 0.0) -> None:
        self.block = filled(2 * BODY, {at.VELOCITY_X: vx, at.VELOCITY_Y: vy, at.OMEGA: w})
        self.awake, self.solved = np.ones(LANES, np.float32), np.ones(LANES, np.float32)

    def steps_until_sleep(self) -> int | None:
        """Steps after which lane 0 sleeps; None if it is awake after 100."""
        for step in range(1, 101):
            _update(self.block, 2, self.awake, self.solved)
            if self.awake[0] == 0.0:
                return step
        return None


def test_bodies_at_rest_sleep_after_half_a_second() -> None:
    # 0.02 s added up 25 times may fall short of 0.5 in float32, by which the step after it counts
    time = np.float32(0)
    steps = 0
    while time < np.float32(0.5):
        time, steps = np.float32(time + np.float32(0.02)), steps + 1
    assert Sleepers().steps_until_sleep() == steps
    assert STEPS <= steps <= STEPS + 1


@pytest.mark.parametrize(
    ("velocity", "sleeps"),
    [
        ({"vx": 0.0099}, True),  # up to 1 cm/s
        ({"vx": 0.0101}, False),
        ({"vx": 0.008, "vy": 0.008}, False),  # 1.13 cm/s together
        ({"w": 0.0348}, True),  # up to 2 degrees, 0.0349 rad, a second
        ({"w": -0.0351}, False),
    ],
    ids=str,
)
def test_only_almost_still_bodies_sleep(velocity: dict[str, float], sleeps: bool) -> None:
    assert (Sleepers(**velocity).steps_until_sleep() is not None) == sleeps


def test_one_moving_body_keeps_the_others_awake() -> None:
    world = Sleepers(vx=1.0)
    assert world.steps_until_sleep() is None
    field_of(world.block, at.VELOCITY_X)[:] = 0.0
    assert world.steps_until_sleep() in (STEPS, STEPS + 1)  # the other body's rest did not count alone


def test_a_body_that_moves_begins_to_rest_anew() -> None:
    world = Sleepers()
    for _ in range(20):
        _update(world.block, 2, world.awake, world.solved)
    assert value_of(world.block, at.REST_TIME) == pytest.approx(0.4)
    field_of(world.block, at.OMEGA)[:] = 1.0
    _update(world.block, 2, world.awake, world.solved)
    assert value_of(world.block, at.REST_TIME) == 0.0
    assert value_of(world.block, BODY + at.REST_TIME) == pytest.approx(0.42)


def test_bodies_that_overlap_do_not_sleep() -> None:
    world = Sleepers()
    world.solved[:] = 0.0
    assert world.steps_until_sleep() is None


def test_sleeping_bodies_stand_still() -> None:
    world = Sleepers(vx=0.005, vy=-0.003, w=0.01)
    assert world.steps_until_sleep() is not None
    for field in (at.VELOCITY_X, at.VELOCITY_Y, at.OMEGA, at.REST_TIME):
        assert value_of(world.block, field) == 0.0


def test_each_lane_sleeps_alone() -> None:
    world = Sleepers()
    field_of(world.block, at.VELOCITY_X)[1::2] = 1.0
    assert world.steps_until_sleep() is not None
    assert world.awake.tolist() == [0.0, 1.0] * (LANES // 2)
    assert field_of(world.block, at.VELOCITY_X).tolist() == [0.0, 1.0] * (LANES // 2)
