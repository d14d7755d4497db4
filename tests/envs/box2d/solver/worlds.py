"""Small worlds for tests of the solver: bodies without joints above ground of edges or boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY
from gym_dr.envs.box2d.solver import broad_phase
from gym_dr.envs.box2d.solver import layout as at
from gym_dr.envs.box2d.solver.arrays import Scratch, World
from gym_dr.envs.box2d.solver.layout import BODY, HEAD
from gym_dr.envs.box2d.solver.shapes import (
    centroid,
    hull,
    make_shapes,
    mass_properties,
    set_normals,
    set_properties,
)

f32 = np.float32
Points = Sequence[tuple[float, float]]
Box = tuple[float, float, float, float]  # left, right, top, bottom
BRICK = ((-1.0, -0.5), (1.0, -0.5), (1.0, 0.5), (-1.0, 0.5))
KITE = ((0.0, -1.0), (0.5, 0.25), (0.0, 0.5), (-0.5, 0.25))
LOPSIDED = ((-0.5, -0.25), (0.5, -0.5), (0.75, 0.25), (0.0, 0.75), (-0.5, 0.5))
SHAPES = {"brick": BRICK, "kite": KITE, "lopsided": LOPSIDED}


def make_world(
    bodies: Sequence[Points] = (BRICK,),
    *,
    num_envs: int = 1,
    edges: Sequence[Box] = (),  # x1, y1, x2, y2
    boxes: Sequence[Box] = (),
    density: float = 1.0,
    friction: float = 0.0,
    ground_friction: float = 0.0,
    edge_width: float = 0.0,
    contacts: int = 8,
) -> World:
    """Worlds whose bodies are not placed yet."""
    shapes = make_shapes(
        [hull(points, 1.0) for points in bodies], list(map(np.int64, range(len(bodies)))), one_ground=False
    )
    world = World.allocate(
        num_envs,
        shapes,
        row=len(bodies) * BODY + HEAD,
        edges=len(edges),
        boxes=len(boxes),
        contacts=contacts,
        status=at.STATUS,
        edge_width=edge_width,
    )
    world.status[:, at.S_BOXES] = len(boxes)
    world.highest[:] = 1e9
    for i, ends in enumerate(edges):
        world.edges[:, i] = [*ends, ground_friction]
    for i, sides in enumerate(boxes):
        world.boxes[:, i] = _box(sides, ground_friction)
    for body in range(len(bodies)):
        mass = mass_properties.py_func(shapes, body, f32(density))
        for env in range(num_envs):
            set_properties.py_func(world.properties, env, body, mass, f32(friction))
    return world


def _box(sides: Box, friction: float) -> Any:
    left, right, top, bottom = sides
    corners = np.array([right, bottom, right, top, left, top, left, bottom], f32)
    normals = np.zeros(8, f32)
    set_normals.py_func(corners, at.BOX_CORNERS, normals)
    return [*corners, *normals, *centroid.py_func(corners, at.BOX_CORNERS), friction]


def make_scratch() -> Scratch:
    return Scratch.allocate(BODY + HEAD)


@njit(**ENTRY)
def _place(world: Any, env: int, body: int, x: Any, y: Any, angle: Any) -> None:
    broad_phase.place(world, env, body, x, y, angle)


def place(world: World, x: float, y: float, angle: float = 0.0, *, env: int = 0, body: int = 0) -> None:
    """Puts a body's origin at (x, y), m."""
    _place(world, env, body, f32(x), f32(y), f32(angle))


def touch(world: World, *, ground: int = 0, body: int = 0, env: int = 0) -> None:
    """Makes the world's only contact, which the narrow phase has not looked at yet."""
    world.contact_ints[env, 0] = [body, ground, 0, 0, 0, 0, 0]
    world.contact_floats[env, 0] = 0.0
    world.status[env, at.S_CONTACTS] = 1


@njit(**ENTRY)
def _begin(world: Any, env: int) -> None:
    broad_phase.begin_contacts(world, env, np.int64((1 << world.properties.shape[1]) - 1))


def begin(world: World) -> None:
    """Begins contacts of all worlds, once their bodies are placed."""
    for env in range(len(world.rows)):
        _begin(world, env)


for _kernel in (_place, _begin):
    cache_on_disk(_kernel, "the solver's tests")
