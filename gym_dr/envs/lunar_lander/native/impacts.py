"""Continuous collision: after the solver's step, stop fast bodies where they first touch the ground.

``b2World::SolveTOI``. While any contact has an impact in the rest of the step: take the earliest, move its body (alone)
to that moment, collide, push it out of the ground (Baumgarte 0.75), solve its contacts from zero impulses, and let it
move for what is left of the step. Joints are not solved here. The impulses are not kept.

Box2D lets the static ground take part in "time": its sweep remembers the moment of the last impact, and a contact whose
body lags behind is brought up to it before its own time of impact is computed.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.envs.lunar_lander import constants as lander
from gym_dr.envs.lunar_lander.native import broad_phase, contacts, manifolds, position, time_of_impact
from gym_dr.envs.lunar_lander.native.compiler import KERNEL
from gym_dr.envs.lunar_lander.native.layout import (
    ANGLE,
    BODIES,
    BODY,
    BODY_FLOATS,
    C_BODY,
    C_EDGE,
    C_TOUCHING,
    CENTER_X,
    CENTER_Y,
    COS,
    DT,
    I_ENABLED,
    I_IMPACTS,
    I_KNOWN,
    I_SELECTED,
    LANDER,
    LANES,
    MASS_CENTER_Y,
    NORMAL_IMPULSE_1,
    OMEGA,
    S_CONTACTS,
    SIN,
    SLOT_STRIDE,
    START,
    SUB_FROZEN,
    SUB_PENETRATION,
    SUB_SLOTS,
    SWEEP,
    TANGENT_IMPULSE_2,
    VELOCITY_X,
    VELOCITY_Y,
    W_BACKUP,
    W_SWEEPS,
    W_TIMES,
)
from gym_dr.envs.lunar_lander.native.shapes import HULL, LEG, LINEAR_SLOP
from gym_dr.envs.lunar_lander.native.slots import fill
from gym_dr.envs.lunar_lander.native.trigonometry import sin_cos

f32 = np.float32
ZERO, ONE = f32(0), f32(1)
MAX_IMPACTS = 8  # of one contact in a step, b2_maxSubSteps
ALMOST_ONE = f32(ONE - f32(10) * time_of_impact.EPSILON)
BAUMGARTE = f32(0.75)  # b2_toiBaugarte
POSITION_ITERATIONS = 20
POSITION_TOLERANCE = f32(f32(-1.5) * LINEAR_SLOP)  # m
NO_CONTACT = -1


@njit(**KERNEL)
def _advance(scratch, sweep, t):
    """Move a sweep's start to time ``t`` (``b2Sweep::Advance``)."""
    beta = (t - scratch[sweep + 6]) / (ONE - scratch[sweep + 6])
    for k in range(3):
        scratch[sweep + k] = (ONE - beta) * scratch[sweep + k] + beta * scratch[sweep + 3 + k]
    scratch[sweep + 6] = t


@njit(**KERNEL)
def _set_pose(rows, env, body, scratch, sweep):
    """The row's pose becomes the end of the sweep (``SynchronizeTransform``)."""
    base = body * BODY
    rows[env, base + CENTER_X] = scratch[sweep + 3]
    rows[env, base + CENTER_Y] = scratch[sweep + 4]
    rows[env, base + ANGLE] = scratch[sweep + 5]
    sine, cosine = sin_cos(scratch[sweep + 5])
    rows[env, base + SIN] = sine
    rows[env, base + COS] = cosine


@njit(**KERNEL)
def _impact_time(rows, terrain, env, body, edge, scratch, work, ground_time):
    """When this contact has an impact, as a fraction of the whole step (1: not in this step)."""
    sweep = W_SWEEPS + SWEEP * body
    polygon = HULL if body == LANDER else LEG
    center_y = rows[env, MASS_CENTER_Y] if body == LANDER else ZERO
    s1, c1 = sin_cos(scratch[sweep + 2])
    s2 = rows[env, body * BODY + SIN]
    c2 = rows[env, body * BODY + COS]
    if not time_of_impact.may_touch(terrain, env, edge, scratch, sweep, polygon, center_y, s1, c1, s2, c2):
        return ONE
    t = time_of_impact.time_of_impact(terrain, env, edge, scratch, work, sweep, polygon, center_y)
    return min(ground_time + (ONE - ground_time) * t, ONE) if t <= ONE else ONE


@njit(**KERNEL)
def _earliest(rows, terrain, contact_ints, status, env, scratch, work, ground_time):
    """The contact with the earliest impact (or NO_CONTACT), that time, and the ground's time."""
    earliest = NO_CONTACT
    time = ONE
    for i in range(status[env, S_CONTACTS] - 1, -1, -1):
        if work[I_ENABLED + i] == 0 or work[I_IMPACTS + i] > MAX_IMPACTS:
            continue
        if work[I_KNOWN + i] == 0:
            body = np.int64(contact_ints[env, i, C_BODY])
            sweep = W_SWEEPS + SWEEP * body
            if ground_time < scratch[sweep + 6]:
                ground_time = scratch[sweep + 6]
            elif scratch[sweep + 6] < ground_time:
                _advance(scratch, sweep, ground_time)
            edge = np.int64(contact_ints[env, i, C_EDGE])
            scratch[W_TIMES + i] = _impact_time(rows, terrain, env, body, edge, scratch, work, ground_time)
            work[I_KNOWN + i] = 1
        if scratch[W_TIMES + i] < time:
            time = scratch[W_TIMES + i]
            earliest = i
    if time > ALMOST_ONE:
        earliest = NO_CONTACT
    return earliest, time, ground_time


@njit(**KERNEL)
def _select(rows, terrain, contact_ints, contact_floats, status, env, body, first, scratch, work):
    """The body's touching contacts, ``first`` first, each with a fresh manifold; returns how many."""
    work[I_SELECTED] = first
    count = 1
    for i in range(status[env, S_CONTACTS] - 1, -1, -1):
        if i == first or contact_ints[env, i, C_BODY] != body:
            continue
        manifolds.update(rows, terrain, contact_ints, contact_floats, status, env, i, scratch, work)
        work[I_ENABLED + i] = 1
        if contact_ints[env, i, C_TOUCHING] != 0:
            work[I_SELECTED + count] = i
            count += 1
    return count


@njit(**KERNEL)
def _load(rows, contact_ints, contact_floats, env, body, count, substep, work):
    """One body and its slots in all lanes of the substep's block; they then do the same, and lane 0 is the result."""
    for field in range(BODY):
        for lane in range(LANES):
            substep[field * LANES + lane] = rows[env, body * BODY + field]
    for lane in range(LANES):
        substep[SUB_FROZEN * LANES + lane] = ZERO
    for j in range(count):
        slot = substep[SUB_SLOTS * LANES + j * SLOT_STRIDE : SUB_SLOTS * LANES + (j + 1) * SLOT_STRIDE]
        for lane in range(LANES):
            fill(slot, lane, rows, contact_ints, contact_floats, env, work[I_SELECTED + j])
        for k in range(NORMAL_IMPULSE_1 * LANES, (TANGENT_IMPULSE_2 + 1) * LANES):
            slot[k] = ZERO


@njit(**KERNEL)
def _push_out(substep, count):
    """Position iterations until the body is out of the ground."""
    body = substep[:BODY_FLOATS]
    penetration = substep[SUB_PENETRATION * LANES : (SUB_PENETRATION + 1) * LANES]
    frozen = substep[SUB_FROZEN * LANES : (SUB_FROZEN + 1) * LANES]
    for _ in range(POSITION_ITERATIONS):
        for lane in range(LANES):
            penetration[lane] = ZERO
        for j in range(count):
            slot = substep[SUB_SLOTS * LANES + j * SLOT_STRIDE : SUB_SLOTS * LANES + (j + 1) * SLOT_STRIDE]
            contacts.solve_position(body, slot, penetration, frozen, BAUMGARTE)
        if penetration[0] >= POSITION_TOLERANCE:
            break


@njit(**KERNEL)
def _solve_velocities(substep, count):
    """180 velocity iterations; an iteration that changes nothing is the last that could, so the rest is skipped."""
    body = substep[:BODY_FLOATS]
    pairs = 0
    for j in range(count):
        slot = substep[SUB_SLOTS * LANES + j * SLOT_STRIDE : SUB_SLOTS * LANES + (j + 1) * SLOT_STRIDE]
        contacts.prepare(body, slot)
        if contacts.any_pair(slot):
            pairs |= 1 << j
    for _ in range(lander.VELOCITY_ITERATIONS):
        vx = body[VELOCITY_X * LANES]
        vy = body[VELOCITY_Y * LANES]
        w = body[OMEGA * LANES]
        impulses = ZERO
        for j in range(count):
            slot = substep[SUB_SLOTS * LANES + j * SLOT_STRIDE : SUB_SLOTS * LANES + (j + 1) * SLOT_STRIDE]
            before_1 = slot[NORMAL_IMPULSE_1 * LANES]
            before_2 = slot[(NORMAL_IMPULSE_1 + 1) * LANES]
            before_3 = slot[(NORMAL_IMPULSE_1 + 2) * LANES]
            before_4 = slot[(NORMAL_IMPULSE_1 + 3) * LANES]
            if (pairs >> j) & 1:
                contacts.solve_velocity(body, slot)
            else:
                contacts.solve_single_velocity(body, slot)
            impulses += abs(slot[NORMAL_IMPULSE_1 * LANES] - before_1)
            impulses += abs(slot[(NORMAL_IMPULSE_1 + 1) * LANES] - before_2)
            impulses += abs(slot[(NORMAL_IMPULSE_1 + 2) * LANES] - before_3)
            impulses += abs(slot[(NORMAL_IMPULSE_1 + 3) * LANES] - before_4)
        still = vx == body[VELOCITY_X * LANES] and vy == body[VELOCITY_Y * LANES] and w == body[OMEGA * LANES]
        if still and impulses == ZERO:
            break


@njit(**KERNEL)
def _substep(rows, contact_ints, contact_floats, env, body, count, time, scratch, work, substep):
    """Solve one body alone for the rest of the step; its sweep then goes from the impact to its new pose."""
    sweep = W_SWEEPS + SWEEP * body
    _load(rows, contact_ints, contact_floats, env, body, count, substep, work)
    _push_out(substep, count)
    for k in range(3):
        scratch[sweep + k] = substep[(CENTER_X + k) * LANES]
    # The solver's positions are the pushed-out ones, so rotations must be too.
    for lane in range(LANES):
        sine, cosine = sin_cos(substep[ANGLE * LANES + lane])
        substep[SIN * LANES + lane] = sine
        substep[COS * LANES + lane] = cosine
    _solve_velocities(substep, count)
    position.integrate(substep[:BODY_FLOATS], (ONE - time) * DT)
    for k in range(3):
        scratch[sweep + 3 + k] = substep[(CENTER_X + k) * LANES]
        rows[env, body * BODY + VELOCITY_X + k] = substep[(VELOCITY_X + k) * LANES]
    _set_pose(rows, env, body, scratch, sweep)


@njit(**KERNEL)
def _sync_boxes(rows, terrain, contact_ints, contact_floats, status, env, body, scratch, work):
    """After a substep: forget the body's times of impact, update its fat box, begin contacts."""
    sweep = W_SWEEPS + SWEEP * body
    for i in range(status[env, S_CONTACTS]):
        if contact_ints[env, i, C_BODY] == body:
            work[I_KNOWN + i] = 0
    center_y = rows[env, MASS_CENTER_Y] if body == LANDER else ZERO
    sine, cosine = sin_cos(scratch[sweep + 2])
    old_x = scratch[sweep] + sine * center_y
    old_y = scratch[sweep + 1] - cosine * center_y
    if broad_phase.update_body(rows, env, body, center_y, cosine, sine, old_x, old_y):
        first_new = status[env, S_CONTACTS]
        broad_phase.begin_contacts(rows, terrain, contact_ints, contact_floats, status, env, 1 << body)
        for i in range(first_new, status[env, S_CONTACTS]):
            _reset_contact(work, i)


@njit(**KERNEL)
def _reset_contact(work, contact):
    work[I_ENABLED + contact] = 1
    work[I_KNOWN + contact] = 0
    work[I_IMPACTS + contact] = 0


@njit(**KERNEL)
def resolve(rows, terrain, contact_ints, contact_floats, status, env, scratch, work, substep):
    """All impacts of one environment's step; returns whether there was any."""
    hit = False
    for body in range(BODIES):
        sweep = W_SWEEPS + SWEEP * body
        for k in range(3):
            scratch[sweep + k] = rows[env, START + 3 * body + k]
            scratch[sweep + 3 + k] = rows[env, body * BODY + CENTER_X + k]
        scratch[sweep + 6] = ZERO
    for i in range(status[env, S_CONTACTS]):
        _reset_contact(work, i)
    ground_time = ZERO
    while True:
        contact, time, ground_time = _earliest(rows, terrain, contact_ints, status, env, scratch, work, ground_time)
        if contact == NO_CONTACT:
            break
        body = int(contact_ints[env, contact, C_BODY])
        sweep = W_SWEEPS + SWEEP * body
        for k in range(SWEEP):
            scratch[W_BACKUP + k] = scratch[sweep + k]
        ground_before = ground_time
        ground_time = time
        _advance(scratch, sweep, time)
        for k in range(3):
            scratch[sweep + 3 + k] = scratch[sweep + k]
        _set_pose(rows, env, body, scratch, sweep)
        manifolds.update(rows, terrain, contact_ints, contact_floats, status, env, contact, scratch, work)
        work[I_KNOWN + contact] = 0
        work[I_IMPACTS + contact] += 1
        if contact_ints[env, contact, C_TOUCHING] == 0:
            work[I_ENABLED + contact] = 0
            for k in range(SWEEP):
                scratch[sweep + k] = scratch[W_BACKUP + k]
            ground_time = ground_before
            _set_pose(rows, env, body, scratch, sweep)
            continue
        count = _select(rows, terrain, contact_ints, contact_floats, status, env, body, contact, scratch, work)
        _substep(rows, contact_ints, contact_floats, env, body, count, time, scratch, work, substep)
        _sync_boxes(rows, terrain, contact_ints, contact_floats, status, env, body, scratch, work)
        hit = True
    return hit
