"""One step of many environments, from top to bottom in the order in which it happens.

    begin episodes     episode.begin, for environments marked fresh
    push               forces.wind, forces.engines, forces.apply
    collide            broad_phase.overlaps, manifolds.update          -> which contacts touch
    sort               environments whose bodies touch alike share a block
    solve, by block    joints and contacts, 180 velocity iterations    -> velocities
                       position.integrate                              -> positions
                       contacts and joints, up to 60 position iterations
                       sleep.update, broad_phase.update_block
    contacts begin     broad_phase.begin_contacts
    impacts            impacts.resolve
    observe            observe.observe

Everything here is plain functions over arrays; ``memory.py`` says which arrays there are.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.options import ENTRY, INLINE, KERNEL
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import (
    broad_phase,
    contacts,
    episode,
    forces,
    impacts,
    joints,
    manifolds,
    observe,
    position,
    sleep,
    slots,
)
from gym_dr.envs.box2d.lunar_lander.native import layout as at
from gym_dr.envs.box2d.lunar_lander.native.layout import (
    BODIES,
    BODY,
    CHUNK,
    CLASSES,
    CONTACT_FLOATS,
    CONTACT_INTS,
    DT,
    LANDER,
    LANES,
    LEG_0,
    LEG_1,
    SLOT,
    SLOT_STRIDE,
)

f32 = np.float32
ZERO = f32(0)
FIRST_SLOT = np.int64(0)
FIRST_TOUCHING = 4  # classes from here on have contacts
BAUMGARTE = f32(0.2)  # b2_baumgarte, share of the overlap that a position iteration resolves


@njit(**KERNEL)
def _collide(memory, env, scratch):
    """``b2ContactManager::Collide``: drop contacts whose fat boxes parted, renew the others, newest first."""
    contact_ints, contact_floats, status = memory.contact_ints, memory.contact_floats, memory.status
    for i in range(status[env, at.S_CONTACTS] - 1, -1, -1):
        body = np.int64(contact_ints[env, i, at.C_BODY])
        edge = np.int64(contact_ints[env, i, at.C_EDGE])
        if broad_phase.overlaps(memory.rows, memory.terrain, env, edge, body):
            manifolds.update(memory, env, i, scratch)
            continue
        if contact_ints[env, i, at.C_TOUCHING] != 0:
            manifolds.announce(status, env, body, manifolds.ENDS)
        last = status[env, at.S_CONTACTS] - 1
        for j in range(i, last):
            for k in range(CONTACT_INTS):
                contact_ints[env, j, k] = contact_ints[env, j + 1, k]
            for k in range(CONTACT_FLOATS):
                contact_floats[env, j, k] = contact_floats[env, j + 1, k]
        status[env, at.S_CONTACTS] = last


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
    """Begin the episode if it is fresh, push and collide; returns its class."""
    memory, actions, gusts, scratch = landers
    rows, contact_ints, status = memory.rows, memory.contact_ints, memory.status
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
        _collide(memory, env, scratch)
    forces.apply(rows, env, force_x + wind, force_y, torque)
    touching = 0
    pair = 0
    for i in range(status[env, at.S_CONTACTS]):
        if contact_ints[env, i, at.C_TOUCHING] != 0:
            touching += 1 << 2 * int(contact_ints[env, i, at.C_BODY])
            pair = 2 if contact_ints[env, i, at.C_POINTS] > 1 else pair
    touching = min(touching, CLASSES // 4 - 1)
    return 4 * touching + pair + (0 if rows[env, at.SOLVED] != ZERO else 1)


@njit(**KERNEL)
def _load_rows(rows, ints, first, last, block):
    """Transpose rows into a block; lanes that are left over repeat the first environment and are not stored."""
    for lane in range(LANES):
        place = first + lane
        env = ints[at.I_ORDER + (place if place < last else first)]
        for k in range(at.PACKED):
            block[k * LANES + lane] = rows[env, k]


@njit(**KERNEL)
def _store_rows(rows, ints, first, last, block):
    for lane in range(last - first):
        env = ints[at.I_ORDER + first + lane]
        for k in range(at.PHYSICS):
            rows[env, k] = block[k * LANES + lane]
        for k in range(at.MOVED, at.RETURNED):
            rows[env, k] = block[k * LANES + lane]


@njit(**KERNEL)
def _body_slots(memory, ints, first, last, body):
    """Slots that a body needs: the most touching contacts that it has in any environment of the block."""
    most = 0
    for place in range(first, last):
        most = max(most, slots.touching(memory, ints[at.I_ORDER + place], body))
    return most


@njit(**KERNEL)
def _load_slots(memory, ints, first, last, body, slot_memory, slot):
    """Fill a body's slots from number ``slot`` on in every lane; returns the next free number."""
    needed = _body_slots(memory, ints, first, last, body)
    for k in range(slot * SLOT * LANES, (slot + needed) * SLOT * LANES):
        slot_memory[k] = ZERO
    for lane in range(last - first):
        env = ints[at.I_ORDER + first + lane]
        slots.load(slot_memory, slot, lane, memory, env, body)
    return slot + needed


@njit(**KERNEL)
def _store_slots(memory, ints, first, last, body, slot_memory, slot):
    for lane in range(last - first):
        env = ints[at.I_ORDER + first + lane]
        slots.store(slot_memory, slot, lane, memory, env, body)


@njit(**KERNEL)
def _load_block(memory, ints, first, last, block, slot_memory):
    """Bring environments into a block; returns where the slots of leg 1, of the lander and of leg 0 end."""
    _load_rows(memory.rows, ints, first, last, block)
    if ints[at.I_CLASS + last - 1] < FIRST_TOUCHING:  # sorted, so none touches
        return 0, 0, 0
    leg_1 = _load_slots(memory, ints, first, last, LEG_1, slot_memory, FIRST_SLOT)
    hull = _load_slots(memory, ints, first, last, LANDER, slot_memory, leg_1)
    leg_0 = _load_slots(memory, ints, first, last, LEG_0, slot_memory, hull)
    return leg_1, hull, leg_0


@njit(**KERNEL)
def _base(j, ends):
    """Where in a block the fields of the body begin that slot ``j`` belongs to; ``ends`` is that of ``_load_block``."""
    body = LEG_1 if j < ends[0] else (LANDER if j < ends[1] else LEG_0)
    return body * at.BODY_FLOATS


@njit(**KERNEL)
def _start_velocities(block, slot_memory, ends):
    """Prepare contacts and joints and start from the last step's impulses; returns which slots have pairs, as bits."""
    pairs = 0
    for j in range(ends[2]):
        base = _base(j, ends)
        slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
        contacts.prepare(block[base : base + at.BODY_FLOATS], slot)
        if contacts.any_pair(slot):
            pairs |= 1 << j
    for j in range(ends[2]):
        base = _base(j, ends)
        slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
        contacts.warm_start(block[base : base + at.BODY_FLOATS], slot)
    joints.prepare(block)
    return pairs


@njit(**KERNEL)
def _solve_contacts(block, slot_memory, ends, pairs):
    """One velocity iteration of all slots; ``pairs`` is that of ``_start_velocities``."""
    for j in range(ends[2]):
        base = _base(j, ends)
        slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
        if (pairs >> j) & 1:
            contacts.solve_velocity(block[base : base + at.BODY_FLOATS], slot)
        else:
            contacts.solve_single_velocity(block[base : base + at.BODY_FLOATS], slot)


@njit(**KERNEL)
def _solve_positions(block, slot_memory, ends):
    """Position iterations until every lane is solved."""
    penetration = block[at.PENETRATION * LANES : (at.PENETRATION + 1) * LANES]
    solved = block[at.SOLVED * LANES : (at.SOLVED + 1) * LANES]
    for lane in range(LANES):
        solved[lane] = ZERO
    for _ in range(lander.POSITION_ITERATIONS):
        for lane in range(LANES):
            penetration[lane] = ZERO
        for j in range(ends[2]):
            base = _base(j, ends)
            slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
            contacts.solve_position(block[base : base + at.BODY_FLOATS], slot, penetration, solved, BAUMGARTE)
        if joints.solve_positions(block) == LANES:
            break


@njit(**KERNEL)
def _finish_block(block, slot_memory, ends):
    """From solved velocities to new poses, rest times and fat boxes."""
    for body in range(BODIES):
        for k in range(3 * LANES):
            block[(at.START + 3 * body) * LANES + k] = block[(body * BODY + at.CENTER_X) * LANES + k]
        position.integrate(block[body * at.BODY_FLOATS : (body + 1) * at.BODY_FLOATS], DT)
    _solve_positions(block, slot_memory, ends)
    sleep.update(block)
    broad_phase.update_block(block)


@njit(**KERNEL)
def _store_block(memory, ints, first, last, block, slot_memory, ends):
    _store_rows(memory.rows, ints, first, last, block)
    if ends[2] > 0:
        _store_slots(memory, ints, first, last, LEG_1, slot_memory, FIRST_SLOT)
        _store_slots(memory, ints, first, last, LANDER, slot_memory, ends[0])
        _store_slots(memory, ints, first, last, LEG_0, slot_memory, ends[1])


@njit(**KERNEL)
def _solve_pair(memory, scratch, first, last):
    """``b2Island::Solve`` for the environments at places ``first`` to ``last`` of the order: up to two blocks.

    Two blocks are iterated in turn, since the chain of operations of one leaves the processor half idle.
    """
    ints, blocks, slot_memory = scratch.ints, scratch.blocks, scratch.slots
    middle = min(first + LANES, last)
    block_a = blocks[: at.BLOCK_FLOATS]
    block_b = blocks[at.BLOCK_FLOATS :]
    slots_a = slot_memory[: at.SLOT_FLOATS]
    slots_b = slot_memory[at.SLOT_FLOATS :]
    ends_a = _load_block(memory, ints, first, middle, block_a, slots_a)
    pairs_a = _start_velocities(block_a, slots_a, ends_a)
    ends_b = (0, 0, 0)
    pairs_b = 0
    two = last > middle
    if two:
        ends_b = _load_block(memory, ints, middle, last, block_b, slots_b)
        pairs_b = _start_velocities(block_b, slots_b, ends_b)
    free = ends_a[2] + ends_b[2] == 0
    for _ in range(1 if free else lander.VELOCITY_ITERATIONS):
        joint_iterations = lander.VELOCITY_ITERATIONS if free else 1
        if two:
            joints.solve_pair(blocks, joint_iterations)
        else:
            joints.solve_velocities(blocks, joint_iterations)
        _solve_contacts(block_a, slots_a, ends_a, pairs_a)
        _solve_contacts(block_b, slots_b, ends_b, pairs_b)
    _finish_block(block_a, slots_a, ends_a)
    _store_block(memory, ints, first, middle, block_a, slots_a, ends_a)
    if two:
        _finish_block(block_b, slots_b, ends_b)
        _store_block(memory, ints, middle, last, block_b, slots_b, ends_b)


@njit(**KERNEL)
def _sort(ints, count):
    """Counting sort of the chunk's order by class; classes end up sorted with it.

    A block takes as long as its slowest lane, so lanes should be alike: in which bodies touch how often, in whether
    a contact has two points, and in whether an impact or unsolved joints in the last step make it likely that all
    position iterations will be needed.

    Environments come in as ``I_CLASS + place`` = class * 2**40 + environment, so that one array carries both.
    """
    for c in range(CLASSES + 1):
        ints[at.I_HISTOGRAM + c] = 0
    for place in range(count):
        ints[at.I_HISTOGRAM + 1 + (ints[at.I_CLASS + place] >> 40)] += 1
    for c in range(CLASSES):
        ints[at.I_HISTOGRAM + c + 1] += ints[at.I_HISTOGRAM + c]
    for place in range(count):
        item = ints[at.I_CLASS + place]
        c = item >> 40
        ints[at.I_ORDER + ints[at.I_HISTOGRAM + c]] = item
        ints[at.I_HISTOGRAM + c] += 1
    for place in range(count):
        item = ints[at.I_ORDER + place]
        ints[at.I_CLASS + place] = item >> 40
        ints[at.I_ORDER + place] = item & ((1 << 40) - 1)


@njit(**INLINE)
def _after_solving(memory, env, scratch):
    """New contacts and impacts."""
    rows = memory.rows
    moved = np.int64(rows[env, at.MOVED])
    if moved != 0:
        broad_phase.begin_contacts(memory, env, moved)
    if memory.status[env, at.S_CONTACTS] > 0 and rows[env, at.AWAKE] != ZERO:
        hit = impacts.resolve(memory, env, scratch)
        rows[env, at.SOLVED] = ZERO if hit else rows[env, at.SOLVED]


@njit(**ENTRY)
def step(landers, envs, first, last):
    """Step the environments ``envs[first:last]``; those marked fresh begin an episode and get reward 0."""
    memory, actions, _, scratch = landers
    status, ints = memory.status, scratch.ints
    for start in range(first, last, CHUNK):
        count = min(CHUNK, last - start)
        for place in range(count):
            env = envs[start + place]
            ints[at.I_CLASS + place] = (_before_solving(landers, env) << 40) | env
        _sort(ints, count)
        for place in range(0, count, 2 * LANES):
            _solve_pair(memory, scratch, place, min(place + 2 * LANES, count))
        for place in range(count):
            env = envs[start + place]
            _after_solving(memory, env, scratch)
            main, side, _ = _throttles(actions, env)
            if status[env, at.S_FRESH] != 0:
                main = 0.0
                side = 0.0
            observe.observe(memory, env, main, side)
            if status[env, at.S_FRESH] != 0:
                memory.rewards[env] = 0.0
                memory.terminations[env] = False
                status[env, at.S_FRESH] = 0
