"""The part of LunarLander that is not Box2D: wind, engines, observation and reward, as plain float64 formulas.

Every expression keeps Gymnasium's order of operations, so that nominal episodes equal ``LunarLander-v3`` bit for bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gym_dr.envs.box2d.lunar_lander import constants as const
from gym_dr.envs.box2d.lunar_lander.constants import FPS, SCALE

Pair = tuple[float, float]  # x and y
State = tuple[float, float, float, float, float, float, float, float]


class Thrust(NamedTuple):
    """An engine's push on the hull during one step."""

    impulse: Pair  # N s
    point: Pair  # m, where it acts, in world coordinates


def terrain_heights(random_heights: np.ndarray) -> list[float]:
    """Heights of the terrain's corner points: smoothed, and flat around the landing pad.

    Args:
        random_heights: Shape ``(CHUNKS + 1,)``, m; changed in place at the pad.
    """
    middle = const.CHUNKS // 2
    random_heights[middle - 2 : middle + 3] = const.HELIPAD_Y
    # index -1 at the left border wraps around to the last height, which is drawn for this purpose
    return [
        const.TERRAIN_SMOOTHING * (random_heights[i - 1] + random_heights[i] + random_heights[i + 1])
        for i in range(const.CHUNKS)
    ]


def wind_strength(index: int) -> float:
    """Fraction of its power that the wind (or turbulence) has at a step, in (-1, 1).

    ``tanh(sin(2 k i) + sin(pi k i))`` with k = 0.01, which never repeats.
    """
    return math.tanh(math.sin(0.02 * index) + math.sin(math.pi * 0.01 * index))


def main_engine(position: Pair, angle: float, dispersion: Pair, power: float, throttle: float) -> Thrust:
    """The main engine's push, along the hull's axis with some dispersion.

    Args:
        position: Position of the lander's origin, m.
        angle: Angle of the lander, rad.
        dispersion: Two random lengths of at most 1 pixel, m.
        power: ``main_engine_power``, or ``side_engine_power``.
        throttle: 0.5 to 1.
    """
    tip = math.sin(angle), math.cos(angle)
    side = -tip[1], tip[0]
    along = const.MAIN_ENGINE_Y_LOCATION / SCALE + 2 * dispersion[0]
    ox = tip[0] * along + side[0] * dispersion[1]
    oy = -tip[1] * along - side[1] * dispersion[1]
    return Thrust((-ox * power * throttle, -oy * power * throttle), (position[0] + ox, position[1] + oy))


def side_engine(
    position: Pair, angle: float, dispersion: Pair, power: float, throttle: float, direction: float
) -> Thrust:
    """A side engine's push; ``direction`` is -1 (left) or +1 (right), the rest as in ``main_engine``."""
    tip = math.sin(angle), math.cos(angle)
    side = -tip[1], tip[0]
    across = 3 * dispersion[1] + direction * const.SIDE_ENGINE_AWAY / SCALE
    ox = tip[0] * dispersion[0] + side[0] * across
    oy = -tip[1] * dispersion[0] - side[1] * across
    point = (
        position[0] + ox - tip[0] * const.SIDE_ENGINE_DROP / SCALE,
        position[1] + oy + tip[1] * const.SIDE_ENGINE_HEIGHT / SCALE,
    )
    return Thrust((-ox * power * throttle, -oy * power * throttle), point)


def observe(
    position: Pair,
    velocity: Pair,
    angle: float,
    angular_velocity: float,
    left_leg: bool,
    right_leg: bool,
) -> State:
    """The observation before it is rounded to float32: positions and speeds relative to the pad, scaled."""
    return (
        (position[0] - const.WORLD_W / 2) / (const.WORLD_W / 2),
        (position[1] - (const.HELIPAD_Y + const.LEG_DOWN / SCALE)) / (const.WORLD_H / 2),
        velocity[0] * (const.WORLD_W / 2) / FPS,
        velocity[1] * (const.WORLD_H / 2) / FPS,
        angle,
        20.0 * angular_velocity / FPS,
        1.0 if left_leg else 0.0,
        1.0 if right_leg else 0.0,
    )


def shaping(state: State) -> float:
    """The potential whose differences are the reward: near the pad, slow, upright and on its legs is good."""
    x, y, vx, vy, angle, _, left, right = state
    return (
        -100 * math.sqrt(x * x + y * y) - 100 * math.sqrt(vx * vx + vy * vy) - 100 * abs(angle) + 10 * left + 10 * right
    )
