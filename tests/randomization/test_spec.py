"""Randomizations as values: every form that users write, and correlations."""

from __future__ import annotations

import json
import math
import pickle
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gym_dr
from gym_dr import Add, Constant, Correlation, Param, ParamSpace, Randomization, Scale, Uniform
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.rules import Rule
from tests.strategies import correlations, distributions, few, names, randomizations
from tests.toml_text import toml_text

SPACE = ParamSpace(
    "Lander",
    [
        Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0, unit="m/s^2"),
        Param(name="wind", nominal=0, low=0, high=1, kind="bool"),
        Param(name="legs", nominal=2, low=1, high=8, kind="int"),
        Param(name="mass", nominal=5.0, low=1.0, high=20.0, unit="kg"),
        Param(name="bias", nominal=0.0, low=-1.0, high=1.0),
    ],
)
EVAL = {**vars(gym_dr), "Rule": Rule}
HALF = ((1.0, 0.5), (0.5, 1.0))


# the forms that users write


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (Uniform(0, 1), Rule(Uniform(0, 1))),
        (Scale((0.5, 2)), Rule(Uniform(0.5, 2), "scale")),
        (Add(3), Rule(Constant(3), "add")),
        ((0, 1), Rule(Uniform(0, 1))),
        ([0, 1], Rule(Uniform(0, 1))),
        (3, Rule(Constant(3))),
        (-9.8, Rule(Constant(-9.8))),
        (True, Rule(Constant(1))),
        (np.float32(0.5), Rule(Constant(0.5))),
        (np.int64(4), Rule(Constant(4))),
        (np.bool_(False), Rule(Constant(0))),
        ("uniform:0:1", Rule(Uniform(0, 1))),
        ("3", Rule(Constant(3))),
        ({"distribution": "uniform", "low": 0, "high": 1}, Rule(Uniform(0, 1))),
        ({"operation": "add", "distribution": "constant", "value": 2}, Rule(Constant(2), "add")),
    ],
)
def test_every_form_of_a_rule_is_read(written: Any, meant: Rule) -> None:
    assert Randomization({"mass": written})["mass"] == meant


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (None, "expected a distribution, Scale(...), Add(...), a pair (low, high), a number"),
        ((1, 2, 3), "got (1, 2, 3)"),
        ((), "got ()"),
        (1j, "got 1j"),
        (np.complex128(1), "expected a distribution"),
        (Uniform, "expected a distribution"),
        ((2, 1), "expected low < high, got low=2.0 and high=1.0"),
        (("1", "2"), "expected a number for low, got '1'"),
        (math.nan, "expected a number for value, got nan"),
        (10**400, "expected a finite value, got inf"),
        ({}, "Expected a 'distribution' field"),
        ("uniform:2:1", "expected low < high"),
    ],
)
def test_impossible_rules_are_refused_with_the_parameters_name(written: Any, message: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        Randomization({"mass": written})
    assert str(refused.value).startswith("Parameter 'mass': ")
    assert message in str(refused.value)


@pytest.mark.parametrize("rules", [[("mass", 1)], 5, "mass=1", {"mass"}])
def test_rules_that_are_no_mapping_are_refused(rules: Any) -> None:
    with pytest.raises(RandomizationError, match="Expected a mapping of parameter names to distributions, got"):
        Randomization(rules)


def test_names_that_are_no_text_are_refused() -> None:
    with pytest.raises(RandomizationError, match="Expected parameter names, got 3"):
        Randomization({3: Uniform(0, 1)})  # type: ignore[dict-item]


def test_a_parameter_cannot_have_the_name_under_which_files_keep_the_correlation() -> None:
    with pytest.raises(RandomizationError, match="got 'correlation'"):
        Randomization({"correlation": Uniform(0, 1)})


def test_an_unknown_distribution_names_its_parameter() -> None:
    with pytest.raises(UnknownNameError, match=r"Parameter 'a': Unknown distribution 'unifrm'.*'uniform'"):
        Randomization({"a": "unifrm:0:1"})


# a randomization as a value


def test_a_randomization_is_a_mapping_sorted_by_name() -> None:
    randomization = Randomization({"mass": 3, "gravity": -5})
    assert (list(randomization), len(randomization), "mass" in randomization) == (["gravity", "mass"], 2, True)


def test_the_order_in_which_rules_are_written_does_not_matter() -> None:
    one, other = Randomization({"a": 1, "b": 2}), Randomization({"b": 2, "a": 1})
    assert (one, hash(one), repr(one)) == (other, hash(other), repr(other))


def test_a_correlation_makes_a_difference() -> None:
    rules = {"a": (0, 1), "b": (0, 1)}
    assert Randomization(rules) != Randomization(rules, correlation=Correlation(("a", "b"), HALF))


def test_an_operation_makes_a_difference() -> None:
    assert Randomization({"a": (0, 1)}) != Randomization({"a": Scale((0, 1))})


def test_a_missing_name_is_a_key_error_as_in_every_mapping() -> None:
    with pytest.raises(KeyError):
        Randomization({"a": 1})["b"]


@few
@given(randomizations(SPACE))
def test_json_gives_an_equal_randomization_back(randomization: Randomization) -> None:
    text = json.dumps(randomization.to_dict(), allow_nan=False)
    assert Randomization.from_dict(json.loads(text)) == randomization


@few
@given(randomizations(SPACE))
def test_toml_gives_an_equal_randomization_back(randomization: Randomization) -> None:
    assert Randomization.from_dict(tomllib.loads(toml_text(randomization.to_dict()))) == randomization


@few
@given(st.dictionaries(names.filter(lambda name: name != "correlation"), distributions(), max_size=3))
def test_toml_keeps_any_parameter_name(rules: Mapping[str, Any]) -> None:
    randomization = Randomization(rules)
    assert Randomization.from_dict(tomllib.loads(toml_text(randomization.to_dict()))) == randomization


@few
@given(randomizations(SPACE))
def test_repr_is_the_expression_that_makes_it(randomization: Randomization) -> None:
    assert eval(repr(randomization), EVAL.copy()) == randomization


@few
@given(randomizations(SPACE))
def test_pickle_gives_an_equal_randomization_back_with_the_same_hash(randomization: Randomization) -> None:
    again = pickle.loads(pickle.dumps(randomization))
    assert (again, hash(again)) == (randomization, hash(randomization))


# correlations


@few
@given(correlations(["a", "b", "c", "d"]))
def test_the_cholesky_factor_times_its_transpose_is_the_matrix(correlation: Correlation) -> None:
    factor = correlation.cholesky
    np.testing.assert_allclose(factor @ factor.T, correlation.matrix, atol=1e-9)


def test_correlations_compare_by_value() -> None:
    one, other = Correlation(("a", "b"), HALF), Correlation(["a", "b"], np.array(HALF))  # type: ignore[arg-type]
    assert (one, hash(one)) == (other, hash(other))


def test_pickle_gives_an_equal_correlation_back() -> None:
    correlation = Correlation(("a", "b"), HALF)
    correlation.cholesky  # noqa: B018  it is kept once it was asked for
    assert pickle.loads(pickle.dumps(correlation)) == correlation


@pytest.mark.parametrize(
    ("names", "matrix", "message"),
    [
        (("a", "b"), ((1.0,),), "expected a 2 x 2 matrix for ('a', 'b'), got shape (1, 1)"),
        (("a", "b"), (1.0, 1.0), "got shape (2,)"),
        (("a",), 1.0, "got shape ()"),
        ((), (), "expected a 0 x 0 matrix"),
        ("ab", HALF, "expected a 2 x 2 matrix"),
        (("a", "a"), HALF, "expected each name once, got ('a', 'a')"),
        (("a", "b"), ((1, 0.5), (0.4, 1)), "expected a symmetric matrix of finite numbers with ones on the diagonal"),
        (("a", "b"), ((2, 0.5), (0.5, 1)), "with ones on the diagonal, got [[2.0, 0.5], [0.5, 1.0]]"),
        (("a", "b"), ((1, math.nan), (math.nan, 1)), "finite numbers"),
        (("a", "b"), ((1, math.inf), (math.inf, 1)), "finite numbers"),
        (("a", "b"), ((1, 1.5), (1.5, 1)), "expected a positive definite matrix"),
        (("a", "b"), ((1, 1), (1, 1)), "Move the correlations closer to 0"),
        # a with b and b with c nearly equal, a with c opposed: no three numbers are so
        (("a", "b", "c"), ((1, 0.9, -0.9), (0.9, 1, 0.9), (-0.9, 0.9, 1)), "smallest eigenvalue -0.8"),
        (("a", "b"), ((1, "x"), ("x", 1)), "expected names and a matrix of numbers"),
        (("a", "b"), ((1, 2), (3,)), "expected names and a matrix of numbers"),
        (("a", "b"), ((1, 10**400), (10**400, 1)), "expected names and a matrix of numbers"),
        (None, HALF, "expected names and a matrix of numbers"),
    ],
)
def test_impossible_correlations_are_refused(names: Any, matrix: Any, message: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        Correlation(names, matrix)
    assert str(refused.value).startswith("Correlation: expected ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("correlation", "message"),
    [
        ({"names": ["a", "b"]}, "expected the fields names and matrix, got ['names']"),
        ({"names": ["a", "b"], 0: HALF}, "got ['0', 'names']"),  # from Python
        ({"names": ["a", "b"], "matrix": HALF, "kind": 1}, "got ['kind', 'matrix', 'names']"),
        (0.5, "Expected a Correlation or a table with names and matrix, got 0.5"),
    ],
)
def test_what_is_no_correlation_is_refused(correlation: Any, message: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        Randomization({"a": (0, 1), "b": (0, 1)}, correlation=correlation)
    assert message in str(refused.value)


def test_a_correlation_of_a_parameter_that_does_not_vary_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"it must be randomized.*'gravty'.*Did you mean 'gravity'"):
        Randomization({"gravity": (-5, -4), "mass": (3, 4)}, correlation=Correlation(("gravty", "mass"), HALF))
