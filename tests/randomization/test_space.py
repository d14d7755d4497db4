"""Parameter spaces: what a parameter may be, and which values are let through."""

from __future__ import annotations

import math
import pickle
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from gym_dr import Add, Bernoulli, Choice, Constant, Integer, Mixture, Normal, Randomization, Scale, Uniform
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import RandomizationError, RandomizationWarning, UnknownNameError
from gym_dr.randomization.space import Param, ParamSpace
from tests.strategies import few, randomizations

GRAVITY = Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0, unit="m/s^2")
WIND = Param(name="wind", nominal=0, low=0, high=1, kind="bool")
LEGS = Param(name="legs", nominal=2, low=1, high=8, kind="int")
DRAG = Param(name="drag", nominal=1.0, low=0.0, high=math.inf)
SPACE = ParamSpace("Lander", [GRAVITY, WIND, LEGS, DRAG])


# parameters


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nominal": 0.1}, "expected a value from -12 to 0 m/s^2, got 0.1"),
        ({"nominal": math.nan}, "expected a finite nominal value and low < high, got nominal=nan"),
        ({"low": 0.0, "nominal": 0.0}, "low < high, got nominal=0.0, low=0.0, high=0.0"),
        ({"high": math.nan}, "low < high"),
        ({"nominal": "-10"}, "got nominal='-10'"),
        ({"low": None}, "low=None"),
        ({"kind": "int", "nominal": -9.5}, "expected a whole number from -12 to 0 m/s^2, got -9.5"),
        ({"kind": "bool"}, "expected low=0 and high=1 for kind 'bool', got low=-12.0, high=0.0"),
    ],
)
def test_impossible_parameters_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"name": "gravity", "nominal": -10.0, "low": -12.0, "high": 0.0, "unit": "m/s^2"}
    with pytest.raises(RandomizationError, match=rf"Parameter 'gravity'.*{re.escape(message)}"):
        Param(**{**good, **change})


@pytest.mark.parametrize("name", ["return", "correlation"])
def test_a_parameter_has_no_name_of_a_column_or_of_an_entry_beside_it(name: str) -> None:
    with pytest.raises(RandomizationError, match=f"Parameter '{name}': this name is reserved"):
        Param(name=name, nominal=0.0, low=-1.0, high=1.0)


def test_an_unknown_kind_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown kind of parameter 'boole'\. Did you mean 'bool'\?"):
        Param(name="wind", nominal=0, low=0, high=1, kind="boole")


@pytest.mark.parametrize(
    ("param", "value"),
    [
        (GRAVITY, -12.0),
        (GRAVITY, np.float32(-0.5)),
        (GRAVITY, [-1.0, -2.0]),
        (WIND, True),
        (LEGS, np.int32(8)),
        (DRAG, 1e300),
    ],
)
def test_possible_values_come_back_as_float64(param: Param, value: Any) -> None:
    checked = param.check(value)
    assert checked.dtype == np.float64
    np.testing.assert_array_equal(checked, np.asarray(value, dtype=np.float64))


@pytest.mark.parametrize(
    ("param", "value", "message"),
    [
        (GRAVITY, -12.000001, "expected a value from -12 to 0 m/s^2, got -12.000001"),
        (GRAVITY, [-1.0, 3.0, -2.0], "got 3.0"),
        (GRAVITY, [-1.0, math.nan], "got nan"),
        (GRAVITY, None, "expected numbers, got None"),
        (GRAVITY, np.complex128(-5 + 3j), "expected numbers"),
        (GRAVITY, np.array([-5.0, -6 + 3j]), "expected numbers"),
        (GRAVITY, np.array([-5.0, "-6"], dtype=object), "expected numbers"),
        (GRAVITY, np.ma.array([-5.0, -6.0], mask=[True, False]), "expected numbers"),  # type: ignore[no-untyped-call]
        (GRAVITY, np.timedelta64(-5, "s"), "expected numbers"),
        (GRAVITY, [-1.0, "-5"], "expected numbers, got [-1.0, '-5']"),
        (GRAVITY, b"-5", "expected numbers"),
        (GRAVITY, 1j, "expected numbers, got 1j"),
        (GRAVITY, {}, "expected numbers, got {}"),
        (GRAVITY, 10**400, "expected numbers, got 1000"),
        (GRAVITY, [[-1.0], [-1.0, -2.0]], "expected numbers"),
        (WIND, 0.5, "expected 0 or 1, got 0.5"),
        (LEGS, 2.5, "expected a whole number from 1 to 8, got 2.5"),
        (DRAG, math.inf, "expected a finite value from 0 to inf, got inf"),
    ],
)
def test_impossible_values_are_refused(param: Param, value: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=f"Parameter {param.name!r}: .*{re.escape(message)}"):
        param.check(value)


# spaces


def test_a_space_is_a_mapping_of_names_to_parameters_in_their_order_with_nominal_values_as_floats() -> None:
    assert list(SPACE) == ["gravity", "wind", "legs", "drag"]
    assert (SPACE["legs"], "legs" in SPACE, "arms" in SPACE, len(SPACE)) == (LEGS, True, False, 4)
    assert SPACE.nominal == {"gravity": -10.0, "wind": 0.0, "legs": 2.0, "drag": 1.0}
    assert {type(value) for value in SPACE.nominal.values()} == {float}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([GRAVITY, Param(name="x", nominal=0.0, low=0.0, high=1.0, needs=("windy",))], "as needs, got 'windy'"),
        ([GRAVITY, WIND, GRAVITY], "two parameters have the same name"),
    ],
)
def test_an_impossible_space_is_refused(params: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=message):
        ParamSpace("Lander", params)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gravty", r"of Lander: 'gravty'\. Did you mean 'gravity'"),
        ("xyz", "Known: drag, gravity"),
        (["gravity"], "gravity"),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest_known_or_the_list(name: Any, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        SPACE[name]


def test_pickle_gives_an_equal_space_back() -> None:
    again = pickle.loads(pickle.dumps(SPACE))
    assert (again, again.name, again.nominal) == (SPACE, SPACE.name, SPACE.nominal)


# values of one environment


@pytest.mark.parametrize("value", [-3.7, np.float64(-3.7), np.array(-3.7)])
def test_checked_values_are_plain_floats(value: Any) -> None:
    checked = SPACE.check({"gravity": value})
    assert checked == {"gravity": -3.7}
    assert type(checked["gravity"]) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gravity": -3.0, "wind": 0.5}, "Parameter 'wind': expected 0 or 1, got 0.5"),
        ({"gravity": [-3.0, -4.0]}, "expected one number, got shape (2,)"),
        ({"drag": math.inf}, "got inf"),
        (5, "Expected a mapping of parameter names to values, got 5"),
        ({"gravty": -3.0}, "Did you mean 'gravity'"),
    ],
)
def test_impossible_values_of_one_environment_are_refused(values: Any, message: str) -> None:
    with pytest.raises((RandomizationError, UnknownNameError), match=re.escape(message)):
        SPACE.check(values)


# values of a vector environment


def test_one_number_is_for_all_sub_environments_and_arrays_are_copied() -> None:
    np.testing.assert_array_equal(SPACE.check_vector({"legs": 3}, 4)["legs"], [3.0, 3.0, 3.0, 3.0])
    given_values = np.array([-1.0, -2.0])
    checked = SPACE.check_vector({"gravity": given_values}, 2)["gravity"]
    given_values[0] = -9.0
    np.testing.assert_array_equal(checked, [-1.0, -2.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gravity": [-1.0, -2.0, -3.0]}, "expected one number or shape (2,), got shape (3,)"),
        ({"gravity": [[-1.0, -2.0]]}, "got shape (1, 2)"),
        ({"gravity": [-1.0, 3.0]}, "expected a value from -12 to 0 m/s^2, got 3.0"),
        (None, "Expected a mapping"),
    ],
)
def test_impossible_values_of_a_vector_environment_are_refused(values: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=re.escape(message)):
        SPACE.check_vector(values, 2)


# randomizations of a space

FINITE = ParamSpace(
    "Lander",
    [
        Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0, unit="m/s^2"),
        Param(name="wind", nominal=0, low=0, high=1, kind="bool"),
        Param(name="legs", nominal=2, low=1, high=8, kind="int"),
        Param(name="mass", nominal=5.0, low=1.0, high=20.0, unit="kg"),
        Param(name="bias", nominal=0.0, low=-1.0, high=1.0),
    ],
)


def check_silently(rules: Mapping[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomizationWarning)
        FINITE.check_randomization(Randomization(rules))


@few
@given(randomizations(FINITE))
def test_randomizations_inside_the_bounds_are_valid(randomization: Randomization) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomizationWarning)
        FINITE.check_randomization(randomization)


def test_a_rule_of_an_unknown_parameter_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match=r"of LunarLander: 'gravty'\. Did you mean 'gravity'"):
        LUNAR_LANDER.check_randomization(Randomization({"gravty": (-11, -5)}))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"gravity": (-13, -5)}, "expected a value from -12 to 0 m/s^2, got Uniform(-13.0, -5.0), which reaches"),
        ({"gravity": 1}, "which reaches from 1 to 1."),
        ({"gravity": Normal(-10, 1, low=-12)}, "from -12 to inf. Give the distribution bounds (low"),
        ({"gravity": Scale((0.5, 1.5))}, "Scale(Uniform(0.5, 1.5)), which reaches from -15 to -5."),
        ({"gravity": Add((-3, 1))}, "Add(Uniform(-3.0, 1.0)), which reaches from -13 to -9."),
        ({"gravity": Mixture((Constant(-5), Constant(3)))}, "reaches from -5 to 3."),
        ({"wind": (0, 1)}, "expected 0 or 1, got Uniform(0.0, 1.0). Use Bernoulli, Integer, Choice or Constant"),
        ({"wind": Choice((0, 0.5))}, "expected 0 or 1"),
        ({"legs": 2.5}, "expected a whole number from 1 to 8, got Constant(2.5)"),
        ({"legs": Scale(Choice((1, 2)))}, "Scale(Choice((1.0, 2.0)))"),
        ({"legs": Add(Choice((0, 0.5)))}, "Add(Choice((0.0, 0.5)))"),
        ({"legs": Integer(1, 9)}, "reaches from 1 to 9."),
    ],
)
def test_rules_that_can_leave_the_bounds_or_the_kind_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(RandomizationError, match=f"Parameter {next(iter(rules))!r}: .*{re.escape(message)}"):
        check_silently(rules)


def test_one_bad_rule_among_good_ones_is_found() -> None:
    with pytest.raises(RandomizationError, match="Parameter 'mass'"):
        check_silently({"bias": (-1, 1), "gravity": (-11, -9), "mass": (0, 6), "wind": Bernoulli(0.5)})


def test_an_unbounded_normal_is_valid_for_an_unbounded_parameter() -> None:
    space = ParamSpace("Free", [Param(name="shift", nominal=0.0, low=-math.inf, high=math.inf)])
    space.check_randomization(Randomization({"shift": Normal(0, 1)}))


def test_a_scale_that_lands_on_a_bound_but_for_rounding_is_accepted() -> None:
    # 0.1 x 3 is 0.30000000000000004
    space = ParamSpace("s", [Param(name="a", nominal=0.1, low=0.0, high=0.3)])
    space.check_randomization(Randomization({"a": Scale((0.5, 3.0))}))
    with pytest.raises(RandomizationError, match="reaches from"):
        space.check_randomization(Randomization({"a": Scale((0.5, 3.01))}))


@pytest.mark.parametrize("rule", [Uniform(1e-10, 1e-9), Scale((0.1, 1.0)), Add((-9e-10, 0.0))])
def test_a_range_below_a_small_lower_bound_is_refused_however_large_the_upper_bound_is(rule: Any) -> None:
    space = ParamSpace("light", [Param(name="mass", nominal=1e-9, low=5e-10, high=1e5)])
    with pytest.raises(RandomizationError, match="mass"):
        space.check_randomization(Randomization({"mass": rule}))


def test_a_parameter_without_an_upper_bound_keeps_its_lower_one() -> None:
    space = ParamSpace("noise", [Param(name="noise", nominal=0.0, low=0.0, high=math.inf)])
    with pytest.raises(RandomizationError, match="noise"):
        space.check_randomization(Randomization({"noise": (-0.1, 0.1)}))
    space.check_randomization(Randomization({"noise": (0.0, 0.1)}))


def test_a_name_that_gymnasium_takes_for_a_mask_is_refused() -> None:
    with pytest.raises(RandomizationError, match="'_mass'"):
        Param(name="_mass", nominal=1.0, low=0.0, high=2.0)
