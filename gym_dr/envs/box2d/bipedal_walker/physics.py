"""The part of BipedalWalker that is not Box2D: motors, lidar, observation and reward, as plain formulas.

``env.py`` calls them, and ``native`` compiles them. Every expression keeps Gymnasium's order of operations, so that
nominal episodes equal ``BipedalWalker-v3`` bit for bit: in float64, except motors and their cost, which are in float32
like the actions.
"""

from __future__ import annotations

import math

import numpy as np

from gym_dr.arrays import Floats
from gym_dr.envs.box2d.bipedal_walker import constants as const
from gym_dr.envs.box2d.bipedal_walker.constants import FPS, SCALE

f32 = np.float32
ZERO, ONE = f32(0), f32(1)
_TORQUE_COST = f32(const.TORQUE_COST)
_RAYS = [const.LIDAR_SWEEP * i / const.LIDAR_RAYS for i in range(const.LIDAR_RAYS)]  # rad
_SINES, _COSINES = np.array([math.sin(a) for a in _RAYS]), np.array([math.cos(a) for a in _RAYS])


def drive(action: f32, speed: f32, torque: f32) -> tuple[f32, f32]:
    """Speed that a motor drives to (rad/s) and its largest torque (N m).

    Args:
        action: Its share of the torque, clipped to [-1, 1]; its sign is the direction.
        speed: ``hip_speed`` or ``knee_speed``, rad/s.
        torque: ``motor_torque``, N m.
    """
    signed = speed if action > ZERO else (-speed if action < ZERO else ZERO)
    return signed, torque * min(abs(action), ONE)


def ray_end(x: float, y: float, i: int, reach: float) -> tuple[float, float]:
    """The end (m) of the lidar's ray ``i``, ``reach`` m long, from the hull's origin (x, y)."""
    return x + _SINES[i] * reach, y - _COSINES[i] * reach


def observe_hull(
    angle: float, angular_velocity: float, velocity_x: float, velocity_y: float
) -> tuple[float, float, float, float]:
    """The hull's part of the observation before it is rounded to float32."""
    return (
        angle,
        2.0 * angular_velocity / FPS,
        0.3 * velocity_x * (const.VIEWPORT_W / SCALE) / FPS,
        0.3 * velocity_y * (const.VIEWPORT_H / SCALE) / FPS,
    )


def observe_leg(
    hip: float, hip_speed: float, knee: float, knee_speed: float, contact: bool
) -> tuple[float, float, float, float, float]:
    """A leg's part of the observation, from angles and speeds of its joints; speeds are scaled by the nominal ones."""
    return hip, hip_speed / const.SPEED_HIP, knee + 1.0, knee_speed / const.SPEED_KNEE, 1.0 if contact else 0.0


def shaping(x: float, angle: float) -> float:
    """The potential whose differences are the reward: high if the hull (at x, m) is far ahead and level."""
    return const.PROGRESS_REWARD * x / SCALE - const.TILT_COST * abs(angle)


def outcome(x: float, growth: float, actions: Floats, touched: bool) -> tuple[float, bool]:
    """Reward, and whether the episode ends.

    Args:
        x: Of the hull's origin, m.
        growth: Of the potential in this step.
        actions: Of the motors, shape ``(4,)``.
        touched: Whether the hull has touched the ground.
    """
    if touched or x < 0.0:
        return const.FALL_REWARD, True
    reward = f32(growth)
    for action in actions:
        reward = f32(reward - _TORQUE_COST * min(abs(action), ONE))
    return float(reward), x > const.GOAL_X
