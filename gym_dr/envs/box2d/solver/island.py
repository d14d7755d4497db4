"""``b2World::Solve`` for many worlds: sort similar ones together, load them into blocks, solve, and store them.

Whatever is specific to a family of worlds, above all its joints, comes as a ``Topology``: compiled functions, and
numbers that are compile-time constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gym_dr.compiled.flags import KERNEL
from gym_dr.envs.box2d.solver import contacts, position, sleep, slots
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import (
    BODY,
    BODY_FLOATS,
    DT,
    LANES,
    MAX_CONTACTS,
    ONE,
    SLOT,
    SLOT_FLOATS,
    SLOT_STRIDE,
    ZERO,
    f32,
)

FIRST_ITERATIONS = 3  # position iterations before environments that are not solved are gathered
BAUMGARTE = f32(0.2)  # b2_baumgarte, share of the overlap that a position iteration resolves


class Topology(NamedTuple):
    """The structure of a family of worlds."""

    bodies: np.int64
    order: tuple[np.int64, ...]  # of bodies, in which Box2D's island collects them, and so their contacts
    packed: np.int64  # fields that a block loads from a row
    returned: np.int64  # fields that it stores back
    block: np.int64  # fields of a block
    prepare_joints: Any  # (block)
    solve_joints: Any  # (block, iterations), velocities
    solve_joint_pair: Any  # (two blocks one after the other, iterations)
    solve_joint_positions: Any  # (block) -> lanes that are solved now
    update_boxes: Any  # (block): rotations, fat boxes and MOVED


@njit(**KERNEL)
def sort(ints, count):
    """Counting sort of the chunk's order by class; also sorts the classes.

    A block takes as many contacts of each body, and as many points, as any of its lanes has, so these should be alike.

    Input is ``I_CLASS + place`` = class * 2**40 + environment, so that one array holds both.
    """
    for c in range(at.CLASSES + 1):
        ints[at.I_HISTOGRAM + c] = 0
    for place in range(count):
        ints[at.I_HISTOGRAM + 1 + (ints[at.I_CLASS + place] >> 40)] += 1
    for c in range(at.CLASSES):
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


@njit(**KERNEL)
def _load_rows(rows, ints, first, last, block, packed):
    """Transposes rows into a block; unused lanes repeat the first environment and are not stored."""
    for lane in range(LANES):
        place = first + lane
        env = ints[at.I_ORDER + (place if place < last else first)]
        for k in range(packed):
            block[k * LANES + lane] = rows[env, k]


@njit(**KERNEL)
def _store_rows(rows, ints, first, last, block, topology, solved):
    """Stores the lanes whose SOLVED is ``solved``, 0 or 1."""
    flags = block[(topology.bodies * BODY + at.SOLVED) * LANES : (topology.bodies * BODY + at.SOLVED + 1) * LANES]
    for lane in range(last - first):
        if flags[lane] == solved:
            env = ints[at.I_ORDER + first + lane]
            for k in range(topology.returned):
                rows[env, k] = block[k * LANES + lane]


@njit(**KERNEL)
def _load_slots(world, ints, first, last, body, slot_memory, slot, bases):
    """Fills a body's slots from number ``slot`` on in every lane; returns the next free number.

    A body needs as many as it has touching contacts in any environment of the block, at most.
    """
    needed = 0
    for place in range(first, last):
        needed = max(needed, slots.touching(world, ints[at.I_ORDER + place], body))
    needed = min(needed, MAX_CONTACTS - slot)
    for k in range(slot * SLOT * LANES, (slot + needed) * SLOT * LANES):
        slot_memory[k] = ZERO
    for j in range(slot, slot + needed):
        ints[bases + j] = body * BODY_FLOATS
    for lane in range(last - first):
        slots.load(slot_memory, slot, slot + needed, lane, world, ints[at.I_ORDER + first + lane], body)
    return slot + needed


@njit(**KERNEL)
def _load_block(topology, world, ints, first, last, block, slot_memory, bases):
    """Loads environments into a block; returns the number of slots."""
    _load_rows(world.rows, ints, first, last, block, topology.packed)
    slot = np.int64(0)
    if ints[at.I_CLASS + last - 1] >= at.FIRST_TOUCHING:  # sorted, so otherwise none touches
        for body in topology.order:
            slot = _load_slots(world, ints, first, last, body, slot_memory, slot, bases)
    return slot


@njit(**KERNEL)
def _start_velocities(topology, block, slot_memory, count, ints, bases):
    """Prepares contacts and joints, applies the last step's impulses, and records the kind of each slot."""
    kinds = bases - at.I_BASES + at.I_KINDS
    for j in range(count):
        base = ints[bases + j]
        slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
        contacts.prepare(block[base : base + BODY_FLOATS], slot)
        ints[kinds + j] = contacts.kind_of(slot)
    for j in range(count):
        base = ints[bases + j]
        slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
        contacts.warm_start(block[base : base + BODY_FLOATS], slot)
    topology.prepare_joints(block)


@njit(**KERNEL)
def _solve_slot(block, slot_memory, j, ints, bases):
    """One velocity iteration of a slot."""
    base = ints[bases + j]
    slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
    contacts.solve(block[base : base + BODY_FLOATS], slot, ints[bases - at.I_BASES + at.I_KINDS + j])


@njit(**KERNEL)
def _iterate_positions(topology, block, slot_memory, count, ints, bases):
    """One position iteration; returns how many lanes are solved."""
    head = topology.bodies * BODY
    kinds = bases - at.I_BASES + at.I_KINDS
    penetration = block[(head + at.PENETRATION) * LANES : (head + at.PENETRATION + 1) * LANES]
    solved = block[(head + at.SOLVED) * LANES : (head + at.SOLVED + 1) * LANES]
    for lane in range(LANES):
        penetration[lane] = ZERO
    for j in range(count):
        base = ints[bases + j]
        slot = slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE]
        if ints[kinds + j] & contacts.TWO != 0:
            contacts.solve_position(block[base : base + BODY_FLOATS], slot, penetration, solved, BAUMGARTE)
        else:
            contacts.solve_single_position(block[base : base + BODY_FLOATS], slot, penetration, solved, BAUMGARTE)
    return topology.solve_joint_positions(block)


@njit(**KERNEL)
def _start_positions(topology, block):
    """Velocities move all bodies; no lane is solved yet."""
    for body in range(topology.bodies):
        own = block[body * BODY_FLOATS : (body + 1) * BODY_FLOATS]
        for k in range(3 * LANES):
            own[at.START_X * LANES + k] = own[at.CENTER_X * LANES + k]
        position.integrate(own, DT)
    for lane in range(LANES):
        block[(topology.bodies * BODY + at.SOLVED) * LANES + lane] = ZERO


@njit(**KERNEL)
def _finish(topology, block):
    """From solved positions to rest times and fat boxes."""
    head = topology.bodies * BODY
    awake = block[(head + at.AWAKE) * LANES : (head + at.AWAKE + 1) * LANES]
    solved = block[(head + at.SOLVED) * LANES : (head + at.SOLVED + 1) * LANES]
    sleep.update(block, topology.bodies, awake, solved)
    topology.update_boxes(block)


@njit(**KERNEL)
def _store_slots(world, ints, first, last, slot_memory, count, bases):
    begin = 0
    while begin < count:  # body by body, as they were loaded
        base = ints[bases + begin]
        end = begin
        while end < count and ints[bases + end] == base:
            end += 1
        body = base // BODY_FLOATS
        for lane in range(last - first):
            slots.store(slot_memory, begin, end, lane, world, ints[at.I_ORDER + first + lane], body)
        begin = end


@njit(**KERNEL)
def _gather(topology, ints, first, last, block, unsolved):
    """Moves the environments that are not solved to the front of the order; returns how many are there now."""
    solved = (topology.bodies * BODY + at.SOLVED) * LANES
    for lane in range(last - first):
        if block[solved + lane] == ZERO:
            ints[at.I_ORDER + unsolved] = ints[at.I_ORDER + first + lane]
            ints[at.I_CLASS + unsolved] = ints[at.I_CLASS + first + lane]
            unsolved += 1
    return unsolved


@njit(**KERNEL)
def _move_block(topology, world, ints, first, last, block, slot_memory, count, bases, unsolved):
    """From solved velocities to poses, and back to the rows; gathers what a few position iterations do not solve."""
    _start_positions(topology, block)
    for _ in range(FIRST_ITERATIONS):
        if _iterate_positions(topology, block, slot_memory, count, ints, bases) == LANES:
            break
    _store_rows(world.rows, ints, first, last, block, topology, ZERO)
    _finish(topology, block)
    _store_rows(world.rows, ints, first, last, block, topology, ONE)
    _store_slots(world, ints, first, last, slot_memory, count, bases)
    return _gather(topology, ints, first, last, block, unsolved)


@njit(**KERNEL)
def _continue_block(topology, world, ints, first, last, block, slot_memory):
    """The other position iterations of environments that the first did not solve."""
    bases = at.I_BASES
    count = _load_block(topology, world, ints, first, last, block, slot_memory, bases)
    for j in range(count):
        ints[at.I_KINDS + j] = contacts.kind_of(slot_memory[j * SLOT_STRIDE : (j + 1) * SLOT_STRIDE])
    for _ in range(at.POSITION_ITERATIONS - FIRST_ITERATIONS):
        if _iterate_positions(topology, block, slot_memory, count, ints, bases) == LANES:
            break
    _finish(topology, block)
    _store_rows(world.rows, ints, first, last, block, topology, ZERO)
    _store_rows(world.rows, ints, first, last, block, topology, ONE)


@njit(**KERNEL)
def _solve_pair(topology, world, scratch, first, last, unsolved):
    """``b2Island::Solve`` for the environments at places ``first`` to ``last`` of the order: up to two blocks.

    Two blocks are iterated alternately, since the dependency chain of one leaves the processor half idle. Returns how
    many environments at the front of the order need more position iterations.
    """
    ints, blocks = scratch.ints, scratch.blocks
    middle = min(first + LANES, last)
    floats = topology.block * LANES
    block_a, block_b = blocks[:floats], blocks[floats : 2 * floats]
    slots_a, slots_b = scratch.slots[:SLOT_FLOATS], scratch.slots[SLOT_FLOATS:]
    bases_a, bases_b = at.I_BASES, at.I_BASES + np.int64(MAX_CONTACTS)
    count_a = _load_block(topology, world, ints, first, middle, block_a, slots_a, bases_a)
    _start_velocities(topology, block_a, slots_a, count_a, ints, bases_a)
    count_b = np.int64(0)
    two = last > middle
    if two:
        count_b = _load_block(topology, world, ints, middle, last, block_b, slots_b, bases_b)
        _start_velocities(topology, block_b, slots_b, count_b, ints, bases_b)
    free = count_a + count_b == 0
    for _ in range(1 if free else at.VELOCITY_ITERATIONS):
        joint_iterations = at.VELOCITY_ITERATIONS if free else 1
        if two:
            topology.solve_joint_pair(blocks, joint_iterations)
        else:
            topology.solve_joints(blocks, joint_iterations)
        for j in range(max(count_a, count_b)):
            if j < count_a:
                _solve_slot(block_a, slots_a, j, ints, bases_a)
            if j < count_b:
                _solve_slot(block_b, slots_b, j, ints, bases_b)
    unsolved = _move_block(topology, world, ints, first, middle, block_a, slots_a, count_a, bases_a, unsolved)
    if two:
        unsolved = _move_block(topology, world, ints, middle, last, block_b, slots_b, count_b, bases_b, unsolved)
    return unsolved


@njit(**KERNEL)
def solve(topology, world, scratch, count):
    """``b2World::Solve`` for the first ``count`` environments of the chunk, given their classes.

    Position iterations end early in most environments, and never in some. These are gathered in blocks of their own, so
    that the others do not wait for them.
    """
    ints = scratch.ints
    sort(ints, count)
    unsolved = np.int64(0)
    for first in range(0, count, 2 * LANES):
        unsolved = _solve_pair(topology, world, scratch, first, min(first + 2 * LANES, count), unsolved)
    block, slot_memory = scratch.blocks[: topology.block * LANES], scratch.slots[:SLOT_FLOATS]
    for first in range(0, unsolved, LANES):
        _continue_block(topology, world, ints, first, min(first + LANES, unsolved), block, slot_memory)
