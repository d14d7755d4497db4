"""The step of worlds that have one ``BRICK`` each, and no joints."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL
from gym_dr.envs.box2d.solver import broad_phase, impacts, island, manifolds
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.arrays import Scratch, World
from gym_dr.envs.box2d.solver.island import Topology
from gym_dr.envs.box2d.solver.joints import mark_solved
from gym_dr.envs.box2d.solver.layout import BODY, DT, HEAD, LANES
from gym_dr.envs.box2d.solver.shapes import hull

f32 = np.float32
ZERO = f32(0)
BRICK = (-1.0, -0.5), (1.0, -0.5), (1.0, 0.5), (-1.0, 0.5)


@njit(**KERNEL)
def _nothing(block):
    pass


@njit(**KERNEL)
def _no_joints(block, iterations):
    pass


@njit(**KERNEL)
def _are_solved(block):
    count = 0
    for lane in range(LANES):
        count += mark_solved(block, lane, np.int64(BODY), True)
    return count


_VERTICES = hull(BRICK, 1.0).vertices.ravel()


@njit(**KERNEL)
def _update_boxes(block):
    for lane in range(LANES):
        block[(BODY + at.MOVED) * LANES + lane] = broad_phase.update_lane(
            block, lane, np.int64(0), _VERTICES, np.int64(4), (ZERO, ZERO)
        )


BLOCK = BODY + HEAD
TOPOLOGY = Topology(
    bodies=np.int64(1),
    order=(np.int64(0),),
    packed=np.int64(BLOCK),
    returned=np.int64(BLOCK),
    block=np.int64(BLOCK),
    prepare_joints=_nothing,
    solve_joints=_no_joints,
    solve_joint_pair=_no_joints,
    solve_joint_positions=_are_solved,
    update_boxes=_update_boxes,
)


@njit(**ENTRY)
def _step(world, scratch, gravity):
    count = len(world.rows)
    for env in range(count):
        if world.status[env, at.S_CONTACTS] > 0:
            manifolds.update_all(world, env, scratch)
        world.rows[env, at.VELOCITY_Y] += DT * gravity
        touching = 0
        for i in range(world.status[env, at.S_CONTACTS]):
            touching += 1 if world.contact_ints[env, i, at.C_TOUCHING] != 0 else 0
        scratch.ints[at.I_CLASS + env] = (touching << 40) | env
    island.solve(TOPOLOGY, world, scratch, count)
    for env in range(count):
        impacts.resolve(world, env, scratch)


cache_on_disk(_step, "the solver's tests")


def step(world: World, scratch: Scratch, gravity: float = -10.0) -> None:
    """Steps at most ``CHUNK`` worlds by 1/50 s."""
    _step(world, scratch, f32(gravity))
