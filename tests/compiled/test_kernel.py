"""Kernels are linked into what calls them, and have nothing that Python could call."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit

from gym_dr.compiled.options import ENTRY, KERNEL


@njit(**KERNEL)
def double(x: Any) -> Any:
    return 2 * x


@njit(**ENTRY)
def quadruple(x: Any) -> Any:
    return double(double(x))


def test_a_kernel_works_in_the_functions_that_call_it() -> None:
    assert quadruple(21) == 84


def test_python_cannot_call_a_kernel() -> None:
    with pytest.raises(TypeError):
        double(21)
