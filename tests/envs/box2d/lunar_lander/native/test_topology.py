"""The joints of a lander are solved many at once."""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
import pytest
from numba import njit

from gym_dr.compiled.options import ENTRY
from gym_dr.envs.box2d.lunar_lander.native import topology
from gym_dr.envs.box2d.lunar_lander.native.layout import BLOCK_FLOATS


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
