"""Randomizations: every form that users write, files, the command line, correlations, checks against a space."""

from __future__ import annotations

import json
import math
import pickle
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gym_dr
from gym_dr import (
    Add,
    Bernoulli,
    Choice,
    Constant,
    Correlation,
    Integer,
    LogUniform,
    Mixture,
    Normal,
    Param,
    ParamSpace,
    Randomization,
    Scale,
    Uniform,
)
from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import ConfigError, GymDrError, RandomizationError, RandomizationWarning, UnknownNameError
from gym_dr.randomization.spec import Rule, as_rule, parse_rule, read_table, tomllib
from tests.strategies import correlations, distributions, few, names, probabilities, randomizations, rules
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


# rules


def test_an_absolute_rule_gives_the_draw_itself() -> None:
    np.testing.assert_array_equal(Rule(Uniform(0, 1)).apply(5.0, [0.25, 0.5]), [0.25, 0.5])


def test_scale_multiplies_the_nominal_value() -> None:
    np.testing.assert_array_equal(Scale((0.5, 2)).apply(-10.0, [0.5, 1.0, 2.0]), [-5.0, -10.0, -20.0])


def test_add_adds_to_the_nominal_value() -> None:
    np.testing.assert_array_equal(Add((-1, 2)).apply(-10.0, [-1.0, 0.0, 2.0]), [-11.0, -10.0, -8.0])


@pytest.mark.parametrize(
    ("rule", "nominal", "support"),
    [
        (Rule(Uniform(1, 3)), 5.0, (1.0, 3.0)),
        (Scale((1, 3)), 5.0, (5.0, 15.0)),
        (Scale((1, 3)), -5.0, (-15.0, -5.0)),
        (Scale((1, 3)), 0.0, (0.0, 0.0)),
        (Scale(Normal(1, 1)), 0.0, (0.0, 0.0)),  # 0 x infinity is 0 here
        (Scale(Normal(1, 1)), -2.0, (-math.inf, math.inf)),
        (Add((-1, 3)), 5.0, (4.0, 8.0)),
        (Add(Normal(0, 1, low=-1)), 5.0, (4.0, math.inf)),
    ],
)
def test_the_support_of_a_rule(rule: Rule, nominal: float, support: tuple[float, float]) -> None:
    assert rule.support(nominal) == support


@few
@given(rules(SPACE["gravity"]), probabilities)
def test_the_values_of_a_rule_are_inside_its_support(rule: Rule, u: float) -> None:
    low, high = rule.support(-10.0)
    assert low <= float(rule.apply(-10.0, rule.distribution.ppf(u))) <= high


@pytest.mark.parametrize(
    "make", [lambda: Scale(Add((0, 1))), lambda: Add(Scale((0, 1))), lambda: Rule(Scale(2), "add")]
)
def test_an_operation_inside_of_another_is_refused(make: Callable[[], Rule]) -> None:
    with pytest.raises(RandomizationError, match="expected a distribution inside of Scale, Add or Rule, got"):
        make()


def test_an_unknown_operation_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown operation 'scal'\. Did you mean 'scale'\?"):
        Rule(Uniform(0, 1), "scal")


@few
@given(distributions().flatmap(lambda d: st.sampled_from([Rule(d), Scale(d), Add(d)])))
def test_repr_of_a_rule_is_an_expression_that_makes_it(rule: Rule) -> None:
    assert as_rule(eval(repr(rule), EVAL.copy())) == rule


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
    with pytest.raises(RandomizationError, match="got 'correlation', which is a keyword"):
        Randomization({"correlation": Uniform(0, 1)})


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


# the command line


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("uniform:-12:-2", Rule(Uniform(-12, -2))),
        ("loguniform:0.1:10", Rule(LogUniform(0.1, 10))),
        ("normal:-10:1", Rule(Normal(-10, 1))),
        ("normal:-10:1:-12", Rule(Normal(-10, 1, low=-12))),
        ("normal:-10:1:-12:-8", Rule(Normal(-10, 1, low=-12, high=-8))),
        ("normal:-10:1:-inf:-8:truncate", Rule(Normal(-10, 1, high=-8, method="truncate"))),
        ("integer:1:6", Rule(Integer(1, 6))),
        ("choice:1,2,3", Rule(Choice((1, 2, 3)))),
        ("choice:1,2:0.25,0.75", Rule(Choice((1, 2), (0.25, 0.75)))),
        ("choice:5", Rule(Choice((5,)))),
        ("bernoulli:0.5", Rule(Bernoulli(0.5))),
        ("constant:9.8", Rule(Constant(9.8))),
        ("-9.8", Rule(Constant(-9.8))),
        ("1e-3", Rule(Constant(0.001))),
        ("true", Rule(Constant(1))),
        ("False", Rule(Constant(0))),
        ("scale:1.1", Scale(Constant(1.1))),
        ("scale:uniform:0.8:1.2", Scale(Uniform(0.8, 1.2))),
        ("scale:normal:1:0.1:0.8:1.2", Scale(Normal(1, 0.1, low=0.8, high=1.2))),
        ("add:-2", Add(Constant(-2))),
        ("add:choice:-1,1", Add(Choice((-1, 1)))),
        ("absolute:uniform:0:1", Rule(Uniform(0, 1))),
        ("  uniform: 0 : 1\n", Rule(Uniform(0, 1))),
    ],
)
def test_the_command_lines_form_is_read(text: str, meant: Rule) -> None:
    assert parse_rule(text) == meant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform", "expected uniform:LOW:HIGH, got 'uniform'"),
        ("uniform:1", "expected uniform:LOW:HIGH, got 'uniform:1'"),
        ("uniform:1:2:3", "expected uniform:LOW:HIGH, got 'uniform:1:2:3'"),
        ("normal:1", "expected normal:MU:SIGMA:[LOW]:[HIGH]:[METHOD], got 'normal:1'"),
        ("choice", "expected choice:VALUES:[PROBABILITIES], got 'choice'"),
        ("uniform:a:2", "expected a number, got 'a'"),
        ("uniform::2", "expected a number, got ''"),
        ("uniform:1,2:3", "expected a number, got '1,2'"),
        ("choice:1,,2", "expected a number, got ''"),
        ("choice:1,x", "expected a number, got 'x'"),
        ("choice:1,2:0.5", "expected 2 probabilities, got 1"),
        ("uniform:2:1", "expected low < high, got low=2.0 and high=1.0"),
        ("uniform:nan:1", "expected a number for low, got nan"),
        ("uniform:0:inf", "expected a finite high, got inf"),
        ("normal:0:1:-1:1:cut", "expected method 'clip' or 'truncate', got 'cut'"),
        ("integer:1.5:3", "expected a whole number"),
        ("bernoulli:2", "expected a probability between 0 and 1, got 2.0"),
        ("nan", "expected a number for value, got nan"),
        ("1e999", "expected a finite value, got inf"),
        ("mixture:1", "a mixture cannot be written on the command line; put it into a file"),
    ],
)
def test_malformed_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        parse_rule(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unifrom:1:2", "Unknown distribution 'unifrom'. Did you mean 'uniform'?"),
        ("scale:normel:1:2", "Unknown distribution 'normel'. Did you mean 'normal'?"),
        ("scale:add:1", "Unknown distribution 'add'."),
        ("scale", "Unknown distribution 'scale'."),
        ("", "Unknown distribution ''. Known: bernoulli, choice,"),
    ],
)
def test_unknown_distributions_in_text_are_refused(text: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as refused:
        parse_rule(text)
    assert message in str(refused.value)


HEADS = ("scale", "add", "uniform", "normal", "choice", "integer", "mixture", "bernoulli", "loguniform", "constant")
FIELDS = ("1", "-2.5", "0", "inf", "nan", "1,2", ",", "", " ", "true", "truncate", "1e400", "-0", "x")
word = st.sampled_from(HEADS + FIELDS)


@few
@given(st.text(max_size=30) | st.lists(word, max_size=7).map(":".join))
def test_any_text_is_read_or_refused_by_an_error_of_ours(text: str) -> None:
    try:
        rule = parse_rule(text)
    except GymDrError:
        return
    assert isinstance(rule, Rule)


# files


@pytest.mark.parametrize("head", ["", "[randomization]\n"])
def test_a_toml_file_has_the_rules_at_the_top_or_in_a_table(tmp_path: Path, head: str) -> None:
    file = tmp_path / "wind.toml"
    file.write_text(head + 'gravity = "uniform:-12:-2"\nmass = [3, 4]\n')
    assert Randomization.from_file(file) == Randomization({"gravity": Uniform(-12, -2), "mass": (3, 4)})


@few
@given(randomizations(SPACE))
def test_a_json_file_gives_an_equal_randomization_back(randomization: Randomization) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wind.json"
        file.write_text(json.dumps({"randomization": randomization.to_dict()}))
        assert Randomization.from_file(file) == randomization


def test_a_correlation_in_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "wind.toml"
    file.write_text(
        "gravity = [-12, -2]\nmass = [3, 4]\n"
        '[correlation]\nnames = ["gravity", "mass"]\nmatrix = [[1, 0.5], [0.5, 1]]\n'
    )
    assert Randomization.from_file(file).correlation == Correlation(("gravity", "mass"), HALF)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.toml", b"gravity = ", "is not a valid TOML file"),
        ("bad.toml", b"\xff\xfe", "is not a valid TOML file"),
        ("bad.json", b'{"gravity": ', "is not a valid JSON file"),
        ("bad.json", b"[1, 2]", "expected a table at the top, got list"),
        ("bad.json", b"[" * 100_000, "is not a valid JSON file"),
        ("bad.json", b'{"gravity": ' + b"1" * 5000 + b"}", "is not a valid JSON file"),
        ("bad.toml", b"gravity = " + b"1" * 5000, "is not a valid TOML file"),
        ("bad.toml", b"randomization = 3", "expected a table of parameters, got 3"),
    ],
)
def test_malformed_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        Randomization.from_file(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"wind\.toml: cannot be read: No such file"):
        read_table(tmp_path / "wind.toml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_table(tmp_path)


def test_an_impossible_range_in_a_file_is_refused_by_file_and_parameter(tmp_path: Path) -> None:
    file = tmp_path / "wind.toml"
    file.write_text("mass = [4, 3]\n")
    with pytest.raises(RandomizationError, match=r"wind\.toml: Parameter 'mass': .*expected low < high"):
        Randomization.from_file(file)


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
        (("a", "b"), ((1, 1), (1, 1)), "Bring the correlations nearer to 0"),
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


# checks against a space


def check_silently(rules: Mapping[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomizationWarning)
        Randomization(rules).check(SPACE)


@few
@given(randomizations(SPACE))
def test_randomizations_inside_the_bounds_are_valid(randomization: Randomization) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomizationWarning)
        randomization.check(SPACE)


def test_an_unknown_parameter_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(
        UnknownNameError, match=r"Unknown parameter of LunarLander: 'gravty'\. Did you mean 'gravity'\?"
    ):
        Randomization({"gravty": (-11, -5)}).check(LUNAR_LANDER)


@pytest.mark.parametrize(
    ("rules", "expected", "got"),
    [
        ({"gravity": (-13, -5)}, "expected a value from -12 to 0 m/s^2", "reaches from -13 to -5."),
        ({"gravity": (-5, 0.5)}, "expected a value from -12 to 0 m/s^2", "reaches from -5 to 0.5."),
        ({"gravity": 1}, "expected a value from -12 to 0 m/s^2", "Constant(1.0), which reaches from 1 to 1."),
        (
            {"gravity": Normal(-10, 1)},
            "expected a value",
            "from -inf to inf. Give the distribution bounds",
        ),
        (
            {"gravity": Normal(-10, 1, low=-12)},
            "expected",
            "from -12 to inf. Give the distribution bounds (low",
        ),
        ({"gravity": Scale((0.5, 1.5))}, "expected a value", "Scale(Uniform(0.5, 1.5)), which reaches from -15 to -5."),
        ({"gravity": Scale(-0.1)}, "expected a value", "reaches from 1 to 1."),
        ({"gravity": Add((-3, 1))}, "expected a value", "Add(Uniform(-3.0, 1.0)), which reaches from -13 to -9."),
        ({"gravity": Mixture((Constant(-5), Constant(3)))}, "expected a value", "reaches from -5 to 3."),
        ({"wind": 2}, "expected 0 or 1", "Constant(2.0)"),
        ({"wind": (0, 1)}, "expected 0 or 1", "Uniform(0.0, 1.0). Use Bernoulli, Integer, Choice or Constant"),
        ({"wind": Choice((0, 0.5))}, "expected 0 or 1", "Use Bernoulli"),
        ({"legs": (1, 8)}, "expected a whole number from 1 to 8", "Uniform(1.0, 8.0). Use Bernoulli, Integer"),
        ({"legs": 2.5}, "expected a whole number", "Constant(2.5)"),
        ({"legs": Scale(Choice((1, 2)))}, "expected a whole number", "Scale(Choice((1.0, 2.0)))"),
        ({"legs": Add(Choice((0, 0.5)))}, "expected a whole number", "Add(Choice((0.0, 0.5)))"),
        ({"legs": Integer(1, 9)}, "expected a whole number from 1 to 8", "reaches from 1 to 9."),
    ],
)
def test_rules_that_can_leave_the_bounds_or_the_kind_are_refused(
    rules: dict[str, Any], expected: str, got: str
) -> None:
    with pytest.raises(RandomizationError) as refused:
        check_silently(rules)
    assert f"Parameter {next(iter(rules))!r}: expected" in str(refused.value)
    assert expected in str(refused.value)
    assert got in str(refused.value)


def test_one_bad_rule_among_good_ones_is_found() -> None:
    with pytest.raises(RandomizationError, match="Parameter 'mass'"):
        check_silently({"bias": (-1, 1), "gravity": (-11, -9), "mass": (0, 6), "wind": Bernoulli(0.5)})


def test_an_unbounded_normal_is_valid_for_an_unbounded_parameter() -> None:
    space = ParamSpace("Free", [Param(name="shift", nominal=0.0, low=-math.inf, high=math.inf)])
    Randomization({"shift": Normal(0, 1)}).check(space)


@pytest.mark.parametrize(
    "rules",
    [
        {"gravity": (-9, -5)},
        {"gravity": Scale((0.5, 0.9))},
        {"gravity": Add((1, 2))},
        {"gravity": Normal(-7, 1, low=-9, high=-5)},
        {"legs": Integer(3, 5)},
    ],
)
def test_a_nominal_value_outside_of_its_range_warns(rules: dict[str, Any]) -> None:
    (name,) = rules
    with pytest.warns(RandomizationWarning, match=rf"Parameter {name!r}: the nominal value .* is outside of"):
        Randomization(rules).check(SPACE)


@pytest.mark.parametrize(
    "rules",
    [
        {"gravity": (-11, -9)},
        {"gravity": (-10, -5)},  # nominal on the edge
        {"gravity": -5},  # a fixed value is meant as it is
        {"gravity": Scale(0.5)},
        {"gravity": Choice((-5,))},
        {"wind": Bernoulli(1)},
        {"gravity": Scale((0.9, 1.1)), "mass": Add((-1, 1)), "wind": Bernoulli(0.5)},
        {},
    ],
)
def test_no_warning_where_nominal_can_be_drawn_or_the_value_is_fixed(rules: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Randomization(rules).check(SPACE)


def test_a_scale_that_lands_on_a_bound_but_for_rounding_is_accepted() -> None:
    # 0.1 x 3 is 0.30000000000000004
    space = ParamSpace("s", [Param(name="a", nominal=0.1, low=0.0, high=0.3)])
    Randomization({"a": Scale((0.5, 3.0))}).check(space)
    with pytest.raises(RandomizationError, match="reaches from"):
        Randomization({"a": Scale((0.5, 3.01))}).check(space)


def test_an_unknown_distribution_names_its_parameter() -> None:
    with pytest.raises(UnknownNameError, match=r"Parameter 'a': Unknown distribution 'unifrm'.*'uniform'"):
        Randomization({"a": "unifrm:0:1"})


def test_a_parameter_without_an_upper_bound_keeps_its_lower_one() -> None:
    space = ParamSpace("noise", [Param(name="noise", nominal=0.0, low=0.0, high=math.inf)])
    with pytest.raises(RandomizationError, match="noise"):
        Randomization({"noise": (-0.1, 0.1)}).check(space)
    Randomization({"noise": (0.0, 0.1)}).check(space)
