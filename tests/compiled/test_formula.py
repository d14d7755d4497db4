"""A formula stands once: what is compiled from a plain function gives what Python gets from it, bit for bit."""

from __future__ import annotations

import math
import operator
from collections import namedtuple
from enum import IntEnum
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, vectorize

from gym_dr.compiled.flags import ENTRY
from gym_dr.compiled.formula import compile_formula, described

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


@njit
def doubled_x(place: Any) -> Any:
    return 2.0 * place.x


def doubled(place: Any, angle: float) -> Any:
    return doubled_x(place)


def entry_of(formula: Any) -> Any:
    @njit(**ENTRY)
    def entry(arguments: Any) -> Any:
        return formula(*arguments)

    return entry


def test_a_compiled_formula_equals_python_with_the_functions_and_arrays_of_its_file() -> None:
    rng = np.random.default_rng(0)
    entry = entry_of(compile_formula(walked))
    for x, y, angle in rng.uniform(-3, 3, (100, 3)).tolist():
        step = int(rng.integers(3))
        assert entry((Place(x, y), angle, step)) == walked(Place(x, y), angle, step)
    assert walked(Place(2.0, 3.0), 0.0, 1) == (2.2, 3.0)  # the plain function stays plain


def closed_over(inner: Any, gain: float) -> Any:
    return lambda place, angle: gain * inner(place, angle).x


def factorial(x: float) -> float:
    return 1.0 if x < 2.0 else x * factorial(x - 1.0)


@pytest.mark.parametrize(
    ("formula", "arguments", "expected"),
    [
        (closed_over(rotated, 3.0), (Place(2.0, 1.0), 0.0), 6.0),  # functions in a closure are compiled too
        (doubled, (Place(2.0, 1.0), 0.0), 4.0),  # one that is compiled already may be called
        (factorial, (5.0,), 120.0),  # a function may call itself
    ],
)
def test_known_answers_of_functions_that_call_others(formula: Any, arguments: Any, expected: float) -> None:
    assert entry_of(compile_formula(formula))(arguments) == expected


def adding(y: float) -> Any:
    return lambda x: x + y


class Gear(IntEnum):
    LOW = 2


def described_of(source: str, **names: Any) -> str:
    """The description of the function f in a source."""
    exec(source, names)
    return described(names["f"])


F = "def f(x): return g(x) * GAIN"
G = "def g(x): return x + 1"


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({}, True),
        ({"source": f"# a comment\n\n{F}; {G}".replace("; ", "\n")}, True),
        ({"source": f"{F}\n{G}.0"}, False),
        ({"source": f"{F} + 0\n{G}"}, False),
        ({"GAIN": 3}, False),
        ({"GAIN": 2.0}, False),
        ({"GAIN": np.ones(3)}, False),
        ({"other": 5}, True),  # f does not name it
    ],
)
def test_a_description_is_another_if_what_is_computed_may_be(changed: dict[str, Any], same: bool) -> None:
    given = {"source": f"{F}\n{G}", "GAIN": 2, **changed}
    assert (described_of(**given) == described_of(f"{F}\n{G}", GAIN=2)) == same


def test_a_description_follows_arrays_tuples_named_tuples_enums_defaults_and_closures() -> None:
    source = "def f(x): return VALUE"
    values = [
        np.zeros(2),
        np.zeros(3),
        np.ones(2),
        np.ones(2, np.float32),
        (1, 2),
        (1, (2,)),
        Place,
        Gear,
        Gear.LOW,
        0.5,
    ]
    assert len({described_of(source, VALUE=value) for value in values}) == len(values)
    assert described_of(source, VALUE=np.ones(3)) == described_of(source, VALUE=np.ones(3))
    assert described_of("def f(x, y=1): return y") != described_of("def f(x, y=2): return y")
    assert described(adding(1.0)) != described(adding(2.0))
    one, two = adding(1.0), adding(2.0)
    assert described_of("def f(x): return VALUE(x)", VALUE=one) != described_of("def f(x): return VALUE(x)", VALUE=two)


def test_a_description_tells_functions_of_one_name_apart_also_when_they_come_again() -> None:
    source = "def f(x): return A(B(C(x)))"
    one, two = adding(1.0), adding(2.0)
    assert described_of(source, A=one, B=two, C=one) != described_of(source, A=one, B=two, C=two)
    endless = "def f(x): return g(x)\ndef g(x): return f(x)"
    assert described_of(endless) == described_of(endless)


def test_a_description_follows_modules_in_modules_compiled_helpers_and_their_options() -> None:
    inner, outer = ModuleType("inner"), ModuleType("outer")
    vars(outer)["inner"], vars(inner)["GAIN"] = inner, 1.0
    source = "def f(x): return x * outer.inner.GAIN"
    before = described_of(source, outer=outer)
    vars(inner)["GAIN"] = 2.0
    assert described_of(source, outer=outer) != before
    made = [njit(adding(1.0)), njit(adding(2.0)), njit(fastmath=True)(adding(1.0))]
    made += [vectorize(adding(1.0)), vectorize(adding(2.0))]
    assert len({described_of("def f(x): return VALUE(x)", VALUE=value) for value in made}) == 5
    pairs = [namedtuple("Pair", names)(1.0, 2.0) for names in ("a b", "b a")]
    assert described_of("def f(x): return VALUE.a", VALUE=pairs[0]) != described_of(
        "def f(x): return VALUE.a", VALUE=pairs[1]
    )


def test_what_is_in_other_packages_is_described_alike_in_every_process() -> None:
    source = "def f(x): return operator.add(x, math.sin(x))"
    assert described_of(source, math=math, operator=operator) == described_of(source, math=math, operator=operator)
    assert described_of("def f(x): return g(x)", g=operator.add) != described_of(
        "def f(x): return g(x)", g=operator.sub
    )


@pytest.mark.parametrize("make", [object, lambda: {"part": object()}, lambda: np.random.default_rng(0)])
def test_an_object_that_only_shares_the_name_of_an_attribute_is_described_alike_in_every_process(make: Any) -> None:
    source = "def f(c): return c.state"
    one, other = make(), make()  # at two addresses, as in two processes
    assert described_of(source, state=one) == described_of(source, state=other)


def test_sets_are_described_alike_in_any_order() -> None:
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    source = "def f(x): return x in CHOICES"
    assert described_of(source, CHOICES=one) == described_of(source, CHOICES=other)
    assert described_of(source, CHOICES=one) != described_of(source, CHOICES=frozenset([0, 9]))
