"""Many worlds solved together: each as Box2D solves it alone, whatever the others are."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.arrays import World
from gym_dr.envs.box2d.solver.layout import BODY, LANES
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.solver.free_brick import BRICK, step
from tests.envs.box2d.solver.worlds import begin, make_scratch, make_world, place

HILLS = [(-6.0, 2.0, -2.0, 0.0), (-2.0, 0.0, 0.0, 0.5), (0.0, 0.5, 1.5, 0.0), (1.5, 0.0, 6.0, 2.5)]
MOTION = slice(at.CENTER_X, at.OMEGA + 1)  # pose and velocity
COUNT = 2 * LANES + 3  # three blocks, of which the last is hardly filled


def starts(count: int) -> Any:
    """Where bricks begin (x, y, angle) and how they fly (vx, vy, w)."""
    rng = np.random.default_rng(2)
    return rng.uniform((-2, 1.5, -3, -4, -6, -8), (2, 4, 3, 4, 2, 8), (count, 6)).astype(np.float32)


def flying(states: Any) -> World:
    """A world for each state."""
    world = make_world([BRICK], num_envs=len(states), edges=HILLS, density=2.0, friction=0.4, ground_friction=0.9)
    for env, (x, y, angle, *velocity) in enumerate(states):
        place(world, x, y, angle, env=env)
        world.rows[env, at.VELOCITY_X : at.OMEGA + 1] = velocity
    world.rows[:, BODY + at.AWAKE] = 1.0
    begin(world)
    return world


def box2ds_brick(state: Any) -> tuple[Any, Any]:
    """Box2D's world with the same brick, and the brick."""
    import Box2D
    from Box2D.b2 import edgeShape, fixtureDef, polygonShape

    x, y, angle, vx, vy, w = map(float, state)
    world = Box2D.b2World(gravity=(0, -10))
    for x1, y1, x2, y2 in HILLS:
        hill = edgeShape(vertices=[(x1, y1), (x2, y2)])
        world.CreateStaticBody(fixtures=fixtureDef(shape=hill, friction=0.9))
    shape = fixtureDef(shape=polygonShape(vertices=list(BRICK)), density=2.0, friction=0.4)
    brick = world.CreateDynamicBody(position=(x, y), angle=angle, fixtures=shape)
    brick.linearVelocity, brick.angularVelocity = (vx, vy), w
    return world, brick


@pytest.mark.skipif(find_spec("Box2D") is None or not EXACT, reason="compares with Box2D, bit for bit")
def test_bricks_fall_slide_and_come_to_rest_as_in_box2d() -> None:
    states = starts(COUNT)
    ours, scratch, theirs = flying(states), make_scratch(), [box2ds_brick(state) for state in states]
    awake, touched = set(range(COUNT)), 0
    for t in range(300):
        step(ours, scratch)
        for env in sorted(awake):
            world, brick = theirs[env]
            world.Step(1 / 50, at.VELOCITY_ITERATIONS, at.POSITION_ITERATIONS)
            motion = [*brick.worldCenter, brick.angle, *brick.linearVelocity, brick.angularVelocity]
            assert ours.rows[env, MOTION].tolist() == motion, (t, env)
            assert bool(ours.rows[env, BODY + at.AWAKE]) == brick.awake, (t, env)
            touched += bool(ours.status[env, at.S_TOUCHES])
            if not brick.awake:  # that a world sleeps ends an episode; it is not stepped again before the next
                awake.remove(env)
    assert touched > 20 * COUNT
    assert awake == set()


def test_a_world_does_not_depend_on_those_that_are_solved_with_it() -> None:
    states = starts(COUNT)
    together, scratch = flying(states), make_scratch()
    alone = [flying(states[env : env + 1]) for env in range(0, COUNT, 5)]
    for _ in range(120):
        step(together, scratch)
        for world in alone:
            step(world, scratch)
    for k, world in enumerate(alone):
        assert world.rows[0].tobytes() == together.rows[5 * k].tobytes()
        assert (world.contact_floats[0] == together.contact_floats[5 * k]).all()


def test_a_brick_at_rest_stays_where_it_is_and_falls_asleep_after_half_a_second() -> None:
    world, scratch = make_world([BRICK], edges=[(-5.0, 0.0, 5.0, 0.0)]), make_scratch()
    place(world, 1.0, 0.5 + 0.015)  # Box2D lets shapes sink by a slop of 5 mm into their skins of 10 mm each
    world.rows[0, BODY + at.AWAKE] = 1.0
    begin(world)
    awake = []
    for _ in range(40):
        step(world, scratch)
        awake.append(bool(world.rows[0, BODY + at.AWAKE]))
    assert world.rows[0, at.CENTER_X : at.ANGLE + 1].tolist() == pytest.approx([1.0, 0.515, 0.0], abs=2e-3)
    assert 24 <= awake.index(False) <= 30
