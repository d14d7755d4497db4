"""A Box2D environment's state in a native one, which a test then steps from there.

``from_box2d`` copies everything that Box2D reveals: poses, velocities, the impulses of joints and contacts, which
contacts exist in which order, fat boxes, random stream and wind. The fat boxes are not readable; they are found by
asking the broad phase with smaller and smaller boxes, to the last bit. Only one thing stays unknown: how long each body
has been still. Pass ``rest_time`` if that matters; otherwise a lander at rest may fall asleep later than Box2D's.
"""

from __future__ import annotations

from typing import Any

import Box2D
import numpy as np

from gym_dr.compiled import pcg64
from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.lunar_lander.env import LunarLanderDR
from gym_dr.envs.box2d.lunar_lander.native.layout import (
    AWAKE,
    JOINT_0,
    S_HAS_SHAPING,
    S_TURBULENCE,
    S_WIND,
)
from gym_dr.envs.box2d.lunar_lander.native.topology import LIMITS_0, LIMITS_1
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY
from gym_dr.envs.box2d.solver.manifolds import FACE_A, FACE_B

f32 = np.float32
_FACE_B = 2  # b2Manifold::Type
_LIMITS = (LIMITS_0, LIMITS_1)


def bodies_of(env: LunarLanderDR) -> list[Any]:
    """Hull and legs."""
    return [env.lander, *env.legs]


def edges_of(env: LunarLanderDR) -> list[Any]:
    """The ground's fixtures in the order in which they were made."""
    fixtures = list(env.moon.fixtures)
    if fixtures[0].shape.vertices[0] != (0, 0) or fixtures[0].shape.vertices[1][1] != 0:
        fixtures.reverse()
    return fixtures


def from_box2d(
    arrays: Environments, index: int, env: LunarLanderDR, rest_time: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> None:
    """Copies the state of a Box2D environment that was reset into native sub-environment ``index``.

    Its parameters must be set there already (``arrays.params`` and what ``episode.begin`` derives from them).

    Args:
        arrays: The native environments.
        index: Which one.
        env: Where the state comes from; it is not changed.
        rest_time: How long lander, leg 0 and leg 1 have been still, s.
    """
    row, status = arrays.world.rows[index], arrays.world.status[index]
    for body, box2d in enumerate(bodies_of(env)):
        base = body * BODY
        center, velocity = box2d.worldCenter, box2d.linearVelocity
        row[base + at.CENTER_X], row[base + at.CENTER_Y], row[base + at.ANGLE] = center.x, center.y, box2d.angle
        row[base + at.VELOCITY_X], row[base + at.VELOCITY_Y] = velocity.x, velocity.y
        row[base + at.OMEGA] = box2d.angularVelocity
        row[base + at.SIN], row[base + at.COS] = _rotation(box2d)
        row[base + at.BOX_LOW_X : base + at.BOX_HIGH_Y + 1] = _fat_box(env.world, box2d.fixtures[0])
        row[base + at.REST_TIME] = rest_time[body]
    for leg, box2d in enumerate(env.legs):
        _copy_joint(row, int(JOINT_0) + leg * at.JOINT, box2d.joint, env.lander.angle, box2d.angle, _LIMITS[leg])
    row[AWAKE] = 1.0 if env.lander.awake else 0.0
    for edge, fixture in enumerate(edges_of(env)):
        (x1, y1), (x2, y2) = fixture.shape.vertices
        arrays.world.edges[index, edge, :4] = x1, y1, x2, y2
    status[at.S_TOUCHES] = sum(int(leg.ground_contact) << body for body, leg in enumerate(env.legs, 1))
    status[at.S_TOUCHED] = status[at.S_TOUCHES] | int(env.game_over)
    status[at.S_FRESH] = 0
    if env.params["enable_wind"]:
        status[S_WIND], status[S_TURBULENCE] = env.wind_idx, env.torque_idx
    status[S_HAS_SHAPING] = int(env.prev_shaping is not None)
    arrays.shaping[index] = 0.0 if env.prev_shaping is None else env.prev_shaping
    arrays.streams[index] = pcg64.pack(env.np_random.bit_generator.state)
    _copy_contacts(arrays, index, env)


def _rotation(body: Any) -> tuple[float, float]:
    """Sine and cosine of a body's angle as Box2D holds them."""
    across = body.GetWorldVector((1.0, 0.0))
    return across.y, across.x


def _fat_box(world: Any, fixture: Any) -> tuple[float, float, float, float]:
    """The box that the broad phase keeps for a fixture, m: low x, low y, high x, high y."""
    tight = fixture.GetAABB(0)
    low, high = tight.lowerBound, tight.upperBound
    x, y = float(f32((low.x + high.x) / 2)), float(f32((low.y + high.y) / 2))
    return (
        -_reach(world, fixture, lambda d: (-d, y, -d, y), -x),
        -_reach(world, fixture, lambda d: (x, -d, x, -d), -y),
        _reach(world, fixture, lambda d: (d, y, d, y), x),
        _reach(world, fixture, lambda d: (x, d, x, d), y),
    )


def _reach(world: Any, fixture: Any, box: Any, inside: Any) -> float:
    """The largest float32 ``d`` from ``inside`` on at which a box still overlaps the fat box, by bisection."""
    low, high = _ordered(f32(inside)), _ordered(f32(inside + f32(64)))
    while high - low > 1:
        middle = (low + high) // 2
        if _overlaps(world, fixture, box(float(_unordered(middle)))):
            low = middle
        else:
            high = middle
    return float(_unordered(low))


def _ordered(value: np.float32) -> int:
    """An integer that grows with a float32, by one from each float32 to the next."""
    bits = int(np.array(value, np.float32).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _unordered(number: int) -> np.float32:
    bits = np.array(abs(number), np.int32).view(np.float32)
    return f32(bits) if number >= 0 else f32(-bits)


class _Finder(Box2D.b2QueryCallback):  # type: ignore[misc]  # Box2D has no types
    """Notes whether a query of the broad phase meets one fixture."""

    def __init__(self, fixture: Any) -> None:
        Box2D.b2QueryCallback.__init__(self)
        self.fixture = fixture
        self.found = False

    def ReportFixture(self, fixture: Any) -> bool:
        self.found = self.found or fixture == self.fixture
        return not self.found


def _overlaps(world: Any, fixture: Any, box: tuple[float, float, float, float]) -> bool:
    finder = _Finder(fixture)
    world.QueryAABB(finder, Box2D.b2AABB(lowerBound=box[:2], upperBound=box[2:]))
    return finder.found


def _copy_joint(row: Any, base: int, joint: Any, lander_angle: float, leg_angle: float, limits: Any) -> None:
    """Impulses of a joint. Its limit's state is only compared with the next one while its impulse is not 0."""
    force = joint.GetReactionForce(1.0)  # impulse times the inverse of the step: 1 gives the impulse
    row[base + at.IMPULSE_X], row[base + at.IMPULSE_Y] = force.x, force.y
    row[base + at.LIMIT_IMPULSE] = joint.GetReactionTorque(1.0)
    row[base + at.MOTOR_IMPULSE] = joint.GetMotorTorque(1.0)
    impulse = row[base + at.LIMIT_IMPULSE]
    if impulse != 0.0:
        row[base + at.LIMIT_STATE] = 1.0 if impulse > 0.0 else -1.0
        return
    lower, upper, reference = limits
    angle = f32(f32(leg_angle) - f32(lander_angle)) - reference
    row[base + at.LIMIT_STATE] = 1.0 if angle <= lower else (-1.0 if angle >= upper else 0.0)


def _copy_contacts(arrays: Environments, index: int, env: LunarLanderDR) -> None:
    """Contacts, oldest first, with their manifolds."""
    bodies, edges = bodies_of(env), edges_of(env)
    ground = {_edge_key(fixture): edge for edge, fixture in enumerate(edges)}
    listed = []
    for contact in env.world.contacts:
        body = next((b for b, box2d in enumerate(bodies) if contact.fixtureB.body == box2d), None)
        if body is not None:  # a particle of the picture is no part of the state
            listed.append((contact, body, ground[_edge_key(contact.fixtureA)]))
    arrays.world.status[index, at.S_CONTACTS] = len(listed)
    for place, (contact, body, edge) in enumerate(reversed(listed)):
        manifold = contact.manifold
        ints, floats = arrays.world.contact_ints[index, place], arrays.world.contact_floats[index, place]
        points = manifold.pointCount
        ints[at.C_BODY], ints[at.C_GROUND], ints[at.C_TOUCHING] = body, edge, int(contact.touching)
        ints[at.C_FACE_B], ints[at.C_POINTS] = int(manifold.type_ == _FACE_B), points
        floats[:4] = *manifold.localNormal, *manifold.localPoint
        for i in range(points):
            point = manifold.points[i]
            offset, impulse = at.POINT_1_X - at.LOCAL_NORMAL_X + 2 * i, at.NORMAL_IMPULSE_1 - at.LOCAL_NORMAL_X + 2 * i
            floats[offset], floats[offset + 1] = point.localPoint
            floats[impulse], floats[impulse + 1] = point.normalImpulse, point.tangentImpulse
            key = point.id.cf
            faces = (FACE_A if key.typeA else 0) | (FACE_B if key.typeB else 0)
            ints[at.C_ID_1 + i] = key.indexA | key.indexB << 3 | faces


def _edge_key(fixture: Any) -> tuple[tuple[float, float], ...]:
    return tuple(tuple(v) for v in fixture.shape.vertices)
