"""Randomizations as values: every form that users write, and correlations."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re
import tomllib
from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from hypothesis import given
from hypothesis import strategies as st

import gym_dr
from gym_dr import (
    Add,
    Choice,
    Constant,
    Correlation,
    Mixture,
    Normal,
    Param,
    ParamSpace,
    Randomization,
    Scale,
    Uniform,
)
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.spec import Rule
from gym_dr.testing.playing import assert_same
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
        (3, Rule(Constant(3))),
        (True, Rule(Constant(1))),
        (np.float32(0.5), Rule(Constant(0.5))),
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
        ((), "got ()"),
        (1j, "got 1j"),
        (np.ma.masked, "got None"),
        (Uniform, "expected a distribution"),
        ((2, 1), "expected low < high, got low=2.0 and high=1.0"),
        (10**400, "expected a number for value"),
        ({}, "Expected a 'distribution' field"),
        ("uniform:2:1", "expected low < high"),
    ],
)
def test_impossible_rules_are_refused_with_the_parameters_name(written: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=f"^Parameter 'mass': .*{re.escape(message)}"):
        Randomization({"mass": written})


@pytest.mark.parametrize("rules", [[("mass", 1)], 5, "mass=1", {"mass"}])
def test_rules_that_are_no_mapping_are_refused(rules: Any) -> None:
    with pytest.raises(RandomizationError, match="Expected a mapping of parameter names to distributions, got"):
        Randomization(rules)


@pytest.mark.parametrize("name", [3, "correlation"])  # under which files keep the correlation
def test_names_that_are_no_text_or_reserved_are_refused(name: Any) -> None:
    with pytest.raises(RandomizationError, match=f"Expected parameter names.*got {name!r}"):
        Randomization({name: Uniform(0, 1)})


def test_an_unknown_distribution_names_its_parameter() -> None:
    with pytest.raises(UnknownNameError, match=r"Parameter 'a': Unknown distribution 'unifrm'.*'uniform'"):
        Randomization({"a": "unifrm:0:1"})


# a randomization as a value


def test_a_randomization_is_a_mapping_sorted_by_name_and_a_value() -> None:
    one, other = Randomization({"mass": 3, "gravity": -5}), Randomization({"gravity": -5, "mass": 3})
    assert (list(one), len(one), "mass" in one) == (["gravity", "mass"], 2, True)
    assert (one, hash(one), repr(one)) == (other, hash(other), repr(other))
    with pytest.raises(KeyError):
        one["wind"]


def test_a_correlation_and_an_operation_make_a_difference() -> None:
    rules = {"a": (0, 1), "b": (0, 1)}
    assert Randomization(rules) != Randomization(rules, correlation=Correlation(("a", "b"), HALF))
    assert Randomization({"a": (0, 1)}) != Randomization({"a": Scale((0, 1))})


@few
@given(randomizations(SPACE))
def test_files_text_and_pickles_give_an_equal_randomization_back(randomization: Randomization) -> None:
    form = randomization.to_dict()
    for again in (
        Randomization.from_dict(json.loads(json.dumps(form, allow_nan=False))),
        Randomization.from_dict(tomllib.loads(toml_text(form))),
        Randomization.from_dict(randomization),
        Randomization.from_dict(json.loads(json.dumps(dataclasses.asdict(randomization)))),
        eval(repr(randomization), EVAL.copy()),
        pickle.loads(pickle.dumps(randomization)),
    ):
        assert (again, hash(again)) == (randomization, hash(randomization))


@pytest.mark.parametrize("mode", [None, "sync"])
def test_a_spec_of_gymnasium_keeps_the_kind_of_every_rule(mode: str | None) -> None:
    rules = {
        "gravity": Uniform(-4, -3),
        "main_engine_power": Scale(Normal(1, 0.1, low=0.8, high=1.2)),
        "side_engine_power": Mixture((Uniform(0.5, 0.6), Choice((0.7, 0.8)))),
        "initial_random": Add((0, 10)),
    }
    link = {"names": ["gravity", "main_engine_power"], "matrix": [[1, 0.5], [0.5, 1]]}
    for randomization in (rules, Randomization(rules, correlation=link)):
        make: Any = gym.make if mode is None else partial(gym.make_vec, num_envs=2, vectorization_mode=mode)
        env = make("gym_dr/LunarLanderDR-v3", randomization=randomization)
        spec = EnvSpec.from_json(env.spec.to_json())
        again: Any = gym.make(spec) if mode is None else gym.make_vec(spec)
        assert_same(again.reset(seed=1), env.reset(seed=1))


@few
@given(st.dictionaries(names.filter(lambda name: name != "correlation"), distributions(), max_size=3))
def test_toml_keeps_any_parameter_name(rules: Mapping[str, Any]) -> None:
    randomization = Randomization(rules)
    assert Randomization.from_dict(tomllib.loads(toml_text(randomization.to_dict()))) == randomization


# correlations


@few
@given(correlations(["a", "b", "c", "d"]))
def test_the_cholesky_factor_times_its_transpose_is_the_matrix(correlation: Correlation) -> None:
    factor = correlation.cholesky
    np.testing.assert_allclose(factor @ factor.T, correlation.matrix, atol=1e-9)


def test_correlations_compare_by_value_also_through_a_pickle() -> None:
    one, other = Correlation(("a", "b"), HALF), Correlation(["a", "b"], np.array(HALF))  # type: ignore[arg-type]
    one.cholesky  # noqa: B018  it is kept once it was asked for
    for again in (other, pickle.loads(pickle.dumps(one))):
        assert (again, hash(again)) == (one, hash(one))


@pytest.mark.parametrize(
    ("names", "matrix", "message"),
    [
        (("a", "b"), ((1.0,),), "expected a 2 x 2 matrix for ('a', 'b'), got shape (1, 1)"),
        (("a",), 1.0, "got shape ()"),
        ("ab", HALF, "expected a 2 x 2 matrix"),
        (("a", "a"), HALF, "expected each name once, got ('a', 'a')"),
        (("a", "b"), ((1, 0.5), (0.4, 1)), "expected a symmetric matrix of finite numbers with ones on the diagonal"),
        (("a", "b"), ((2, 0.5), (0.5, 1)), "with ones on the diagonal, got [[2.0, 0.5], [0.5, 1.0]]"),
        (("a", "b"), ((1, math.nan), (math.nan, 1)), "finite numbers"),
        (("a", "b"), ((1, 1.5), (1.5, 1)), "expected a positive definite matrix"),
        (("a", "b"), ((1, 1), (1, 1)), "Move the correlations closer to 0"),
        # a with b and b with c nearly equal, a with c opposed: no three numbers are so
        (("a", "b", "c"), ((1, 0.9, -0.9), (0.9, 1, 0.9), (-0.9, 0.9, 1)), "smallest eigenvalue -0.8"),
        (("a", "b"), ((1, "x"), ("x", 1)), "expected names and a matrix of numbers"),
        (("a", "b"), ((1, "0.5"), ("0.5", 1)), "expected names and a matrix of numbers"),
        (("a", "b"), np.array(HALF) + 0.1j, "expected names and a matrix of numbers"),
        (None, HALF, "expected names and a matrix of numbers"),
    ],
)
def test_impossible_correlations_are_refused(names: Any, matrix: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=f"^Correlation: (?=expected ).*{re.escape(message)}"):
        Correlation(names, matrix)


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
    with pytest.raises(RandomizationError, match=re.escape(message)):
        Randomization({"a": (0, 1), "b": (0, 1)}, correlation=correlation)


def test_a_correlation_of_a_parameter_that_does_not_vary_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"it must be randomized.*'gravty'.*Did you mean 'gravity'"):
        Randomization({"gravity": (-5, -4), "mass": (3, 4)}, correlation=Correlation(("gravty", "mass"), HALF))
