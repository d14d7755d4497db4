"""Fast bodies stop at the ground instead of passing through it."""

from __future__ import annotations

import numpy as np
import pytest

from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.arrays import World
from gym_dr.envs.box2d.solver.layout import BODY
from tests.envs.box2d.solver.free_brick import BRICK, step
from tests.envs.box2d.solver.worlds import begin, make_scratch, make_world, place

EDGE = (-50.0, 0.0, 50.0, 0.0)


def thrown(x: float, y: float, velocity: tuple[float, float, float], angle: float = 0.0) -> World:
    world = make_world([BRICK], edges=[EDGE])
    place(world, x, y, angle)
    world.rows[0, at.VELOCITY_X : at.OMEGA + 1] = velocity
    world.rows[0, BODY + at.AWAKE] = 1.0
    begin(world)
    return world


@pytest.mark.parametrize("speed", [20.0, 60.0, 99.0])
def test_a_brick_that_would_pass_an_edge_in_one_step_stops_at_it(speed: float) -> None:
    world, scratch = thrown(0.0, 0.9, (0.0, -speed, 0.0)), make_scratch()
    # its lower side is 0.4 above the edge, and moves by up to 1.98 in a step
    step(world, scratch, gravity=0.0)
    lowest = world.rows[0, at.CENTER_Y] - 0.5
    assert 0.0 < lowest < 0.02
    assert world.status[0, at.S_TOUCHES] == 1


def test_after_an_impact_the_rest_of_the_step_goes_on() -> None:
    # without friction it slides on: 50 m/s is 1 m in a step, whole or in two parts
    world, scratch = thrown(0.0, 0.9, (50.0, -50.0, 0.0)), make_scratch()
    step(world, scratch, gravity=0.0)
    assert world.rows[0, at.CENTER_X] == pytest.approx(1.0, abs=1e-3)
    assert world.rows[0, at.CENTER_Y] == pytest.approx(0.51, abs=0.01)
    assert world.rows[0, at.VELOCITY_X] == 50.0
    assert world.rows[0, at.VELOCITY_Y] == 0.0


def test_a_brick_never_ends_a_step_below_the_ground() -> None:
    rng = np.random.default_rng(3)
    corners = np.array(BRICK)
    for _ in range(60):
        y, vx, vy, w, angle = rng.uniform((1.2, -60, -95, -70, -3), (2.5, 60, -20, 70, 3)).tolist()
        world, scratch = thrown(0.0, y, (vx, vy, w), angle), make_scratch()
        for _ in range(3):
            step(world, scratch)
            row = world.rows[0]
            lowest = (row[at.SIN] * corners[:, 0] + row[at.COS] * corners[:, 1]).min() + row[at.CENTER_Y]
            assert lowest > -0.02  # the skins
