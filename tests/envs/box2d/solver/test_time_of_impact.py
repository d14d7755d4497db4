"""When a moving body first touches the ground: known answers, and Box2D's own for any motion."""

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
from gym_dr.envs.box2d.solver import time_of_impact as impact
from gym_dr.envs.box2d.solver.arrays import World
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.solver.worlds import SHAPES, make_scratch, make_world
from tests.strategies import few

EDGE, BOX = (-5.0, 0.0, 5.0, 0.0), (-5.0, 5.0, 0.0, -1.0)  # both have their top at y = 0
EITHER = pytest.mark.parametrize("ground", [{"edges": [EDGE]}, {"boxes": [BOX]}], ids=["edge", "box"])
APART = 2.0
NEAR = 0.005 + 0.25 * 0.005  # m: what counts as touching, with its tolerance
SCRATCH = make_scratch()
Pose = tuple[float, float, float]  # center of mass (m), angle (rad)


@njit(**ENTRY)
def _time(world: Any, scratch: Any) -> tuple[Any, Any]:
    shapes, floats, sweep = world.shapes, scratch.floats, np.int64(at.W_SWEEPS)
    polygon = (
        shapes.vertices[0],
        shapes.counts[0],
        (world.properties[0, 0, at.LOCAL_CENTER_X], world.properties[0, 0, at.LOCAL_CENTER_Y]),
    )
    impact.load_ground(world, 0, np.int64(0), scratch)
    (start_sine, start_cosine), (end_sine, end_cosine) = sin_cos(floats[sweep + 2]), sin_cos(floats[sweep + 5])
    start, end = (start_cosine, start_sine), (end_cosine, end_sine)
    may = impact.may_touch(floats, scratch.ints, sweep, polygon, shapes.reach[0], start, end)
    return impact.time_of_impact(scratch, sweep, polygon), may


cache_on_disk(_time, "the solver's tests")


def time_of(world: World, start: Pose, end: Pose) -> tuple[float, bool]:
    """Time of impact of the world's body, and whether the quick check lets it be computed."""
    SCRATCH.floats[at.W_SWEEPS : at.W_SWEEPS + at.SWEEP] = [*start, *end, 0.0]
    time, may = _time(world, SCRATCH)
    return float(time), bool(may)


@EITHER
def test_a_falling_brick_touches_when_half_a_centimeter_is_left(ground: Any) -> None:
    # its lower side falls from 1.5 to -0.5 and is at 0.005 after (1.5 - 0.005) / 2 of the way
    time, may = time_of(make_world(**ground), (0.0, 2.0, 0.0), (0.0, 0.0, 0.0))
    assert time == pytest.approx(0.7475, abs=0.25 * 0.005 / 2)
    assert may


@EITHER
def test_a_brick_that_flies_by_never_touches(ground: Any) -> None:
    world = make_world(**ground)
    assert time_of(world, (0.0, 2.0, 0.0), (0.0, 0.52, 0.0)) == (APART, False)
    assert time_of(world, (6.5, 2.0, 0.0), (6.5, -2.0, 0.0)) == (APART, False)


@EITHER
def test_a_brick_that_just_touches_at_the_end_of_the_step_is_not_overlooked(ground: Any) -> None:
    # 5.5 mm are left, within the tolerance of 1.25 mm around 5 mm
    assert time_of(make_world(**ground), (0.0, 2.0, 0.0), (0.0, 0.5055, 0.0)) == (1.0, True)


def test_a_turning_brick_touches_with_its_corner() -> None:
    # 1 m above the edge a brick that turns about its middle touches when a corner, sqrt(1.25) = 1.118 m away and at
    # first 0.4636 rad below the horizontal, has come down to 0.995: asin(0.995 / 1.118) = 1.0973 rad, so after
    # 0.6337 of the 1 rad that it turns
    time, may = time_of(make_world(edges=[EDGE]), (0.0, 1.0, 0.0), (0.0, 1.0, 1.0))
    assert time == pytest.approx(0.6337, abs=0.003)
    assert may


heights, places, angles = st.floats(-3.0, 3.0, width=32), st.floats(-6.0, 6.0, width=32), st.floats(-4.0, 4.0, width=32)
poses = st.tuples(places, heights, angles)


@given(shape=st.sampled_from(sorted(SHAPES)), start=poses, end=poses, boxed=st.booleans())
@few
def test_times_are_fractions_of_the_step_and_what_cannot_touch_has_none(
    shape: str, start: Pose, end: Pose, boxed: bool
) -> None:
    world = make_world([SHAPES[shape]], **({"boxes": [BOX]} if boxed else {"edges": [EDGE]}))
    time, may = time_of(world, start, end)
    assert 0.0 <= time <= 1.0 or time == APART
    assert may or time == APART


@given(x=places, start=st.floats(0.625, 3.0, width=32), end=st.floats(-3.0, 3.0, width=32), side=places)
@few
def test_until_its_impact_a_falling_brick_is_above_the_ground(x: float, start: float, end: float, side: float) -> None:
    wide = (-50.0, 0.0, 50.0, 0.0)
    time, _ = time_of(make_world(edges=[wide]), (x, start, 0.0), (side, end, 0.0))
    lowest = start + min(time, 1.0) * (end - start) - 0.5  # of the brick, then
    if time == APART:
        assert lowest > NEAR - 0.0026
    else:
        assert lowest == pytest.approx(0.005, abs=0.00126)


def box2ds_time(shape: str, center: Any, ground: Any, boxed: bool, start: Pose, end: Pose) -> float:
    import Box2D

    from tests.envs.box2d.solver.box2d_shapes import box_of, edge_of, polygon_of

    still, sweep, body = Box2D.b2Sweep(), Box2D.b2Sweep(), polygon_of(SHAPES[shape])
    still.c0 = still.c = still.localCenter = (0.0, 0.0)
    still.a0 = still.a = still.alpha0 = sweep.alpha0 = 0.0
    sweep.localCenter = center
    (sweep.c0, sweep.a0), (sweep.c, sweep.a) = (start[:2], start[2]), (end[:2], end[2])
    other = box_of(*ground) if boxed else edge_of(*ground)
    state, time = Box2D.b2TimeOfImpact(shapeA=other, shapeB=body, idxA=0, idxB=0, sweepA=still, sweepB=sweep, tMax=1.0)
    return time if state == Box2D.b2TOIOutput.e_touching else APART


@pytest.mark.skipif(find_spec("Box2D") is None or not EXACT, reason="compares with Box2D, bit for bit")
@pytest.mark.parametrize("boxed", [False, True], ids=["edge", "box"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_times_are_box2ds(shape: str, boxed: bool) -> None:
    rng, touched = np.random.default_rng(1), 0
    ground = BOX if boxed else (-5.0, 0.5, 5.0, -0.25)
    world = make_world([SHAPES[shape]], **{"boxes" if boxed else "edges": [ground]})
    center = tuple(world.properties[0, 0, at.LOCAL_CENTER_X : at.LOCAL_CENTER_Y + 1].tolist())
    for _ in range(400):
        start, end = (
            tuple(map(float, rng.uniform(*bounds).astype(np.float32)))
            for bounds in (((-6, 0.5, -4), (6, 3, 4)), ((-6, -2, -4), (6, 3, 4)))
        )
        time, may = time_of(world, start, end)
        assert time == box2ds_time(shape, center, ground, boxed, start, end), (start, end)
        assert may or time == APART
        touched += time != APART
    assert 100 < touched < 390
