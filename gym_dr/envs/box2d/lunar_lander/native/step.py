"""One step of many landers, from top to bottom in the order in which it happens.

    begin episodes     episode.begin, for environments marked fresh
    push               forces.wind, forces.engines, forces.apply
    collide            manifolds.update_all                            -> which contacts touch
    solve              island.solve: joints and contacts               -> velocities, positions, who sleeps, fat boxes
    look ahead         impacts.resolve: new contacts and impacts
    observe            observe.observe

Everything here is plain functions over arrays; ``arrays.py`` defines the arrays.
"""

from __future__ import annotations

from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.compiled.formula import compile_formula
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.box2d.lunar_lander.native import episode, forces, observe
from gym_dr.envs.box2d.lunar_lander.native.topology import TOPOLOGY
from gym_dr.envs.box2d.solver import impacts, island, manifolds
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import CHUNK, CLASSES, ZERO

_of_choice, _of_numbers = map(compile_formula, (physics.throttles_of_choice, physics.throttles_of_numbers))


@njit(**INLINE)
def _throttles(landers, env):
    """The action's throttles; engines are off in the step that begins an episode."""
    actions = landers.actions
    if landers.arrays.world.status[env, at.S_FRESH] != 0:
        return _of_choice(0)
    if actions.continuous:
        return _of_numbers(actions.throttles[env, 0], actions.throttles[env, 1])
    return _of_choice(actions.discrete[env])


@njit(**INLINE)
def _before_solving(landers, env):
    """Begins the episode if it is fresh, pushes and collides; returns its class."""
    arrays, _, gusts, scratch, _ = landers
    world = arrays.world
    rows, contact_ints, status = world.rows, world.contact_ints, world.status
    force_x = ZERO
    force_y = ZERO
    if status[env, at.S_FRESH] != 0:
        force_x, force_y = episode.begin(arrays, env)
        status[env, at.S_FRESH] = 1
    wind, torque = forces.wind(arrays, gusts, env)
    forces.engines(arrays, env, _throttles(landers, env))
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


@njit(**KERNEL)
def step(landers, first, last):
    """Steps the environments ``envs[first:last]``; those marked fresh begin an episode and get reward 0."""
    arrays, _, _, scratch, envs = landers
    world, ints = arrays.world, scratch.ints
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
            observe.observe(arrays, env, _throttles(landers, env))
            if status[env, at.S_FRESH] != 0:
                arrays.rewards[env] = 0.0
                arrays.terminations[env] = False
                status[env, at.S_FRESH] = 0
