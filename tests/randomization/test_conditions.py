"""Conditions: when a parameter has an effect, and how they say what it needs."""

from __future__ import annotations

import pytest

from gym_dr.randomization.conditions import Condition, Exceeds, Lacking, NotZero, On, Range

RANGES = {"own": (1.0, 3.0), "zero": (0.0, 0.0), "some": (0.0, 0.5), "two": (2.0, 2.0), "five": (5.0, 9.0)}


def ranges(name: str) -> Range:
    return RANGES[name]


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (On("zero"), False),
        (On("some"), True),
        (NotZero(("zero",)), False),
        (NotZero(("zero", "some")), True),
        (Exceeds(("two",)), True),  # 3 is above 2
        (Exceeds(("five",)), False),  # 3 is below 5
        (Exceeds(("five", "two")), True),  # one of them is enough
        (Lacking("a joint"), False),
    ],
)
def test_a_condition_is_met_if_some_values_in_the_ranges_meet_it(condition: Condition, met: bool) -> None:
    assert condition.met("own", ranges) == met


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (On("windy"), "windy = 1"),
        (NotZero(("density", "viscosity")), "density or viscosity other than 0"),
        (NotZero(("a:1", "a:2"), "an a"), "an a other than 0"),
        (Exceeds(("low",)), "a value above low"),
        (Exceeds(("a", "b", "c", "d")), "a value above a or one of 3 others"),
        (Lacking("a joint that moves it"), "a joint that moves it, which is not in this model"),
    ],
)
def test_a_condition_says_what_a_parameter_needs(condition: Condition, text: str) -> None:
    assert condition.text == text


@pytest.mark.parametrize(("own", "met"), [((3.0, 3.0), True), ((1.0, 3.0), False), ((1.0, 4.0), True)])
def test_a_value_may_be_said_to_equal_the_one_that_it_has_to_exceed(own: Range, met: bool) -> None:
    assert Exceeds(("three",)).met("own", {"own": own, "three": (3.0, 3.0)}.__getitem__) == met
