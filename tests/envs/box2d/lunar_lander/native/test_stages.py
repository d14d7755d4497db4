"""The pieces that equality rests on: sines, shapes, SIMD."""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import Any

import Box2D
import llvmlite.binding
import numpy as np
import pytest
from Box2D.b2 import fixtureDef, polygonShape
from numba import njit

from gym_dr.compiled.options import ENTRY
from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.native import shapes as walker_shapes
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.native import shapes, topology
from gym_dr.envs.box2d.lunar_lander.native.layout import BLOCK_FLOATS
from gym_dr.envs.box2d.solver.shapes import mass_properties
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from tests.envs.box2d.exact import EXACT


@njit(**ENTRY)
def sines(angles: Any, sine: Any, cosine: Any) -> None:
    for i in range(angles.size):
        s, c = sin_cos(angles[i])
        sine[i] = s
        cosine[i] = c


def float32s(low: float, high: float, step: int) -> Any:
    """Every ``step``-th float32 in [low, high), and their negatives."""
    first, last = (int(np.float32(v).view(np.uint32)) for v in (low, high))
    positive = np.arange(first, last, step, dtype=np.uint32).view(np.float32)
    return np.concatenate([positive, -positive])


@pytest.mark.skipif(not EXACT, reason="compares with glibc on x86-64")
@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(0.0, 0.5, 4001), (0.5, 120.0, 211), (120.0, 20000.0, 211), (0.74, 0.80, 1), (2.35, 2.36, 1), (119.0, 121.0, 1)],
)
def test_sines_and_cosines_are_the_c_librarys(low: float, high: float, step: int) -> None:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    for name in ("sinf", "cosf"):
        getattr(library, name).restype, getattr(library, name).argtypes = ctypes.c_float, [ctypes.c_float]
    angles = float32s(low, high, step)
    angles = angles[:: max(1, angles.size // 200_000)]
    sine, cosine = np.empty_like(angles), np.empty_like(angles)
    sines(angles, sine, cosine)
    assert (sine == np.array([library.sinf(a) for a in angles.tolist()], np.float32)).all()
    assert (cosine == np.array([library.cosf(a) for a in angles.tolist()], np.float32)).all()


@pytest.mark.parametrize(
    ("points", "scale", "tables"),
    [(lander.LANDER_POLY, lander.SCALE, shapes.SHAPES), (walker.HULL_POLY, walker.SCALE, walker_shapes.SHAPES)],
    ids=["lander", "walker"],
)
def test_shapes_and_masses_are_box2ds(points: Any, scale: float, tables: Any) -> None:
    world = Box2D.b2World()
    corners = [(x / scale, y / scale) for x, y in points]
    for density in np.linspace(1.0, 20.0, 101):
        shape = polygonShape(vertices=corners)
        hull = world.CreateDynamicBody(fixtures=fixtureDef(shape=shape, density=float(density)))
        inverse_mass, inverse_inertia, *center = mass_properties.py_func(tables, 0, np.float32(density))
        assert np.float32(1) / np.float32(hull.mass) == inverse_mass
        assert tuple(hull.localCenter) == tuple(center)
        # Box2D tells the inertia about the origin, rounded once more
        about_origin = 1 / inverse_inertia + hull.mass * (center[0] ** 2 + center[1] ** 2)
        assert np.isclose(hull.inertia, about_origin, rtol=1e-5)
    shape, count = hull.fixtures[0].shape, tables.counts[0]
    assert [tuple(v) for v in shape.vertices] == [tuple(v) for v in tables.vertices[0].reshape(-1, 2)[:count].tolist()]
    assert [tuple(v) for v in shape.normals] == [tuple(v) for v in tables.normals[0].reshape(-1, 2)[:count].tolist()]
    assert tuple(shape.centroid) == tuple(tables.centroid[0].tolist())


@njit(**ENTRY)
def velocities(block: Any, iterations: int) -> None:
    topology.solve_joints(block, iterations)


def test_the_solver_uses_the_widest_registers() -> None:
    features = llvmlite.binding.get_host_cpu_features()
    if not (features.get("avx2") or features.get("avx512f")):
        pytest.skip("the processor has neither AVX2 nor AVX-512")
    velocities(np.zeros(BLOCK_FLOATS, np.float32), 1)
    (assembly,) = velocities.inspect_asm().values()
    # Ice Lake, Zen 4 and later run at full speed with 512 bits; before, LLVM prefers 256
    wide = assembly.count("zmm" if features.get("avx512vbmi2") else "ymm")
    assert wide > 200
