"""A formula stands once: what is compiled from a plain function gives what Python gets from it, bit for bit."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

from gym_dr.compiled.formula import compile_formula
from gym_dr.compiled.options import ENTRY

STEPS = np.array([0.1, 0.2, 0.7])


class Place(NamedTuple):
    x: float
    y: float


def rotated(place: Place, angle: float) -> Place:
    sine, cosine = math.sin(angle), math.cos(angle)
    return Place(cosine * place.x - sine * place.y, sine * place.x + cosine * place.y)


def walked(place: Place, angle: float, step: int) -> Place:
    turned = rotated(place, angle)
    return Place(turned.x + STEPS[step], turned.y)


def mirrored(place: Place, angle: float) -> Place:
    return Place(-place.x, place.y)


def call(formula: Any, *arguments: Any) -> Any:
    @njit(**ENTRY)
    def entry(arguments: Any) -> Any:
        return formula(*arguments)

    return entry(arguments)


def test_a_compiled_formula_equals_python_with_the_functions_and_arrays_of_its_file() -> None:
    rng = np.random.default_rng(0)
    for x, y, angle in rng.uniform(-3, 3, (100, 3)).tolist():
        step = int(rng.integers(3))
        assert call(compile_formula(walked), Place(x, y), angle, step) == walked(Place(x, y), angle, step)


def test_a_function_that_it_calls_can_be_replaced() -> None:
    replaced = compile_formula(walked, {rotated: compile_formula(mirrored)})
    assert call(replaced, Place(2.0, 3.0), 1.0, 1) == (-1.8, 3.0)  # -2 + 0.2


def test_a_class_stays_as_it_is() -> None:
    assert compile_formula(Place) is Place


def test_the_plain_function_stays_plain() -> None:
    compile_formula(walked, {rotated: compile_formula(mirrored)})
    assert walked(Place(2.0, 3.0), 0.0, 1) == (2.2, 3.0)


def test_python_cannot_call_a_compiled_formula() -> None:
    with pytest.raises(TypeError):
        compile_formula(rotated)(Place(1.0, 2.0), 0.5)
