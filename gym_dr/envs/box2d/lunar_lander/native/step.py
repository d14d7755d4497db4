"""One step of many landers, from top to bottom in the order in which it happens.

    begin episodes     episode.begin, for environments marked fresh
    push               forces.wind, forces.engines, forces.apply
    collide            manifolds.update_all                            -> which contacts touch
    solve              island.solve: joints and contacts               -> velocities, positions, who sleeps, fat boxes
    look ahead         impacts.resolve: new contacts and impacts
    observe            observe.observe

Everything here is plain functions over arrays; ``memory.py`` defines the arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import ENTRY, INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander.native import episode, forces, observe
from gym_dr.envs.box2d.lunar_lander.native.topology import TOPOLOGY
from gym_dr.envs.box2d.solver import impacts, island, manifolds
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import CHUNK, CLASSES

f32 = np.float32
ZERO = f32(0)


@njit(**KERNEL)
def _throttles(actions, env):
    """The action as main throttle, side throttle (0 or 0.5 to 1) and direction (-1 left, 1 right)."""
    if not actions.continuous:
        choice = actions.choices[env]
        if choice == 2:
            return 1.0, 0.0, 0.0
        return 0.0, 0.0 if choice == 0 else 1.0, np.float64(choice - 2)
    main = min(max(actions.throttles[env, 0], -1.0), 1.0)
    side = min(max(actions.throttles[env, 1], -1.0), 1.0)
    main_power = (main + 1.0) * 0.5 if main > 0.0 else 0.0
    side_power = abs(side) if abs(side) > 0.5 else 0.0
    return main_power, side_power, 1.0 if side > 0.0 else -1.0


@njit(**INLINE)
def _before_solving(landers, env):
    """Begins the episode if it is fresh, pushes and collides; returns its class."""
    memory, actions, gusts, scratch = landers
    world = memory.world
    rows, contact_ints, status = world.rows, world.contact_ints, world.status
    force_x = ZERO
    force_y = ZERO
    main, side, direction = _throttles(actions, env)
    if status[env, at.S_FRESH] != 0:
        force_x, force_y = episode.begin(memory, env)
        status[env, at.S_FRESH] = 1
        main = 0.0
        side = 0.0
    wind, torque = forces.wind(memory, gusts, env)
    forces.engines(memory, env, main, side, direction)
    if status[env, at.S_CONTACTS] > 0:
        manifolds.update_all(world, env, scratch)
    forces.apply(rows, env, force_x + wind, force_y, torque)
    touching = 0
    pair = 0
    for i in range(status[env, at.S_CONTACTS]):
        if contact_ints[env, i, at.C_TOUCHING] != 0:
            touching += 1 << 2 * int(contact_ints[env, i, at.C_BODY])
            pair = CLASSES // 2 if contact_ints[env, i, at.C_POINTS] > 1 else pair
    return pair + min(touching, CLASSES // 2 - 1)


@njit(**ENTRY)
def step(landers, envs, first, last):
    """Steps the environments ``envs[first:last]``; those marked fresh begin an episode and get reward 0."""
    memory, actions, _, scratch = landers
    world, ints = memory.world, scratch.ints
    status = world.status
    for start in range(first, last, CHUNK):
        count = min(CHUNK, last - start)
        for place in range(count):
            env = envs[start + place]
            ints[at.I_CLASS + place] = (_before_solving(landers, env) << 40) | env
        island.solve(TOPOLOGY, world, scratch, count)
        for place in range(count):
            env = envs[start + place]
            impacts.resolve(world, env, scratch)
            main, side, _ = _throttles(actions, env)
            if status[env, at.S_FRESH] != 0:
                main = 0.0
                side = 0.0
            observe.observe(memory, env, main, side)
            if status[env, at.S_FRESH] != 0:
                memory.rewards[env] = 0.0
                memory.terminations[env] = False
                status[env, at.S_FRESH] = 0
