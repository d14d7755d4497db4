"""LunarLander on Box2D with parameters that change from episode to episode.

Gymnasium's class (MIT license) provides the spaces, the rendering and the contact listener. The world and the step are
implemented here, because Gymnasium hard-codes engine powers, masses and friction as module constants and literals:
changing those would affect every other environment in the process. A test requires equal episodes, bit for bit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gym_dr.envs.box2d.env import Box2DEnv, Observation  # first: it imports Box2D without its warnings

# isort: split
from Box2D.b2 import edgeShape, fixtureDef, polygonShape, revoluteJointDef
from gymnasium.envs.box2d.lunar_lander import ContactDetector, LunarLander

from gym_dr.envs.box2d.lunar_lander import constants as const
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.box2d.lunar_lander.constants import FPS, SCALE
from gym_dr.envs.box2d.lunar_lander.params import KEYWORDS, LUNAR_LANDER
from gym_dr.envs.vector_arguments import check_finite, check_keywords
from gym_dr.errors import InvalidActionError
from gym_dr.randomization.space import ParamSpace

_LANDER_CATEGORY, _LEG_CATEGORY, _GROUND_MASK = 0x0010, 0x0020, 0x001
_LANDER_COLORS = (128, 102, 230), (77, 77, 128)


class LunarLanderDR(Box2DEnv, LunarLander):
    """LunarLander-v3 whose gravity, wind, engines, mass, legs and ground are drawn anew at each reset."""

    listener_class = ContactDetector
    # Box2D has no types, and Gymnasium initializes these to None
    lander: Any
    moon: Any
    wind_idx: Any
    torque_idx: Any

    def _build(self, *, continuous: bool = False, render_mode: str | None = None, **constants: Any) -> ParamSpace:
        """As in the base class; the first world is built by ``reset``."""
        check_keywords(LUNAR_LANDER, constants, KEYWORDS)
        space = LUNAR_LANDER.with_constants(constants)
        LunarLander.__init__(self, render_mode=render_mode, continuous=continuous)
        return space

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Advances the physics by 1/50 s.

        Args:
            action: 0 to 3 (nothing, left, main, right engine), or two throttles in [-1, 1], shape ``(2,)``.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The action is not one of these.
        """
        throttles = self._throttles(action)
        self._check_begun("step")
        self._blow_wind()
        dispersion = self.np_random.uniform(-1.0, +1.0) / SCALE, self.np_random.uniform(-1.0, +1.0) / SCALE
        self._fire(throttles, dispersion)
        self.world.Step(1.0 / FPS, const.VELOCITY_ITERATIONS, const.POSITION_ITERATIONS)

        lander = self.lander
        left, right = (leg.ground_contact for leg in self.legs)
        state = physics.observe(
            lander.position, lander.linearVelocity, lander.angle, lander.angularVelocity, left, right
        )
        growth = self._growth(physics.shaping(state))
        return self._seen(state, *physics.outcome(state, growth, throttles, self.game_over, lander.awake))

    def _build_bodies(self) -> None:
        """Builds terrain, lander and legs; random numbers are drawn in the order in which Gymnasium draws them."""
        self._build_terrain()
        self._build_lander()
        if self._values["enable_wind"]:
            self.wind_idx = int(self.np_random.integers(const.WIND_INDEX_LOW, const.WIND_INDEX_HIGH))
            self.torque_idx = int(self.np_random.integers(const.WIND_INDEX_LOW, const.WIND_INDEX_HIGH))
        self.legs = [self._build_leg(-1), self._build_leg(+1)]
        self.bodies = self.drawlist = [self.lander, *self.legs]

    def _build_terrain(self) -> None:
        friction = self._values["ground_friction"]
        drawn = self.np_random.uniform(0, const.WORLD_H / 2, size=const.CHUNKS + 1).tolist()
        heights = [physics.rough_height(i, height) for i, height in enumerate(drawn)]
        corners = [physics.corner(i, heights[i - 1], heights[i], heights[i + 1]) for i in range(const.CHUNKS)]
        self.moon = self.world.CreateStaticBody(shapes=edgeShape(vertices=[(0, 0), (const.WORLD_W, 0)]))
        self.moon.color1 = self.moon.color2 = (0.0, 0.0, 0.0)
        self.helipad_x1, self.helipad_x2 = (corners[const.CHUNKS // 2 + side][0] for side in (-1, 1))
        self.helipad_y = const.HELIPAD_Y
        self.sky_polys = []  # painted as the sky by Gymnasium
        for p1, p2 in pairwise(corners):
            self.moon.CreateEdgeFixture(vertices=[p1, p2], density=0, friction=friction)
            self.sky_polys.append([p1, p2, (p2[0], const.WORLD_H), (p1[0], const.WORLD_H)])

    def _build_lander(self) -> None:
        params = self._values
        self.lander = self.world.CreateDynamicBody(
            position=(const.WORLD_W / 2, const.WORLD_H),
            angle=0.0,
            fixtures=fixtureDef(
                shape=polygonShape(vertices=[(x / SCALE, y / SCALE) for x, y in const.LANDER_POLY]),
                density=params["lander_density"],
                friction=const.LANDER_FRICTION,
                categoryBits=_LANDER_CATEGORY,
                maskBits=_GROUND_MASK,
                restitution=0.0,
            ),
        )
        self.lander.color1, self.lander.color2 = _LANDER_COLORS
        push = params["initial_random"]
        force = self.np_random.uniform(-push, push), self.np_random.uniform(-push, push)
        self.lander.ApplyForceToCenter(force, True)

    def _build_leg(self, i: int) -> Any:
        """Builds the left (-1) or the right (+1) leg and its joint."""
        leg = self.world.CreateDynamicBody(
            position=(const.WORLD_W / 2 - i * const.LEG_AWAY / SCALE, const.WORLD_H),
            angle=i * const.LEG_TILT,
            fixtures=fixtureDef(
                shape=polygonShape(box=(const.LEG_W / SCALE, const.LEG_H / SCALE)),
                density=const.LEG_DENSITY,
                restitution=0.0,
                categoryBits=_LEG_CATEGORY,
                maskBits=_GROUND_MASK,
            ),
        )
        leg.ground_contact = False
        leg.color1, leg.color2 = _LANDER_COLORS
        near, far = const.LEG_ANGLE_MIN, const.LEG_ANGLE_MAX
        leg.joint = self.world.CreateJoint(
            revoluteJointDef(
                bodyA=self.lander,
                bodyB=leg,
                localAnchorA=(0, 0),
                localAnchorB=(i * const.LEG_AWAY / SCALE, const.LEG_DOWN / SCALE),
                enableMotor=True,
                enableLimit=True,
                maxMotorTorque=self._values["leg_spring_torque"],
                motorSpeed=const.LEG_MOTOR_SPEED * i,
                lowerAngle=near if i == -1 else -far,
                upperAngle=far if i == -1 else -near,
            )
        )
        return leg

    def _throttles(self, action: Any) -> physics.Throttles:
        """Checks the action."""
        if self.continuous:
            return physics.throttles_of_numbers(*check_finite(action, (2,)).astype(np.float64).tolist())
        if not self.action_space.contains(action):
            raise InvalidActionError(f"Expected an action from {self.action_space}, got {action!r}.")
        return physics.throttles_of_choice(int(action))

    def _blow_wind(self) -> None:
        """Applies wind and turbulence, which stop as soon as a leg stands on the ground."""
        params = self._values
        if not params["enable_wind"] or self.legs[0].ground_contact or self.legs[1].ground_contact:
            return
        self.lander.ApplyForceToCenter((physics.wind_strength(self.wind_idx) * params["wind_power"], 0.0), True)
        self.wind_idx += 1
        self.lander.ApplyTorque(physics.wind_strength(self.torque_idx) * params["turbulence_power"], True)
        self.torque_idx += 1

    def _fire(self, throttles: physics.Throttles, dispersion: physics.Pair) -> None:
        """Fires the engines."""
        main, side, direction = throttles
        params = self._values
        position, tip = self.lander.position, physics.tip_of(self.lander.angle)
        if main > 0.0:
            self._push(physics.main_engine(position, tip, dispersion, params["main_engine_power"], main), 3.5, main)
        if side > 0.0:
            self._push(
                physics.side_engine(position, tip, dispersion, params["side_engine_power"], side, direction), 0.7, side
            )

    def _push(self, thrust: physics.Thrust, particle_mass: float, throttle: float) -> None:
        """Pushes the lander, and when rendering throws a particle the other way."""
        if self.render_mode is not None:
            particle = self._create_particle(particle_mass, *thrust.point, throttle)
            particle.ApplyLinearImpulse((-thrust.impulse[0], -thrust.impulse[1]), thrust.point, True)
        self.lander.ApplyLinearImpulse(thrust.impulse, thrust.point, True)
