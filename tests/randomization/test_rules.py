"""Rules of one parameter: operations, every form that users write, the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gym_dr
from gym_dr import Add, Bernoulli, Choice, Constant, Integer, LogUniform, Normal, Param, Scale, Uniform
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import GymDrError, RandomizationError, UnknownNameError
from gym_dr.randomization.spec import Rule, as_rule, parse_rule
from tests.strategies import distributions, few, probabilities, rules

EVAL = {**vars(gym_dr), "Rule": Rule}


# operations


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(Uniform(0, 1)), [0.25, 0.5]),
        (Scale((0.5, 2)), [-2.5, -5.0]),  # times the nominal value
        (Add((-1, 2)), [-9.75, -9.5]),  # and added to it
    ],
)
def test_a_draw_is_the_value_or_scales_or_is_added_to_nominal(rule: Rule, expected: list[float]) -> None:
    np.testing.assert_array_equal(rule.apply(-10.0, [0.25, 0.5]), expected)


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
@given(st.sampled_from(list(LUNAR_LANDER.values())).flatmap(lambda p: st.tuples(st.just(p), rules(p))), probabilities)
def test_the_values_of_a_rule_are_possible_without_any_clipping(param_and_rule: tuple[Param, Rule], u: float) -> None:
    param, rule = param_and_rule
    low, high = rule.support(param.nominal)
    value = rule.apply(param.nominal, rule.distribution.ppf(u))
    assert low <= float(value) <= high
    param.check(value)


@pytest.mark.parametrize(
    "make", [lambda: Scale(Add((0, 1))), lambda: Add(Scale((0, 1))), lambda: Rule(Scale(2), "add")]
)
def test_an_operation_inside_of_another_is_refused(make: Callable[[], Rule]) -> None:
    with pytest.raises(RandomizationError, match="expected a distribution inside Scale, Add or Rule, got"):
        make()


def test_an_unknown_operation_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown operation 'scal'\. Did you mean 'scale'\?"):
        Rule(Uniform(0, 1), "scal")


@few
@given(distributions().flatmap(lambda d: st.sampled_from([Rule(d), Scale(d), Add(d)])))
def test_repr_of_a_rule_is_an_expression_that_makes_it(rule: Rule) -> None:
    assert as_rule(eval(repr(rule), EVAL.copy())) == rule


# the command line


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("uniform:-12:-2", Rule(Uniform(-12, -2))),
        ("loguniform:0.1:10", Rule(LogUniform(0.1, 10))),
        ("normal:-10:1:-12", Rule(Normal(-10, 1, low=-12))),
        ("normal:-10:1:-inf:-8:truncate", Rule(Normal(-10, 1, high=-8, method="truncate"))),
        ("integer:1:6", Rule(Integer(1, 6))),
        ("choice:1,2:0.25,0.75", Rule(Choice((1, 2), (0.25, 0.75)))),
        ("choice:5", Rule(Choice((5,)))),
        ("bernoulli:0.5", Rule(Bernoulli(0.5))),
        ("constant:9.8", Rule(Constant(9.8))),
        ("-9.8", Rule(Constant(-9.8))),
        ("1e-3", Rule(Constant(0.001))),
        ("true", Rule(Constant(1))),
        ("False", Rule(Constant(0))),
        ("-12:-2", Rule(Uniform(-12, -2))),
        ("scale:0.8:1.2", Scale(Uniform(0.8, 1.2))),
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
        ("uniform:1", "expected uniform:LOW:HIGH, got 'uniform:1'"),
        ("-12:-2:3", "expected a number, LOW:HIGH or DISTRIBUTION:..., got '-12:-2:3'"),
        ("-12:", "expected a number, got ''"),
        ("uniform:1:2:3", "expected uniform:LOW:HIGH, got 'uniform:1:2:3'"),
        ("uniform:a:2", "expected a number, got 'a'"),
        ("uniform:1,2:3", "expected a number, got '1,2'"),
        ("choice:1,,2", "expected a number, got ''"),
        ("uniform:2:1", "expected low < high, got low=2.0 and high=1.0"),
        ("nan", "expected a number for value, got nan"),
        ("1e999", "expected a finite value, got inf"),
        ("mixture:1", "Mixture: expected a list of distributions"),
        ("unifrom:1:2", "Unknown distribution 'unifrom'. Did you mean 'uniform'?"),
        ("scale:normel:1:2", "Unknown distribution 'normel'. Did you mean 'normal'?"),
        ("", "Unknown distribution ''. Known: bernoulli, choice,"),
    ],
)
def test_malformed_text_and_unknown_distributions_are_refused(text: str, message: str) -> None:
    with pytest.raises((RandomizationError, UnknownNameError), match=re.escape(message)):
        parse_rule(text)


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
