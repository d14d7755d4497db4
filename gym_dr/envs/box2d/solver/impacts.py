"""Continuous collision: after the solver's step, stop fast bodies where they first touch the ground.

``b2World::SolveTOI``. While any contact has an impact in the rest of the step: take the earliest, move its body (alone)
to that moment, collide, push it out of the ground (Baumgarte 0.75), solve its contacts from zero impulses, and let it
move for the rest of the step. Joints are not solved here, and the impulses are discarded.

Box2D lets static bodies take part in "time": the sweep of each remembers the moment of its last impact, and a contact
whose other body lags behind is brought up to it before its own time of impact is computed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.envs.box2d.solver import broad_phase, contacts, manifolds, position, time_of_impact
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.lanes import ONLY, pair, set_pair, velocity
from gym_dr.envs.box2d.solver.layout import BODY, DT, LANES, ONE, SLOT_STRIDE, ZERO, f32
from gym_dr.envs.box2d.solver.shapes import EPSILON, LINEAR_SLOP
from gym_dr.envs.box2d.solver.slots import fill
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from gym_dr.envs.box2d.solver.vectors import pose_of, set_vector

MAX_IMPACTS = 8  # per contact and step, b2_maxSubSteps
ALMOST_ONE = f32(ONE - f32(10) * EPSILON)
BAUMGARTE = f32(0.75)  # b2_toiBaugarte
POSITION_ITERATIONS = 20
POSITION_TOLERANCE = f32(f32(-1.5) * LINEAR_SLOP)  # m
NO_CONTACT = -1
LANE = np.int64(0)  # all lanes of the substep's block do the same


@njit(**INLINE)
def _advance(floats, sweep, t):
    """Moves a sweep's start to time ``t`` (``b2Sweep::Advance``)."""
    beta = (t - floats[sweep + 6]) / (ONE - floats[sweep + 6])
    for k in range(3):
        floats[sweep + k] = (ONE - beta) * floats[sweep + k] + beta * floats[sweep + 3 + k]
    floats[sweep + 6] = t


@njit(**KERNEL)
def _set_pose(rows, env, body, floats, sweep):
    """The row's pose becomes the end of the sweep (``SynchronizeTransform``)."""
    row = rows[env, body * BODY : (body + 1) * BODY]
    for k in range(3):
        row[at.CENTER_X + k] = floats[sweep + 3 + k]
    sine, cosine = sin_cos(floats[sweep + 5])
    set_vector(row, at.COS, (cosine, sine))


@njit(**INLINE)
def _set_ground_time(world, env, contact, time, floats):
    """Moves the static body of a contact to ``time``; other contacts may share it."""
    contact_ints = world.contact_ints
    if world.shapes.one_ground:
        for i in range(world.status[env, at.S_CONTACTS]):
            floats[at.W_GROUND_TIMES + i] = time
        return
    ground = contact_ints[env, contact, at.C_GROUND]
    for i in range(world.status[env, at.S_CONTACTS]):
        if contact_ints[env, i, at.C_GROUND] == ground:
            floats[at.W_GROUND_TIMES + i] = time


@njit(**INLINE)
def _polygon(world, env, body):
    """The body in the form that ``time_of_impact`` takes."""
    shapes, properties = world.shapes, world.properties
    polygon = shapes.polygon[body]
    return (
        shapes.vertices[polygon],
        shapes.counts[polygon],
        (properties[env, body, at.LOCAL_CENTER_X], properties[env, body, at.LOCAL_CENTER_Y]),
    )


@njit(**INLINE)
def _impact_time(world, env, body, ground, scratch, ground_time):
    """Time of impact of this contact, as a fraction of the whole step (1: none in this step)."""
    rows, floats, ints = world.rows, scratch.floats, scratch.ints
    sweep = at.W_SWEEPS + at.SWEEP * body
    polygon = _polygon(world, env, body)
    reach = world.shapes.reach[world.shapes.polygon[body]]
    sine, cosine = sin_cos(floats[sweep + 2])
    end = rows[env, body * BODY + at.COS], rows[env, body * BODY + at.SIN]
    time_of_impact.load_ground(world, env, ground, scratch)
    if not time_of_impact.may_touch(floats, ints, sweep, polygon, reach, (cosine, sine), end):
        return ONE
    t = time_of_impact.time_of_impact(scratch, sweep, polygon)
    return min(ground_time + (ONE - ground_time) * t, ONE) if t <= ONE else ONE


@njit(**INLINE)
def _earliest(world, env, scratch):
    """The contact with the earliest impact (or NO_CONTACT), and that time."""
    contact_ints, floats, ints = world.contact_ints, scratch.floats, scratch.ints
    earliest = NO_CONTACT
    time = ONE
    for i in range(world.status[env, at.S_CONTACTS] - 1, -1, -1):
        if ints[at.I_ENABLED + i] == 0 or ints[at.I_IMPACTS + i] > MAX_IMPACTS:
            continue
        if ints[at.I_KNOWN + i] == 0:
            body = np.int64(contact_ints[env, i, at.C_BODY])
            sweep = at.W_SWEEPS + at.SWEEP * body
            ground_time = floats[at.W_GROUND_TIMES + i]
            if ground_time < floats[sweep + 6]:
                ground_time = floats[sweep + 6]
                _set_ground_time(world, env, i, ground_time, floats)
            elif floats[sweep + 6] < ground_time:
                _advance(floats, sweep, ground_time)
            ground = np.int64(contact_ints[env, i, at.C_GROUND])
            floats[at.W_TIMES + i] = _impact_time(world, env, body, ground, scratch, ground_time)
            ints[at.I_KNOWN + i] = 1
        if floats[at.W_TIMES + i] < time:
            time = floats[at.W_TIMES + i]
            earliest = i
    if time > ALMOST_ONE:
        earliest = NO_CONTACT
    return earliest, time


@njit(**KERNEL)
def _renew(world, env, contact, scratch):
    """``manifolds.update``, not inlined: impacts are rare."""
    manifolds.update(world, env, contact, scratch)


@njit(**KERNEL)
def _select(world, env, body, first, time, scratch):
    """The body's touching contacts, ``first`` first, each with a fresh manifold; returns how many."""
    contact_ints, floats, ints = world.contact_ints, scratch.floats, scratch.ints
    ints[at.I_SELECTED] = first
    count = 1
    for i in range(world.status[env, at.S_CONTACTS] - 1, -1, -1):
        if i == first or contact_ints[env, i, at.C_BODY] != body:
            continue
        _renew(world, env, i, scratch)
        ints[at.I_ENABLED + i] = 1
        if contact_ints[env, i, at.C_TOUCHING] != 0:
            _set_ground_time(world, env, i, time, floats)
            ints[at.I_SELECTED + count] = i
            count += 1
    return count


@njit(**INLINE)
def _slot(j):
    """Where a slot is in the substep's block."""
    return slice(at.SUB_SLOTS * LANES + j * SLOT_STRIDE, at.SUB_SLOTS * LANES + (j + 1) * SLOT_STRIDE)


@njit(**KERNEL)
def _load(world, env, body, count, scratch):
    """Copies one body and its slots to all lanes of the substep's block; all do the same, and lane 0 is the result."""
    substep = scratch.substep
    for field in range(BODY):
        for lane in range(LANES):
            substep[field * LANES + lane] = world.rows[env, body * BODY + field]
    for lane in range(LANES):
        substep[at.SUB_FROZEN * LANES + lane] = ZERO
    for j in range(count):
        slot = substep[_slot(j)]
        for lane in range(LANES):
            fill(slot, lane, world, env, scratch.ints[at.I_SELECTED + j])
        for k in range(at.NORMAL_IMPULSE_1 * LANES, (at.TANGENT_IMPULSE_2 + 1) * LANES):
            slot[k] = ZERO


@njit(**KERNEL)
def _push_out(substep, count):
    """Position iterations until the body is out of the ground."""
    body = substep[: at.BODY_FLOATS]
    penetration = substep[at.SUB_PENETRATION * LANES : (at.SUB_PENETRATION + 1) * LANES]
    frozen = substep[at.SUB_FROZEN * LANES : (at.SUB_FROZEN + 1) * LANES]
    for _ in range(POSITION_ITERATIONS):
        for lane in range(LANES):
            penetration[lane] = ZERO
        for j in range(count):
            contacts.solve_position(body, substep[_slot(j)], penetration, frozen, BAUMGARTE)
        if penetration[0] >= POSITION_TOLERANCE:
            break


@njit(**KERNEL)
def _solve_velocities(substep, count, scratch):
    """180 velocity iterations; stops after an iteration that changes nothing, since later ones would not either."""
    body, ints = substep[: at.BODY_FLOATS], scratch.ints
    for j in range(count):
        contacts.prepare(body, substep[_slot(j)])
        ints[at.I_KINDS + j] = contacts.kind_of(substep[_slot(j)])
    for _ in range(at.VELOCITY_ITERATIONS):
        before, still = velocity(body, LANE, ONLY), True
        for j in range(count):
            slot = substep[_slot(j)]
            first, second = pair(slot, at.NORMAL_IMPULSE_1, LANE), pair(slot, at.NORMAL_IMPULSE_2, LANE)
            contacts.solve(body, slot, ints[at.I_KINDS + j])
            still &= first == pair(slot, at.NORMAL_IMPULSE_1, LANE) and second == pair(slot, at.NORMAL_IMPULSE_2, LANE)
        if still and before == velocity(body, LANE, ONLY):
            break


@njit(**KERNEL)
def _substep(world, env, body, count, time, scratch):
    """Solves one body alone for the rest of the step; its sweep then goes from the impact to its new pose."""
    rows, floats, substep = world.rows, scratch.floats, scratch.substep
    sweep = at.W_SWEEPS + at.SWEEP * body
    _load(world, env, body, count, scratch)
    _push_out(substep, count)
    for k in range(3):
        floats[sweep + k] = substep[(at.CENTER_X + k) * LANES]
    # The solver's positions are the pushed-out ones, so rotations must be too.
    for lane in range(LANES):
        sine, cosine = sin_cos(substep[at.ANGLE * LANES + lane])
        set_pair(substep, at.COS, lane, (cosine, sine))
    _solve_velocities(substep, count, scratch)
    position.integrate(substep[: at.BODY_FLOATS], (ONE - time) * DT)
    for k in range(3):
        floats[sweep + 3 + k] = substep[(at.CENTER_X + k) * LANES]
        rows[env, body * BODY + at.VELOCITY_X + k] = substep[(at.VELOCITY_X + k) * LANES]
    _set_pose(rows, env, body, floats, sweep)


@njit(**KERNEL)
def _begin_contacts(world, env, moved):
    """``broad_phase.begin_contacts``, not inlined."""
    broad_phase.begin_contacts(world, env, moved)


@njit(**KERNEL)
def _sync_boxes(world, env, body, scratch):
    """After a substep: invalidates the body's times of impact, updates its fat box and begins contacts."""
    status, floats, ints = world.status, scratch.floats, scratch.ints
    sweep = at.W_SWEEPS + at.SWEEP * body
    for i in range(status[env, at.S_CONTACTS]):
        if world.contact_ints[env, i, at.C_BODY] == body:
            ints[at.I_KNOWN + i] = 0
    local = world.properties[env, body, at.LOCAL_CENTER_X], world.properties[env, body, at.LOCAL_CENTER_Y]
    sine, cosine = sin_cos(floats[sweep + 2])
    before = pose_of((cosine, sine), (floats[sweep], floats[sweep + 1]), local)
    if broad_phase.update_body(world, env, body, before):
        first_new = status[env, at.S_CONTACTS]
        _begin_contacts(world, env, 1 << body)
        for i in range(first_new, status[env, at.S_CONTACTS]):
            _reset_contact(ints, i)
            floats[at.W_GROUND_TIMES + i] = _known_ground_time(world, env, i, floats)


@njit(**KERNEL)
def _known_ground_time(world, env, contact, floats):
    """The time in the step of a new contact's static body, from older contacts with it."""
    ground = world.contact_ints[env, contact, at.C_GROUND]
    for i in range(contact):
        if world.shapes.one_ground or world.contact_ints[env, i, at.C_GROUND] == ground:
            return floats[at.W_GROUND_TIMES + i]
    return ZERO


@njit(**INLINE)
def _reset_contact(ints, contact):
    ints[at.I_ENABLED + contact] = 1
    ints[at.I_KNOWN + contact] = 0
    ints[at.I_IMPACTS + contact] = 0


@njit(**INLINE)
def _start(world, env, floats, ints):
    """Initializes sweeps over the whole step, and contacts with unknown times of impact."""
    rows = world.rows
    for body in range(world.properties.shape[1]):
        sweep = at.W_SWEEPS + at.SWEEP * body
        for k in range(3):
            floats[sweep + k] = rows[env, body * BODY + at.START_X + k]
            floats[sweep + 3 + k] = rows[env, body * BODY + at.CENTER_X + k]
        floats[sweep + 6] = ZERO
    for i in range(world.status[env, at.S_CONTACTS]):
        _reset_contact(ints, i)
        floats[at.W_GROUND_TIMES + i] = ZERO


@njit(**INLINE)
def resolve(world, env, scratch):
    """The part of a world's step after ``Solve``: ``FindNewContacts``, then all impacts of one environment."""
    rows, status, contact_ints = world.rows, world.status, world.contact_ints
    floats, ints = scratch.floats, scratch.ints
    head = world.properties.shape[1] * BODY
    moved = np.int64(rows[env, head + at.MOVED])
    if moved != 0:
        broad_phase.begin_contacts(world, env, moved)
    if status[env, at.S_CONTACTS] == 0 or rows[env, head + at.AWAKE] == ZERO:
        return
    _start(world, env, floats, ints)
    while True:
        contact, time = _earliest(world, env, scratch)
        if contact == NO_CONTACT:
            break
        body = int(contact_ints[env, contact, at.C_BODY])
        sweep = at.W_SWEEPS + at.SWEEP * body
        for k in range(at.SWEEP):
            floats[at.W_BACKUP + k] = floats[sweep + k]
        ground_before = floats[at.W_GROUND_TIMES + contact]
        _set_ground_time(world, env, contact, time, floats)
        _advance(floats, sweep, time)
        for k in range(3):
            floats[sweep + 3 + k] = floats[sweep + k]
        _set_pose(rows, env, body, floats, sweep)
        _renew(world, env, contact, scratch)
        ints[at.I_KNOWN + contact] = 0
        ints[at.I_IMPACTS + contact] += 1
        if contact_ints[env, contact, at.C_TOUCHING] == 0:
            ints[at.I_ENABLED + contact] = 0
            for k in range(at.SWEEP):
                floats[sweep + k] = floats[at.W_BACKUP + k]
            _set_ground_time(world, env, contact, ground_before, floats)
            _set_pose(rows, env, body, floats, sweep)
            continue
        count = _select(world, env, body, contact, time, scratch)
        _substep(world, env, body, count, time, scratch)
        _sync_boxes(world, env, body, scratch)
        rows[env, head + at.SOLVED] = ZERO  # after an impact a step of many iterations is likely
