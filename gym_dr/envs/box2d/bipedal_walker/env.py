"""BipedalWalker on Box2D with parameters that change from episode to episode.

Gymnasium's class (MIT license) provides the spaces, the rendering and the contact listener. The world and the step are
implemented here, because Gymnasium hard-codes what parameters set as module constants and literals. A test requires
equal episodes, bit for bit, with one difference: here every episode begins in a new world. Gymnasium keeps one world
forever; its broad phase, and with it the order of contacts, depends on earlier episodes. Only the first episode of a
Gymnasium environment depends on its seed alone; that one is equal.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from gym_dr.envs.box2d.env import Box2DEnv, Observation  # first: it imports Box2D without its warnings

# isort: split
from Box2D.b2 import edgeShape, fixtureDef, polygonShape, rayCastCallback, revoluteJointDef
from gymnasium.envs.box2d.bipedal_walker import BipedalWalker, ContactDetector

from gym_dr.arrays import Array
from gym_dr.compiled import pcg64
from gym_dr.envs.box2d.bipedal_walker import constants as const
from gym_dr.envs.box2d.bipedal_walker import physics
from gym_dr.envs.box2d.bipedal_walker.constants import FPS, SCALE, TERRAIN_STEP
from gym_dr.envs.box2d.bipedal_walker.generate import terrain
from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE
from gym_dr.envs.vector_arguments import check_finite
from gym_dr.randomization.space import ParamSpace

f32 = np.float32

_CATEGORY, _GROUND_MASK, _GROUND_CATEGORY = 0x0020, 0x001, 0x0001
_HULL_COLORS = (127, 51, 229), (76, 76, 127)
_BOX_COLORS = (255, 255, 255), (153, 153, 153)


class _Ray(rayCastCallback):  # type: ignore[misc]  # Box2D has no types
    """Finds where a ray first hits the ground; ``p1`` and ``p2`` are drawn."""

    fraction = 1.0
    p1: Any
    p2: Any

    def ReportFixture(self, fixture: Any, point: Any, normal: Any, fraction: float) -> float:  # noqa: N802
        if not fixture.filterData.categoryBits & _GROUND_CATEGORY:
            return -1.0
        self.p2, self.fraction = point, fraction
        return fraction


class BipedalWalkerDR(Box2DEnv, BipedalWalker):
    """BipedalWalker-v3 whose gravity, motors, masses, friction, joints, lidar and terrain are new at each reset."""

    listener_class = ContactDetector
    # Box2D has no types, and Gymnasium initializes these to None
    hull: Any

    def _build(self, *, hardcore: bool = False, **kwargs: Any) -> ParamSpace:
        """As in the base class; the first world is built by ``reset``."""
        BipedalWalker.__init__(self, hardcore=hardcore, **kwargs)
        return BIPEDAL_WALKER_HARDCORE if hardcore else BIPEDAL_WALKER

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Advances the physics by 1/50 s.

        Args:
            action: Fraction of the motors' torque at hip, knee, other hip, other knee, in [-1, 1], shape ``(4,)``; its
                sign is the direction. Rounded to float32, the dtype of the action space.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The action is not four finite numbers.
        """
        with np.errstate(over="ignore"):
            shares = check_finite(action, (4,)).astype(f32)
        self._check_begun("step")
        params = self._values
        speeds = f32(params["hip_speed"]), f32(params["knee_speed"])
        for i, joint in enumerate(self.joints):
            speed, torque = physics.drive(shares[i], speeds[i % 2], f32(params["motor_torque"]))
            joint.motorSpeed, joint.maxMotorTorque = float(speed), float(torque)
        self.world.Step(1.0 / FPS, const.VELOCITY_ITERATIONS, const.POSITION_ITERATIONS)

        x, y = self.hull.position
        self._look(x, y, params["lidar_range"])
        state = self._state()
        self.scroll = x - const.VIEWPORT_W / SCALE / 5
        growth = self._growth(physics.shaping(x, state[0]))
        return self._seen(state, *physics.outcome(x, growth, shares, self.game_over))

    def _build_bodies(self) -> None:
        """Builds terrain, clouds and walker; random numbers are drawn in the order in which Gymnasium draws them."""
        self.scroll = 0.0
        self.lidar_render = 0
        self._build_terrain()
        self._generate_clouds()
        push = self._values["initial_random"]
        self.hull = self._build_body(
            const.START_Y, 0.0, polygonShape(vertices=[(x / SCALE, y / SCALE) for x, y in const.HULL_POLY]), "hull"
        )
        self.hull.color1, self.hull.color2 = _HULL_COLORS
        self.hull.ApplyForceToCenter((self.np_random.uniform(-push, push), 0), True)
        self.legs, self.joints = [], []
        for side in (-1, +1):
            self._build_leg(side)
        self.bodies = [*self.legs, self.hull]
        self.drawlist = [*self.terrain, *self.bodies]
        self.lidar = [_Ray() for _ in range(const.LIDAR_RAYS)]

    def _build_terrain(self) -> None:
        friction = self._values["ground_friction"]
        bits = self.np_random.bit_generator
        streams = pcg64.pack(bits.state)[None]
        heights, boxes = terrain(streams, self._values, self.hardcore)
        bits.state = cast(Any, pcg64.unpack(streams[0]))
        self.terrain, self.terrain_poly = [], []
        for left, right, top, bottom in boxes.tolist():
            corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
            self._add_ground(fixtureDef(shape=polygonShape(vertices=corners), friction=friction), *_BOX_COLORS)
        self._build_edges(heights, friction)
        self.terrain.reverse()

    def _build_edges(self, heights: Array, friction: float) -> None:
        """Builds the ground's edges, and what Gymnasium paints below them."""
        corners = [(i * TERRAIN_STEP, y) for i, y in enumerate(heights.tolist())]
        for i in range(const.TERRAIN_LENGTH - 1):
            ends = corners[i : i + 2]
            color = (76, 255 if i % 2 == 0 else 204, 76)
            fixture = fixtureDef(shape=edgeShape(vertices=ends), friction=friction, categoryBits=_GROUND_CATEGORY)
            self._add_ground(fixture, color, color)
            self.terrain_poly.append(([*ends, (ends[1][0], 0), (ends[0][0], 0)], (102, 153, 76)))

    def _add_ground(self, fixture: Any, color1: Any, color2: Any) -> None:
        body = self.world.CreateStaticBody(fixtures=fixture)
        body.color1, body.color2 = color1, color2
        self.terrain.append(body)

    def _build_body(self, y: float, angle: float, shape: Any, kind: str) -> Any:
        """Builds a part of the walker, ``kind`` "hull" or "leg"."""
        params = self._values
        return self.world.CreateDynamicBody(
            position=(const.START_X, y),
            angle=angle,
            fixtures=fixtureDef(
                shape=shape,
                density=params[f"{kind}_density"],
                friction=const.HULL_FRICTION if kind == "hull" else params["leg_friction"],
                categoryBits=_CATEGORY,
                maskBits=_GROUND_MASK,
                restitution=0.0,
            ),
        )

    def _build_leg(self, side: int) -> None:
        """Builds upper and lower leg of one side (-1 or +1) with their joints."""
        params = self._values
        above = self.hull
        anchor_y = const.LEG_DOWN
        parts = ("hip", const.UPPER_Y, const.LEG_W), ("knee", const.LOWER_Y, const.LOWER_WIDTH * const.LEG_W)
        for name, y, width in parts:
            box = polygonShape(box=(width / 2, const.LEG_H / 2))
            leg = self._build_body(y, side * const.LEG_TILT, box, "leg")
            leg.color1 = (153 - side * 25, 76 - side * 25, 127 - side * 25)
            leg.color2 = (102 - side * 25, 51 - side * 25, 76 - side * 25)
            leg.ground_contact = False
            joint = revoluteJointDef(
                bodyA=above,
                bodyB=leg,
                localAnchorA=(0, anchor_y),
                localAnchorB=(0, const.LEG_H / 2),
                enableMotor=True,
                enableLimit=True,
                maxMotorTorque=params["motor_torque"],
                motorSpeed=1,
                lowerAngle=params[f"{name}_lower"],
                upperAngle=params[f"{name}_upper"],
            )
            self.legs.append(leg)
            self.joints.append(self.world.CreateJoint(joint))
            above, anchor_y = leg, -const.LEG_H / 2

    def _look(self, x: float, y: float, reach: float) -> None:
        """Casts the lidar's rays from the hull's origin at (x, y), m."""
        for i, ray in enumerate(self.lidar):
            ray.fraction = 1.0
            ray.p1 = (x, y)
            ray.p2 = physics.ray_end(x, y, i, reach)
            self.world.RayCast(ray, ray.p1, ray.p2)

    def _state(self) -> list[float]:
        """The observation before it is rounded to float32."""
        hull = self.hull
        state = [*physics.observe_hull(hull.angle, hull.angularVelocity, *hull.linearVelocity)]
        for hip, knee, lower in zip(self.joints[::2], self.joints[1::2], self.legs[1::2], strict=True):
            state += physics.observe_leg(hip.angle, hip.speed, knee.angle, knee.speed, lower.ground_contact)
        return state + [ray.fraction for ray in self.lidar]
