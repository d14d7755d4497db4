"""Sine, cosine, remainder and square without branches: what Python's own give, bit for bit where they are glibc's."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from gym_dr.compiled import trigonometry
from gym_dr.compiled.options import ENTRY
from gym_dr.compiled.square import square

GLIBC = platform.libc_ver()[0] == "glibc" and platform.machine() == "x86_64"


def mapped(function: Any) -> Callable[..., Any]:
    """A function of numbers as one of arrays."""

    @njit(**ENTRY)
    def fill(values: Any, results: Any) -> None:
        for i in range(len(values)):
            results[i] = function(values[i])

    def call(values: Any) -> Any:
        results = np.empty(len(values))
        fill(values, results)
        return results

    return call


def numbers(low: float, high: float) -> Any:
    return np.random.default_rng(0).uniform(low, high, 20_000)


ANGLES = np.concatenate(
    [
        *(numbers(-size, size) for size in (0.126, 0.856, 2.43, 10.0, 1e3, 1e8)),
        *(sign * 2.0 ** np.arange(-60.0, 26.0) for sign in (1, -1)),
        np.array([0.0, -0.0, *(k * math.pi / 4 for k in range(-20, 21))]),
    ]
)


def assert_equal(results: Any, expected: Any) -> None:
    """Bit for bit with glibc on x86-64, else within a unit in the last place."""
    if GLIBC:
        assert results.tobytes() == expected.tobytes()
    np.testing.assert_array_max_ulp(results, expected, 1)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(trigonometry.sin, math.sin), (trigonometry.cos, math.cos)], ids=["sin", "cos"]
)
def test_sines_and_cosines_are_pythons(ours: Any, theirs: Callable[[float], float]) -> None:
    assert_equal(mapped(ours)(ANGLES), np.array([theirs(angle) for angle in ANGLES.tolist()]))


def test_squares_are_pythons_and_not_products() -> None:
    values = np.concatenate([numbers(-size, size) for size in (1e-5, 1.0, 30.0, 1e6)])
    values = np.concatenate([values, 10.0 ** numbers(-150, 150), np.array([0.0, -0.0, np.inf, 5e-324, 1e200])])
    with np.errstate(over="ignore", under="ignore"):
        expected = np.array([np.float64(value) ** 2 for value in values])
        products = values * values
    assert_equal(mapped(square)(values), expected)
    if GLIBC:
        assert 0 < np.count_nonzero(expected != products) < len(values) / 500


def test_remainders_are_exact() -> None:
    turn = 2 * math.pi

    def ours(x: Any) -> Any:
        return trigonometry.fmod(x, turn)

    values = np.concatenate([numbers(-10, 10), numbers(-1e6, 1e6), np.arange(-50.0, 51.0) * turn])
    expected = np.array([math.fmod(value, turn) for value in values.tolist()])
    assert mapped(njit(ours))(values).tobytes() == expected.tobytes()
