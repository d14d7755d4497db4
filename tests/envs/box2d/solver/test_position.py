"""From velocities to positions: one step, with Box2D's limits on it."""

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
from gym_dr.envs.box2d.solver import position
from gym_dr.envs.box2d.solver.layout import BODY, DT
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.solver.lanes import filled, value_of
from tests.strategies import few

MOTION = at.CENTER_X, at.CENTER_Y, at.ANGLE, at.VELOCITY_X, at.VELOCITY_Y, at.OMEGA


@njit(**ENTRY)
def _integrate(body: Any, dt: Any) -> None:
    position.integrate(body, dt)


cache_on_disk(_integrate, "the solver's tests")


def moved(*motion: float, dt: float = DT) -> list[float]:
    """Pose and velocity after ``dt`` s."""
    body = filled(BODY, dict(zip(MOTION, motion, strict=True)))
    _integrate(body, np.float32(dt))
    return [value_of(body, field) for field in MOTION]


def test_a_body_moves_by_its_velocity() -> None:
    assert moved(1.0, 2.0, 3.0, 4.0, -8.0, 8.0, dt=0.125) == [1.5, 1.0, 4.0, 4.0, -8.0, 8.0]


def test_no_body_moves_by_more_than_two_meters_a_step() -> None:
    # 3-4-5: 300 and 400 m/s are 10 m in a step, five times too much
    assert moved(0.0, 0.0, 0.0, 300.0, 400.0, 0.0) == pytest.approx([1.2, 1.6, 0.0, 60.0, 80.0, 0.0], rel=1e-6)


def test_no_body_turns_by_more_than_a_quarter_turn_a_step() -> None:
    assert moved(0.0, 0.0, 0.0, 1.0, 0.0, -200.0) == pytest.approx(
        [0.02, 0.0, -np.pi / 2, 1.0, 0.0, -25 * np.pi], rel=1e-6
    )


speeds = st.floats(-300.0, 300.0, width=32)


@given(vx=speeds, vy=speeds, w=speeds)
@few
def test_the_direction_of_a_velocity_stays(vx: float, vy: float, w: float) -> None:
    x, y, angle, ux, uy, uw = moved(0.0, 0.0, 0.0, vx, vy, w)
    assert np.hypot(x, y) <= 2.0 + 1e-5
    assert abs(angle) <= np.pi / 2 + 1e-6
    assert ux * vy == pytest.approx(uy * vx, rel=1e-5, abs=1e-30)
    assert ux * vx >= 0.0
    assert uw * w >= 0.0


@pytest.mark.skipif(find_spec("Box2D") is None or not EXACT, reason="compares with Box2D, bit for bit")
def test_free_bodies_move_as_in_box2d() -> None:
    import Box2D
    from Box2D.b2 import fixtureDef, polygonShape

    rng, world = np.random.default_rng(4), Box2D.b2World(gravity=(0, 0))
    body = world.CreateDynamicBody(fixtures=fixtureDef(shape=polygonShape(box=(1, 1)), density=1.0))
    for size in np.repeat([1.0, 50.0, 200.0], 40):
        vx, vy, w = map(float, rng.uniform(-size, size, 3).astype(np.float32))
        body.linearVelocity, body.angularVelocity = (vx, vy), w
        expected = moved(*body.worldCenter, body.angle, vx, vy, w)
        world.Step(1 / 50, 1, 1)
        assert expected == [*body.worldCenter, body.angle, *body.linearVelocity, body.angularVelocity]
