"""Sine and cosine of float32 angles: the C library's, which Box2D calls."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY
from gym_dr.envs.box2d.solver.trigonometry import sin_cos
from tests.envs.box2d.exact import EXACT
from tests.strategies import few


@njit(**ENTRY)
def sines(angles: Any, sine: Any, cosine: Any) -> None:
    for i in range(angles.size):
        s, c = sin_cos(angles[i])
        sine[i] = s
        cosine[i] = c


cache_on_disk(sines, "the solver's tests")


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
    angles = angles[:: max(1, angles.size // 60_000)]
    sine, cosine = np.empty_like(angles), np.empty_like(angles)
    sines(angles, sine, cosine)
    assert (sine == np.array([library.sinf(a) for a in angles.tolist()], np.float32)).all()
    assert (cosine == np.array([library.cosf(a) for a in angles.tolist()], np.float32)).all()


@given(angle=st.floats(-20000.0, 20000.0, width=32))
@few
def test_any_angle_on_any_machine(angle: float) -> None:
    sine, cosine = np.empty(1, np.float32), np.empty(1, np.float32)
    sines(np.array([angle], np.float32), sine, cosine)
    assert sine[0] == pytest.approx(math.sin(angle), abs=1e-7)
    assert cosine[0] == pytest.approx(math.cos(angle), abs=1e-7)
