"""One step of many walkers, from top to bottom in the order in which it happens.

    begin episodes     episode.begin, for environments marked fresh
    drive              _drive: the action sets speed and torque of the motors; gravity and the first push
    collide            manifolds.update_all                            -> which contacts touch
    solve              island.solve: joints and contacts               -> velocities, positions, who sleeps, fat boxes
    look ahead         impacts.resolve: new contacts and impacts
    observe            observe.observe, with the lidar

Everything here is plain functions over arrays; ``arrays.py`` defines the arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.bipedal_walker import physics
from gym_dr.envs.box2d.bipedal_walker.native import episode, observe
from gym_dr.envs.box2d.bipedal_walker.native import layout as fields
from gym_dr.envs.box2d.bipedal_walker.native.layout import ACTIONS, BODIES, LOWER_0, LOWER_1
from gym_dr.envs.box2d.bipedal_walker.native.topology import TOPOLOGY
from gym_dr.envs.box2d.solver import impacts, island, manifolds
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, CHUNK, DT, ZERO, f32

_motor = compile_formula(physics.drive)


@njit(**INLINE)
def _drive(arrays, actions, env):
    """Speeds and impulse limits of the motors."""
    rows, params = arrays.world.rows, arrays.params
    torque = f32(params[env, fields.P_MOTOR_TORQUE])
    for i in range(ACTIONS):
        speed, limit = _motor(actions[env, i], f32(params[env, fields.P_HIP_SPEED + (i & 1)]), torque)
        rows[env, fields.SPEED_0 + i] = speed
        rows[env, fields.IMPULSE_0 + i] = DT * limit


@njit(**INLINE)
def _apply_forces(rows, env, push):
    """Velocities after gravity on all bodies, and a push along x (N) on the hull."""
    gravity = rows[env, fields.GRAVITY]
    rows[env, at.VELOCITY_X] += DT * (rows[env, fields.HULL_INV_MASS] * push)
    for body in range(BODIES):
        rows[env, body * BODY + at.VELOCITY_Y] += DT * gravity


@njit(**INLINE)
def _class_of(world, env):
    """The class of environments that take equally long to solve; see ``island.sort``.

    Neighboring classes differ in one leg only, because a block takes the most contacts that any of its lanes has with
    each body.
    """
    contact_ints = world.contact_ints
    left, right, others, left_pair, right_pair = 0, 0, 0, 0, 0
    for i in range(world.status[env, at.S_CONTACTS]):
        if contact_ints[env, i, at.C_TOUCHING] == 0:
            continue
        body = np.int64(contact_ints[env, i, at.C_BODY])
        pair = contact_ints[env, i, at.C_POINTS] > 1
        left += 1 if body == LOWER_0 else 0
        right += 1 if body == LOWER_1 else 0
        others += 1 if body not in (LOWER_0, LOWER_1) else 0
        left_pair = 1 if pair and body == LOWER_0 else left_pair
        right_pair = 1 if pair and body == LOWER_1 else right_pair
    left, right, others = min(left, 3), min(right, 3), min(others, 3)
    left = 3 - left if right & 1 else left
    return 64 * (2 * left_pair + (left_pair ^ right_pair)) + 16 * others + 4 * right + left


@njit(**INLINE)
def _before_solving(walkers, env):
    """Begins the episode if it is fresh, drives and collides; returns its class."""
    arrays, actions, scratch = walkers.arrays, walkers.actions, walkers.scratch
    world = arrays.world
    push = ZERO
    if world.status[env, at.S_FRESH] != 0:
        push = episode.begin(walkers, env)
        world.status[env, at.S_FRESH] = 1
        for i in range(ACTIONS):
            actions[env, i] = ZERO
    _drive(arrays, actions, env)
    if world.status[env, at.S_CONTACTS] > 0:
        manifolds.update_all(world, env, scratch)
    _apply_forces(world.rows, env, push)
    return _class_of(world, env)


@njit(**KERNEL)
def step(walkers, first, last):
    """Steps the environments ``envs[first:last]``; those marked fresh begin an episode and get reward 0."""
    arrays, actions, scratch, envs = walkers.arrays, walkers.actions, walkers.scratch, walkers.envs
    world, ints = arrays.world, scratch.ints
    for start in range(first, last, CHUNK):
        count = min(CHUNK, last - start)
        for place in range(count):
            env = envs[start + place]
            ints[at.I_CLASS + place] = (_before_solving(walkers, env) << 40) | env
        island.solve(TOPOLOGY, world, scratch, count)
        for place in range(count):
            env = envs[start + place]
            impacts.resolve(world, env, scratch)
            observe.observe(arrays, actions, env)
            if world.status[env, at.S_FRESH] != 0:
                arrays.rewards[env] = 0.0
                arrays.terminations[env] = False
                world.status[env, at.S_FRESH] = 0
