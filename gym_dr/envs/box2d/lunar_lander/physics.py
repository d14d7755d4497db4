"""The part of LunarLander that is not Box2D: terrain, engines, wind, observation and reward, as plain float64 formulas.

``env.py`` calls them, and ``native`` compiles them. Every expression keeps Gymnasium's order of operations, so that
nominal episodes equal ``LunarLander-v3`` bit for bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gym_dr.envs.box2d.lunar_lander import constants as const
from gym_dr.envs.box2d.lunar_lander.constants import FPS, SCALE

Pair = tuple[float, float]  # x and y
State = tuple[float, float, float, float, float, float, float, float]


class Throttles(NamedTuple):
    """What an action asks of the engines."""

    main: float  # 0, or 0.5 to 1
    side: float  # 0, or 0.5 to 1
    direction: float  # of the side engines: -1 (left) or 1 (right)


class Thrust(NamedTuple):
    """An engine's push on the hull during one step."""

    impulse: Pair  # N s
    point: Pair  # m, where it acts, in world coordinates


def rough_height(i: int, drawn: float) -> float:
    """Height of the terrain at corner point ``i`` before it is smoothed, m: the one drawn, or the landing pad's."""
    return const.HELIPAD_Y if abs(i - const.CHUNKS // 2) <= 2 else drawn


def corner(i: int, before: float, own: float, after: float) -> Pair:
    """Corner point ``i`` of the terrain, m, from its rough height and those of its neighbors.

    The first has the last height as its left neighbor (Gymnasium's index -1); there is one more height than corners.
    """
    return const.CORNER_STEP * i, const.TERRAIN_SMOOTHING * (before + own + after)


def throttles_of_choice(choice: int) -> Throttles:
    """For a discrete action: nothing, left, main or right engine."""
    if choice == 2:
        return Throttles(1.0, 0.0, 0.0)
    return Throttles(0.0, 0.0 if choice == 0 else 1.0, float(choice - 2))


def throttles_of_numbers(main: float, side: float) -> Throttles:
    """For a continuous action, whose numbers are clipped to [-1, 1]."""
    main, side = min(max(main, -1.0), 1.0), min(max(side, -1.0), 1.0)
    return Throttles(
        (main + 1.0) * 0.5 if main > 0.0 else 0.0,
        abs(side) if abs(side) > 0.5 else 0.0,
        1.0 if side > 0.0 else -1.0,
    )


def wind_strength(index: int) -> float:
    """Fraction of its power that the wind (or turbulence) has at a step, in (-1, 1).

    ``tanh(sin(2 k i) + sin(pi k i))`` with k = 0.01, which never repeats.
    """
    return math.tanh(math.sin(0.02 * index) + math.sin(math.pi * 0.01 * index))


def tip_of(angle: float) -> Pair:
    """Sine and cosine of the lander's angle (rad), which the engines' pushes follow."""
    return math.sin(angle), math.cos(angle)


def main_engine(position: Pair, tip: Pair, dispersion: Pair, power: float, throttle: float) -> Thrust:
    """The main engine's push, along the hull's axis with some dispersion.

    Args:
        position: Position of the lander's origin, m.
        tip: See ``tip_of``.
        dispersion: Two random lengths of at most 1 pixel, m.
        power: ``main_engine_power``, or ``side_engine_power``.
        throttle: 0.5 to 1.
    """
    side = -tip[1], tip[0]
    along = const.MAIN_ENGINE_Y_LOCATION / SCALE + 2 * dispersion[0]
    ox = tip[0] * along + side[0] * dispersion[1]
    oy = -tip[1] * along - side[1] * dispersion[1]
    return Thrust((-ox * power * throttle, -oy * power * throttle), (position[0] + ox, position[1] + oy))


def side_engine(position: Pair, tip: Pair, dispersion: Pair, power: float, throttle: float, direction: float) -> Thrust:
    """A side engine's push; ``direction`` is -1 (left) or +1 (right), the rest as in ``main_engine``."""
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
    """The potential whose differences are the reward: high near the pad, slow, upright and on its legs."""
    x, y, vx, vy, angle, _, left, right = state
    return (
        -100 * math.sqrt(x * x + y * y) - 100 * math.sqrt(vx * vx + vy * vy) - 100 * abs(angle) + 10 * left + 10 * right
    )


def outcome(state: State, growth: float, throttles: Throttles, crashed: bool, awake: bool) -> tuple[float, bool]:
    """Reward, and whether the episode ends.

    Args:
        state: See ``observe``.
        growth: Of the potential in this step.
        throttles: Those that this step used.
        crashed: Whether the hull has touched the ground.
        awake: Whether anything has moved in the last half second.
    """
    if not awake:
        return const.LANDED_REWARD, True
    if crashed or abs(state[0]) >= 1.0:
        return const.CRASH_REWARD, True
    return growth - throttles.main * const.MAIN_ENGINE_COST - throttles.side * const.SIDE_ENGINE_COST, False
