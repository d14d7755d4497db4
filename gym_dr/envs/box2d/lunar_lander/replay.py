"""Logged flights of the lander.

An observation determines the hull. In the air the legs follow the hull, pressed against the stops of their joints; the
log does not tell their exact positions, but a simulation that follows the log from the start does. Flights can be
replayed up to the first touch. On the ground the log tells neither the motion of the legs nor the terrain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.box2d.lunar_lander import constants as const
from gym_dr.envs.box2d.lunar_lander.constants import FPS, SCALE, WIND_INDEX_HIGH, WIND_INDEX_LOW
from gym_dr.envs.box2d.lunar_lander.native.layout import JOINT_0, JOINT_1, LANDER, LEG_0, LEG_1, S_TURBULENCE, S_WIND
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY, JOINT
from gym_dr.envs.replay import Coordinate, ForceProfile, LogReplay, Reading

_SETTLING = 40  # steps in which the legs come to rest at their stops
_FIRST = 30  # steps of an episode in which they still swing
_HULL, _LEG = 6, 11  # numbers of a state
_LEGS = 2 * _LEG
_FAR = np.float32(-1e4)  # m, where the ground is put
_TO_STATE = np.array(  # of an observation: m, m, m/s, m/s, rad, rad/s
    [const.WORLD_W / 2, const.WORLD_H / 2, FPS / (const.WORLD_W / 2), FPS / (const.WORLD_H / 2), 1.0, FPS / 20.0]
)
_PAD = np.array([const.WORLD_W / 2, const.HELIPAD_Y + const.LEG_DOWN / SCALE, 0.0, 0.0, 0.0, 0.0])
_ON_GROUND = "it matters on the ground only, where observations determine neither the legs nor the terrain"
_START = "it acts before the first observation"


class LanderLogReplay(LogReplay):
    """States are x, y (m), velocities (m/s), angle (rad) and angular velocity (rad/s) of the hull, then the legs.

    Of each leg: position (m) and angle relative to the hull, in its frame; velocities (m/s, rad/s) relative to a rigid
    body; and the impulses of its joint.
    """

    coordinates = (
        Coordinate(name="x", unit="m"),
        Coordinate(name="y", unit="m"),
        Coordinate(name="x velocity", unit="m/s"),
        Coordinate(name="y velocity", unit="m/s"),
        Coordinate(name="angle", unit="rad", angle=True),
        Coordinate(name="angular velocity", unit="rad/s"),
    )
    time_step = 1.0 / FPS
    random_steps = True
    # the legs come from the simulation that followed the log, with other parameters at first
    inexact = (2e-4, 2e-4, 1e-2, 1e-2, 2e-4, 1e-2)
    unidentifiable = {"leg_spring_torque": _ON_GROUND, "ground_friction": _ON_GROUND, "initial_random": _START}

    def __init__(self, backend: Any, gusts: Array) -> None:
        """Takes the strength of the wind at every index from ``WIND_INDEX_LOW`` on."""
        super().__init__(backend)

        def strength(steps: npt.NDArray[np.int64]) -> Array:
            found: Array = gusts[np.minimum(steps - WIND_INDEX_LOW, len(gusts) - 1)]
            return found

        self.force_profiles = tuple(
            ForceProfile(power=power, strength=strength, low=WIND_INDEX_LOW, high=WIND_INDEX_HIGH)
            for power in ("wind_power", "turbulence_power")
        )

    def begin(self, params: Mapping[str, Any]) -> None:
        """Begins an episode in each, high in the air, and takes the ground away."""
        super().begin({**params, "initial_random": 0.0})
        self._world.edges[:, :, :4] = _FAR
        self._world.highest[:] = _FAR
        self._rows, self._status = self._world.rows.copy(), self._world.status.copy()
        self._status[:, at.S_TOUCHES] = self._status[:, at.S_TOUCHED] = self._status[:, at.S_CONTACTS] = 0

    @property
    def first(self) -> Array:
        """See ``LogReplay.first``; the legs rest at their stops."""
        self._world.rows[:], self._world.status[:] = self._rows, self._status
        continuous = self._backend.continuous
        idle = np.zeros((self.num_envs, 2)) if continuous else np.zeros(self.num_envs, np.int64)
        for _ in range(_SETTLING):
            self._backend.step(idle)
        return np.asarray(self._states()[0])

    @property
    def per_observation(self) -> Array:
        return _TO_STATE.copy()

    @property
    def size(self) -> int:
        return _HULL + _LEGS

    @property
    def _world(self) -> Any:
        return self._backend.arrays.world

    def read(self, observations: Array, others: Mapping[str, npt.NDArray[Any]]) -> Reading:
        hull = observations[:, :_HULL] * _TO_STATE + _PAD
        legs = np.full((len(hull), _LEGS), np.nan)
        touching = (observations[:, 6:8] > 0.5).any(axis=1)
        flying = np.cumsum(touching) == 0
        usable = flying[:-1] & flying[1:]
        usable[-1] = False  # the last step of a crash touches the ground before a leg does
        falling = np.arange(len(usable)) < _FIRST
        return Reading(
            states=np.concatenate([hull, legs], axis=1),
            usable=usable & ~falling,
            reasons={
                "a leg touches the ground, or has, or the step is the last one": ~usable,
                "the legs still swing to their stops after the start": falling & usable,
            },
        )

    def add(self, states: Array, deltas: Array) -> Array:
        moved = states.copy()
        moved[:, :_HULL] += deltas
        return moved

    def difference(self, states: Array, origins: Array) -> Array:
        return super().difference(states[:, :_HULL], origins[:, :_HULL])

    def _place(self, states: Array, phases: npt.NDArray[np.int64] | None) -> None:
        world = self._world
        world.rows[:], world.status[:] = self._rows, self._status
        if phases is not None:
            world.status[:, [S_WIND, S_TURBULENCE]] = phases
        legs = states[:, _HULL:]
        origin, velocity, angle, spin = states[:, :2], states[:, 2:4], states[:, 4], states[:, 5]
        hull = self._center(LANDER, origin, angle)
        self._put(LANDER, hull, angle, velocity, spin)
        for leg, numbers in ((LEG_0, legs[:, :_LEG]), (LEG_1, legs[:, _LEG:])):
            tilt = angle + numbers[:, 2]
            center = self._center(leg, origin + _turned(numbers[:, :2], angle), tilt)
            carried = velocity + _crossed(spin, center - hull)
            self._put(leg, center, tilt, carried + _turned(numbers[:, 3:5], angle), spin + numbers[:, 5])
        for joint, numbers in ((JOINT_0, legs[:, 6:_LEG]), (JOINT_1, legs[:, _LEG + 6 :])):
            world.rows[:, joint : joint + JOINT] = numbers

    def _put(self, body: Any, center: Array, angle: Array, velocity: Array, spin: Array) -> None:
        """Moves a body of every world."""
        rows, first = self._world.rows, body * BODY
        rows[:, first + at.CENTER_X : first + at.CENTER_Y + 1] = center
        rows[:, first + at.ANGLE] = angle
        rows[:, first + at.VELOCITY_X : first + at.VELOCITY_Y + 1] = velocity
        rows[:, first + at.OMEGA] = spin
        rows[:, first + at.COS], rows[:, first + at.SIN] = np.cos(angle), np.sin(angle)
        rows[:, first + at.BOX_LOW_X : first + at.BOX_HIGH_Y + 1] = np.concatenate([center, center], axis=1)

    def _states(self) -> Array:
        rows = self._world.rows.astype(np.float64)
        (hull, velocity, angle, spin), origin = self._body(rows, LANDER), self._origin(rows, LANDER)
        parts = [origin, velocity, angle[:, None], spin[:, None]]
        for leg, joint in ((LEG_0, JOINT_0), (LEG_1, JOINT_1)):
            center, speed, tilt, turn = self._body(rows, leg)
            slip = speed - velocity - _crossed(spin, center - hull)
            parts += [_turned(self._origin(rows, leg) - origin, -angle), (tilt - angle)[:, None], _turned(slip, -angle)]
            parts += [(turn - spin)[:, None], rows[:, joint : joint + JOINT]]
        return np.concatenate(parts, axis=1)

    @staticmethod
    def _body(rows: Array, body: Any) -> tuple[Array, Array, Array, Array]:
        """Center of mass, velocity, angle and angular velocity."""
        own = rows[:, body * BODY : (body + 1) * BODY]
        center, velocity = own[:, at.CENTER_X : at.CENTER_Y + 1], own[:, at.VELOCITY_X : at.VELOCITY_Y + 1]
        return center, velocity, own[:, at.ANGLE], own[:, at.OMEGA]

    def _origin(self, rows: Array, body: Any) -> Array:
        """Where a body's origin is, ``(N, 2)`` m."""
        center, _, angle, _ = self._body(rows, body)
        return center - _turned(self._local(body), angle)

    def _center(self, body: Any, origin: Array, angle: Array) -> Array:
        """Where a body's center of mass is, ``(N, 2)`` m."""
        return origin + _turned(self._local(body), angle)

    def _local(self, body: Any) -> Array:
        """A body's center of mass in its own frame, ``(N, 2)`` m."""
        local = self._world.properties[:, body, at.LOCAL_CENTER_X : at.LOCAL_CENTER_Y + 1]
        return np.asarray(local, np.float64)


def _crossed(spin: Array, arm: Array) -> Array:
    """Velocity of a point of a turning body, ``(N, 2)``."""
    return np.stack([-spin * arm[:, 1], spin * arm[:, 0]], axis=1)


def _turned(points: Array, angles: Array) -> Array:
    """Points ``(N, 2)`` turned by angles ``(N,)``, rad."""
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y = points[:, 0], points[:, 1]
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=1)
