"""Pictures of native landers: Gymnasium's own drawing, of a Box2D environment that is put into their state."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_dr.compiled import pcg64
from gym_dr.envs.box2d.lunar_lander.env import LunarLanderDR
from gym_dr.envs.box2d.lunar_lander.native.layout import (
    EDGES,
    LANDER,
    LEG_0,
    LEG_1,
    S_HAS_SHAPING,
    S_TURBULENCE,
    S_WIND,
)
from gym_dr.envs.box2d.lunar_lander.native.memory import Environments
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.layout import BODY


class Canvas:
    """One Box2D environment that is only drawn, never stepped."""

    def __init__(self) -> None:
        self._env = LunarLanderDR(randomization="none", render_mode="rgb_array")
        self._env.reset(seed=0)

    def draw(self, memory: Environments, index: int) -> Any:
        """An array ``(400, 600, 3)`` uint8 of sub-environment ``index``."""
        to_box2d(memory, index, self._env)
        return self._env.render()  # type: ignore[no-untyped-call]  # Gymnasium's

    def close(self) -> None:
        """Frees the drawing surface."""
        self._env.close()  # type: ignore[no-untyped-call]  # Gymnasium's


def bodies_of(env: LunarLanderDR) -> list[Any]:
    """Hull and legs."""
    return [env.lander, *env.legs]


def edges_of(env: LunarLanderDR) -> list[Any]:
    """The ground's fixtures in the order in which they were made."""
    fixtures = list(env.moon.fixtures)
    if fixtures[0].shape.vertices[0] != (0, 0) or fixtures[0].shape.vertices[1][1] != 0:
        fixtures.reverse()
    return fixtures


def to_box2d(memory: Environments, index: int, env: LunarLanderDR) -> None:
    """Puts native sub-environment ``index`` into a Box2D environment that was reset once.

    Poses, velocities, terrain, contact flags and counters. Box2D offers no way to set its solver's impulses, so that an
    environment stepped from there follows the native one closely but not bit for bit. To replay an episode exactly,
    reset with its seed and parameters.

    Args:
        memory: The native environments.
        index: Which one.
        env: What is changed; its parameters do not change.
    """
    row, status = memory.world.rows[index], memory.world.status[index]
    for body, box2d in enumerate(bodies_of(env)):
        base = body * BODY
        angle = float(row[base + at.ANGLE])
        local = box2d.localCenter
        x = row[base + at.CENTER_X] + row[base + at.SIN] * np.float32(local.y)
        y = row[base + at.CENTER_Y] - row[base + at.COS] * np.float32(local.y)
        box2d.transform = ((float(x), float(y)), angle)
        box2d.linearVelocity = float(row[base + at.VELOCITY_X]), float(row[base + at.VELOCITY_Y])
        box2d.angularVelocity = float(row[base + at.OMEGA])
    _rebuild_ground(env, memory.world.edges[index])
    for leg, body in zip(env.legs, (LEG_0, LEG_1), strict=True):
        leg.ground_contact = bool(status[at.S_TOUCHES] >> body & 1)
    env.game_over = bool(status[at.S_TOUCHED] >> LANDER & 1)
    env.wind_idx, env.torque_idx = int(status[S_WIND]), int(status[S_TURBULENCE])
    env.prev_shaping = float(memory.shaping[index]) if status[S_HAS_SHAPING] else None
    env.np_random.bit_generator.state = pcg64.unpack(memory.streams[index])


def _rebuild_ground(env: LunarLanderDR, terrain: Any) -> None:
    """Replaces the edges of the ground and the polygons of the sky that is drawn around them."""
    friction = [fixture.friction for fixture in edges_of(env)]
    for fixture in edges_of(env):
        env.moon.DestroyFixture(fixture)
    top = env.sky_polys[0][2][1]
    env.sky_polys = []
    for edge in range(EDGES):
        x1, y1, x2, y2 = (float(v) for v in terrain[edge, :4])
        env.moon.CreateEdgeFixture(vertices=[(x1, y1), (x2, y2)], density=0, friction=friction[edge])
        if edge > 0:
            y1, y2 = round(y1, 6), round(y2, 6)  # float32's rounding may put a whole number of pixels just below it
            env.sky_polys.append([(x1, y1), (x2, y2), (x2, top), (x1, top)])
