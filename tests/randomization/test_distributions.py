"""Distributions: quantile functions against scipy, means against integrals, lossless forms, bad input."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

import gym_dr
from gym_dr import Bernoulli, Choice, Constant, Distribution, Integer, LogUniform, Mixture, Normal, Uniform
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.distributions import DISTRIBUTIONS, distribution_from_dict
from tests.strategies import LEAST, MOST, distributions, few, probabilities, simple_distributions
from tests.toml_text import toml_text

# the middles of 1000 equal parts of (0, 1), and both tails
U = np.concatenate([10.0 ** np.arange(-15, -3), (np.arange(1000) + 0.5) / 1000, 1 - 10.0 ** np.arange(-15.0, -3.0)])

EXAMPLES = [
    Uniform(-3, 5),
    LogUniform(0.1, 1000),
    Normal(-10, 1, low=-11.99, high=-8.5),
    Normal(1.5, 0.5, low=0.01, high=1.99, method="truncate"),
    Integer(-2, 7),
    Choice((3, 1, 2)),
    Choice((0.5, 1, 8), (0.2, 0.3, 0.5)),
    Bernoulli(0.25),
    Constant(9.8),
    Mixture((Uniform(0, 1), Uniform(3, 5)), (1, 3)),
]

by_repr = pytest.mark.parametrize("distribution", EXAMPLES, ids=repr)


# quantile functions


@pytest.mark.parametrize(
    ("distribution", "oracle"),
    [
        (Uniform(-3, 5), stats.uniform(-3, 8)),
        (LogUniform(0.1, 1000), stats.loguniform(0.1, 1000)),
        (Normal(-10, 2), stats.norm(-10, 2)),
        (Normal(1, 2, low=-3, high=2, method="truncate"), stats.truncnorm(-2, 0.5, 1, 2)),
        (Normal(0, 1, low=5, high=7, method="truncate"), stats.truncnorm(5, 7)),  # all in the upper tail
        (Normal(0, 1, low=-30, high=-20, method="truncate"), stats.truncnorm(-30, -20)),  # all in the lower tail
        (Integer(-2, 7), stats.randint(-2, 8)),
        (Choice((1, 2, 4), (0.2, 0.3, 0.5)), stats.rv_discrete(values=((1, 2, 4), (0.2, 0.3, 0.5)))),
        (Choice((-1, 0, 1, 5)), stats.rv_discrete(values=((-1, 0, 1, 5), (0.25,) * 4))),
        (Bernoulli(0.3), stats.bernoulli(0.3)),
    ],
    ids=lambda value: repr(value) if isinstance(value, Distribution) else "",
)
def test_ppf_equals_scipys(distribution: Distribution, oracle: Any) -> None:
    np.testing.assert_allclose(distribution.ppf(U), oracle.ppf(U), rtol=1e-12, atol=1e-12)


def test_half_a_normal_equals_scipys_up_to_the_last_digits_of_its_tail() -> None:
    u = np.concatenate([U[U < 0.5], 1 - 10.0 ** np.arange(-10.0, -1.0)])
    half = Normal(2, 0.5, low=2, method="truncate")
    np.testing.assert_allclose(half.ppf(u), stats.truncnorm(0, math.inf, 2, 0.5).ppf(u), rtol=1e-6)


def test_a_clipped_normal_is_np_clip_of_a_normal() -> None:
    expected = np.clip(stats.norm(-10, 1).ppf(U), -11.99, -9)
    np.testing.assert_allclose(Normal(-10, 1, low=-11.99, high=-9).ppf(U), expected, rtol=1e-13)


def test_a_clipped_normal_has_the_probability_outside_on_its_bounds() -> None:
    # P(Z < -1) = 0.158655..., so 158 of the 1000 middles and the 12 of the lower tail are below; P(Z > 2) = 0.02275
    values = Normal(0, 1, low=-1, high=2).ppf((np.arange(1000) + 0.5) / 1000)
    assert (int((values == -1).sum()), int((values == 2).sum())) == (159, 23)


def test_a_truncated_normal_has_no_value_on_its_bounds() -> None:
    values = Normal(0, 1, low=-1, high=2, method="truncate").ppf((np.arange(1000) + 0.5) / 1000)
    assert values.min() > -1
    assert values.max() < 2


def test_bernoulli_is_1_for_the_largest_uniforms() -> None:
    np.testing.assert_array_equal(Bernoulli(0.25).ppf([0.1, 0.74, 0.76, 0.9]), [0, 0, 1, 1])


@pytest.mark.parametrize("p", [0, 1])
def test_a_sure_bernoulli_never_gives_the_other_value(p: int) -> None:
    np.testing.assert_array_equal(Bernoulli(p).ppf([LEAST, 0.5, MOST]), [p, p, p])


def test_constant_ignores_the_uniform() -> None:
    np.testing.assert_array_equal(Constant(-9.8).ppf([LEAST, 0.5, MOST]), [-9.8, -9.8, -9.8])


def test_choice_takes_its_values_in_the_order_given() -> None:
    np.testing.assert_array_equal(Choice((3, 1, 2), (0.5, 0.25, 0.25)).ppf([0.1, 0.4, 0.6, 0.9]), [3, 3, 1, 2])


@pytest.mark.parametrize("probabilities", [(0, 1, 0), (0, 0, 1), (1, 0, 0)])
def test_a_choice_of_probability_0_is_never_made(probabilities: tuple[float, ...]) -> None:
    expected = probabilities.index(1)
    np.testing.assert_array_equal(Choice((0, 1, 2), probabilities).ppf([LEAST, 0.5, MOST]), [expected] * 3)


def test_a_mixture_spends_the_rest_of_the_uniform_in_the_component() -> None:
    # weights 1 and 3: u < 1/4 gives 4u of Uniform(0, 1), the rest (u - 1/4) / (3/4) of Uniform(3, 5)
    mixture = Mixture((Uniform(0, 1), Uniform(3, 5)), (1, 3))
    np.testing.assert_allclose(mixture.ppf([0.125, 0.25 + 0.375, 0.25 + 0.1875]), [0.5, 4.0, 3.5], rtol=1e-15)


def test_a_mixture_without_weights_has_equal_ones() -> None:
    parts = (Uniform(0, 1), Constant(7), Normal(0, 1))
    np.testing.assert_array_equal(Mixture(parts).ppf(U), Mixture(parts, (2, 2, 2)).ppf(U))


def test_a_mixture_never_picks_a_component_of_weight_0() -> None:
    mixture = Mixture((Constant(1), Constant(2), Constant(3)), (0, 1, 0))
    np.testing.assert_array_equal(mixture.ppf([LEAST, 0.5, MOST]), [2, 2, 2])


def test_a_mixture_of_unbounded_normals_stays_finite() -> None:
    mixture = Mixture((Normal(0, 1), Normal(5, 2)), (0.3, 0.7))
    assert np.isfinite(mixture.ppf([LEAST, np.nextafter(0.3, 0), 0.3, np.nextafter(0.3, 1), MOST])).all()


@few
@given(distributions(), probabilities)
def test_values_are_inside_the_support(distribution: Distribution, u: float) -> None:
    low, high = distribution.support
    assert low <= float(distribution.ppf(u)) <= high


@few
@given(simple_distributions().filter(lambda d: not isinstance(d, Choice)), probabilities, probabilities)
def test_ppf_is_monotone_but_for_choices_and_mixtures_in_any_order(d: Distribution, u: float, v: float) -> None:
    low, high = d.ppf(sorted((u, v)))
    assert low <= high + 1e-12 * abs(high)


@pytest.mark.parametrize(
    "distribution",
    [Choice((-1, 0, 8), (0.5, 0.2, 0.3)), Mixture((Uniform(-12, -11), Normal(-7, 1, low=-8, high=-6), Constant(0)))],
    ids=repr,
)
def test_ppf_is_monotone_for_choices_and_mixtures_in_ascending_order(distribution: Distribution) -> None:
    assert (np.diff(distribution.ppf(np.sort(U))) >= 0).all()


@by_repr
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (0, 2)])
def test_ppf_gives_float64_of_the_shape_of_its_argument(distribution: Distribution, shape: tuple[int, ...]) -> None:
    values = distribution.ppf(np.full(shape, 0.4))
    assert (values.shape, values.dtype) == (shape, np.float64)


@by_repr
def test_ppf_reads_lists(distribution: Distribution) -> None:
    np.testing.assert_array_equal(distribution.ppf([0.2, 0.9]), distribution.ppf(np.array([0.2, 0.9])))


@few
@given(distributions())
def test_a_value_does_not_depend_on_its_neighbors(distribution: Distribution) -> None:
    alone = [float(distribution.ppf(u)) for u in U[::10]]
    np.testing.assert_array_equal(distribution.ppf(U)[::10], alone)


# support, mean, whole numbers


@pytest.mark.parametrize(
    ("distribution", "support"),
    [
        (Uniform(-3, 5), (-3, 5)),
        (LogUniform(0.1, 10), (0.1, 10)),
        (Normal(0, 1), (-math.inf, math.inf)),
        (Normal(0, 1, low=-1), (-1, math.inf)),
        (Normal(0, 1, low=-1, high=3), (-1, 3)),
        (Integer(-2, 7), (-2, 7)),
        (Choice((3, 1, 2)), (1, 3)),
        (Bernoulli(0.5), (0, 1)),
        (Bernoulli(0), (0, 0)),
        (Bernoulli(1), (1, 1)),
        (Constant(4), (4, 4)),
        (Mixture((Uniform(4, 5), Uniform(-1, 2))), (-1, 5)),
        (Mixture((Uniform(4, 5), Uniform(-1, 2)), (1, 0)), (4, 5)),
    ],
    ids=repr,
)
def test_support(distribution: Distribution, support: tuple[float, float]) -> None:
    assert distribution.support == support


@by_repr
def test_both_ends_of_the_support_are_reached(distribution: Distribution) -> None:
    low, high = distribution.support
    values = distribution.ppf(np.concatenate([[LEAST], U, [MOST]]))
    assert (values.min(), values.max()) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(
    ("distribution", "mean"),
    [
        (Uniform(-3, 5), 1.0),
        (LogUniform(1, math.e), math.e - 1),  # integral of e^t over [0, 1]
        (Normal(-10, 2), -10.0),
        (Normal(1, 2, low=0, high=2), 1.0),  # symmetric about the mean
        (Normal(1, 2, low=0, high=2, method="truncate"), 1.0),
        (Normal(0, 1, low=0), 1 / math.sqrt(2 * math.pi)),  # E max(Z, 0) = pdf(0)
        (Normal(0, 1, low=0, method="truncate"), 2 / math.sqrt(2 * math.pi)),  # E |Z|
        (Integer(-2, 7), 2.5),
        (Choice((3, 1, 2)), 2.0),
        (Choice((0, 10), (0.75, 0.25)), 2.5),
        (Bernoulli(0.25), 0.25),
        (Constant(9.8), 9.8),
        (Mixture((Uniform(0, 1), Uniform(3, 5)), (1, 3)), 0.25 * 0.5 + 0.75 * 4),
    ],
    ids=repr,
)
def test_draws_have_the_known_mean(distribution: Distribution, mean: float) -> None:
    n = 100_000
    assert distribution.ppf((np.arange(n) + 0.5) / n).mean() == pytest.approx(mean, abs=1e-4)


@few
@given(distributions(-20, 20, whole=True), probabilities)
def test_integral_distributions_give_whole_numbers_only(distribution: Distribution, u: float) -> None:
    assert distribution.integral
    assert float(distribution.ppf(u)).is_integer()


@pytest.mark.parametrize(
    "distribution",
    [
        Uniform(0, 2),
        LogUniform(1, 2),
        Normal(0, 1),
        Choice((1, 1.5)),
        Constant(0.5),
        Mixture((Integer(0, 1), Uniform(0, 1))),
    ],
    ids=repr,
)
def test_distributions_with_fractions_are_not_integral(distribution: Distribution) -> None:
    assert not distribution.integral


# values: equality, hash, text and files


@few
@given(distributions())
def test_json_gives_an_equal_distribution_back(distribution: Distribution) -> None:
    assert distribution_from_dict(json.loads(json.dumps(distribution.to_dict(), allow_nan=False))) == distribution


@few
@given(distributions())
def test_toml_gives_an_equal_distribution_back(distribution: Distribution) -> None:
    assert distribution_from_dict(tomllib.loads(toml_text(distribution.to_dict()))) == distribution


@few
@given(distributions())
def test_repr_is_the_expression_that_makes_it(distribution: Distribution) -> None:
    assert eval(repr(distribution), vars(gym_dr).copy()) == distribution


@few
@given(distributions())
def test_pickle_gives_an_equal_distribution_back(distribution: Distribution) -> None:
    assert pickle.loads(pickle.dumps(distribution)) == distribution


@few
@given(distributions())
def test_equal_distributions_have_equal_hashes(distribution: Distribution) -> None:
    assert hash(distribution_from_dict(distribution.to_dict())) == hash(distribution)


def test_every_distribution_has_an_example_here() -> None:
    assert {type(example) for example in EXAMPLES} == set(DISTRIBUTIONS.values())


def test_fields_left_at_their_default_are_not_written() -> None:
    assert Normal(0, 1, high=2).to_dict() == {"distribution": "normal", "mu": 0.0, "sigma": 1.0, "high": 2.0}


def test_repr_leaves_out_defaults() -> None:
    assert repr(Normal(0, 1, high=2)) == "Normal(0.0, 1.0, high=2.0)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Uniform(0, 1), Uniform(0.0, True)),
        (Uniform(np.float32(0.5), np.int64(1)), Uniform(0.5, 1)),
        (Integer(1.0, 3), Integer(1, 3)),
        (Choice([1, 2], [0.5, 0.5]), Choice((1.0, 2.0), (0.5, 0.5))),
        (Choice(np.array([1, 2])), Choice((1, 2))),
        (Mixture([Constant(1)], [2]), Mixture((Constant(1),), (2,))),
        (Mixture(({"distribution": "constant", "value": 1},)), Mixture((Constant(1),))),
    ],
)
def test_the_same_distribution_written_differently_is_equal(one: Distribution, other: Distribution) -> None:
    assert (one, hash(one)) == (other, hash(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Uniform(1, 2), LogUniform(1, 2)),
        (Uniform(1, 2), Integer(1, 2)),
        (Uniform(1, 2), Uniform(1, 3)),
        (Normal(0, 1, -1, 1), Normal(0, 1, -1, 1, "truncate")),
        (Choice((1, 2)), Choice((2, 1))),
        (Bernoulli(1), Constant(1)),
    ],
)
def test_different_distributions_are_not_equal(one: Distribution, other: Distribution) -> None:
    assert one != other


@by_repr
def test_distributions_cannot_be_changed(distribution: Distribution) -> None:
    first = dataclasses.fields(distribution)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(distribution, first, 1.0)


# bad input

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("make", "expected", "got"),
    [
        (lambda: Uniform(2, 1), "expected low < high", "low=2.0 and high=1.0"),
        (lambda: Uniform(1, 1), "Use Constant", "low=1.0 and high=1.0"),
        (lambda: Uniform(NAN, 1), "expected a number for low", "nan"),
        (lambda: Uniform(0, INF), "expected a finite high", "inf"),
        (lambda: Uniform(0, 10**400), "expected a finite high", "inf"),
        (lambda: Uniform("0", 1), "expected a number for low", "'0'"),
        (lambda: Uniform(None, 1), "expected a number for low", "None"),
        (lambda: Uniform(0, [1]), "expected a number for high", "[1]"),
        (lambda: Uniform(0, 1j), "expected a number for high", "1j"),
        (lambda: Uniform(-1e308, 1e308), "expected a range that float64 can hold", "1e+308 - -1e+308"),
        (lambda: LogUniform(0, 1), "expected low > 0", "0.0"),
        (lambda: LogUniform(-2, -1), "expected low > 0", "-2.0"),
        (lambda: LogUniform(2, 1), "expected low < high", "low=2.0 and high=1.0"),
        (lambda: LogUniform(1, INF), "expected a finite high", "inf"),
        (lambda: Normal(0, 0), "expected sigma > 0", "0.0"),
        (lambda: Normal(0, -1), "expected sigma > 0", "-1.0"),
        (lambda: Normal(NAN, 1), "expected a number for mu", "nan"),
        (lambda: Normal(INF, 1), "expected a finite mu", "inf"),
        (lambda: Normal(0, INF), "expected a finite sigma", "inf"),
        (lambda: Normal(0, 1, low=NAN), "expected a number for low", "nan"),
        (lambda: Normal(0, 1, low=2, high=1), "expected low < high", "low=2.0 and high=1.0"),
        (lambda: Normal(0, 1, low=INF), "expected low < high", "low=inf"),
        (lambda: Normal(0, 1, method="cut"), "expected method 'clip' or 'truncate'", "'cut'"),
        (lambda: Normal(0, 1, method=None), "expected method 'clip' or 'truncate'", "None"),
        (lambda: Normal(0, 1, low=50, high=60, method="truncate"), "bounds that hold some probability", "low=50.0"),
        (lambda: Integer(0.5, 2), "expected a whole number between -2**53 and 2**53 for low", "0.5"),
        (lambda: Integer(0, 2**60), "expected a whole number between -2**53 and 2**53 for high", "1.15"),
        (lambda: Integer(0, INF), "expected a whole number between -2**53 and 2**53 for high", "inf"),
        (lambda: Integer(3, 2), "expected low < high", "low=3 and high=2"),
        (lambda: Integer("a", 2), "expected a number for low", "'a'"),
        (lambda: Choice(()), "expected a list of numbers for values", "()"),
        (lambda: Choice("12"), "expected a list of numbers for values", "'12'"),
        (lambda: Choice(5), "expected a list of numbers for values", "5"),
        (lambda: Choice(np.array(5)), "expected a list of numbers for values", "5"),
        (lambda: Choice((1, "a")), "expected a number for values", "'a'"),
        (lambda: Choice((1, INF)), "expected finite numbers for values", "inf"),
        (lambda: Choice((1, 2), (1,)), "expected 2 probabilities", "1"),
        (lambda: Choice((1, 2), (0.5, 0.6)), "expected probabilities that sum to 1", "1.1"),
        (lambda: Choice((1, 2), (-0.5, 1.5)), "expected probabilities >= 0", "(-0.5, 1.5)"),
        (lambda: Choice((1, 2), (0, 0)), "expected probabilities >= 0", "(0.0, 0.0)"),
        (lambda: Choice((1, 2), ()), "expected a list of numbers for probabilities", "()"),
        (lambda: Bernoulli(1.1), "expected a probability between 0 and 1", "1.1"),
        (lambda: Bernoulli(-0.1), "expected a probability between 0 and 1", "-0.1"),
        (lambda: Bernoulli(NAN), "expected a number for p", "nan"),
        (lambda: Constant(NAN), "expected a number for value", "nan"),
        (lambda: Constant(-INF), "expected a finite value", "-inf"),
        (lambda: Constant("9.8"), "expected a number for value", "'9.8'"),
        (lambda: Mixture(()), "expected a list of distributions", "()"),
        (lambda: Mixture("ab"), "expected a list of distributions", "'ab'"),
        (lambda: Mixture(5), "expected a list of distributions", "5"),
        (lambda: Mixture((Uniform(0, 1), 3)), "expected distributions", "3"),
        (lambda: Mixture((Uniform(0, 1),), (1, 2)), "expected 1 weights", "2"),
        (lambda: Mixture((Uniform(0, 1), Constant(2)), (0, 0)), "expected weights >= 0", "(0.0, 0.0)"),
        (lambda: Mixture((Uniform(0, 1), Constant(2)), (-1, 2)), "expected weights >= 0", "(-1.0, 2.0)"),
        (lambda: Mixture((Uniform(0, 1), Constant(2)), (1e308, 1e308)), "expected weights >= 0", "1e+308"),
        (lambda: Mixture((Uniform(0, 1),), ("a",)), "expected a number for weights", "'a'"),
    ],
)
def test_impossible_distributions_are_refused(make: Callable[[], Distribution], expected: str, got: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        make()
    assert expected in str(refused.value)
    assert got in str(refused.value)


def test_an_error_names_the_distribution() -> None:
    with pytest.raises(RandomizationError, match=r"^Uniform\(2\.0, 1\.0\): expected low < high"):
        Uniform(2, 1)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"distribution": "unifrom", "low": 0, "high": 1}, "Unknown distribution 'unifrom'. Did you mean 'uniform'?"),
        ({"distribution": "uniform", "low": 0, "hihg": 1}, "Unknown field of distribution 'uniform': 'hihg'"),
        ({"distribution": "mixture", "components": [{"distribution": "normel"}]}, "Did you mean 'normal'?"),
    ],
)
def test_unknown_names_in_a_file_are_refused_with_the_nearest_known(form: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError) as refused:
        distribution_from_dict(form)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"low": 0, "high": 1}, "Expected a 'distribution' field"),
        ({"distribution": 3}, "Expected a 'distribution' field"),
        ({"distribution": "uniform", "low": 0}, "Distribution 'uniform': expected high, got"),
        ({"distribution": "normal"}, "expected mu, sigma"),
        ({"distribution": "uniform", "low": "0", "high": 1}, "expected a number for low, got '0'"),
        ({"distribution": "uniform", "low": 2, "high": 1}, "expected low < high"),
    ],
)
def test_impossible_forms_in_a_file_are_refused(form: dict[str, Any], message: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        distribution_from_dict(form)
    assert message in str(refused.value)


def test_reading_a_form_leaves_it_as_it_was() -> None:
    form = {"distribution": "uniform", "low": 0, "high": 1}
    distribution_from_dict(form)
    assert form == {"distribution": "uniform", "low": 0, "high": 1}


def test_values_of_probability_0_do_not_count() -> None:
    choice = Choice((-5.0, 1.0, 0.5), probabilities=(0.0, 1.0, 0.0))
    assert choice.support == (1.0, 1.0)
    assert choice.integral
