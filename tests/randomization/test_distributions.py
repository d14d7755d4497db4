"""Distributions: quantile functions against scipy, means against integrals, lossless forms, bad input."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import gym_dr
from gym_dr import Bernoulli, Choice, Constant, Distribution, Integer, LogUniform, Mixture, Normal, Uniform
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.distributions import DISTRIBUTIONS, distribution_from_dict
from tests.strategies import (
    LEAST,
    MOST,
    distributions,
    few,
    probabilities,
    simple_distributions,
    wide_distributions,
)
from tests.toml_text import toml_text

NAN, INF = math.nan, math.inf
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


def test_a_clipped_normal_has_the_probability_outside_on_its_bounds_and_a_truncated_one_none() -> None:
    # P(Z < -1) = 0.158655..., so 158 of the 1000 middles and the 12 of the lower tail are below; P(Z > 2) = 0.02275
    for method, expected in (("clip", (159, 23)), ("truncate", (0, 0))):
        values = Normal(0, 1, low=-1, high=2, method=method).ppf((np.arange(1000) + 0.5) / 1000)
        assert (int((values == -1).sum()), int((values == 2).sum())) == expected


EDGES = [LEAST, 0.5, MOST]


@pytest.mark.parametrize(
    ("distribution", "u", "expected"),
    [
        (Bernoulli(0.25), [0.1, 0.74, 0.76, 0.9], [0, 0, 1, 1]),  # 1 for the largest uniforms
        (Bernoulli(0), EDGES, [0, 0, 0]),
        (Bernoulli(1), EDGES, [1, 1, 1]),
        (Constant(-9.8), EDGES, [-9.8, -9.8, -9.8]),
        (Choice((3, 1, 2), (0.5, 0.25, 0.25)), [0.1, 0.4, 0.6, 0.9], [3, 3, 1, 2]),  # in the order given
        (Choice((0, 1, 2), (0, 1, 0)), EDGES, [1, 1, 1]),  # what has probability 0 is never chosen
        (Choice((0, 1, 2), (0, 0, 1)), EDGES, [2, 2, 2]),
        (Choice((0, 1, 2), (1, 0, 0)), EDGES, [0, 0, 0]),
        # weights 1 and 3: u < 1/4 gives 4u of Uniform(0, 1), the rest (u - 1/4) / (3/4) of Uniform(3, 5)
        (Mixture((Uniform(0, 1), Uniform(3, 5)), (1, 3)), [0.125, 0.25 + 0.375, 0.25 + 0.1875], [0.5, 4.0, 3.5]),
        (Mixture((Constant(1), Constant(2), Constant(3)), (0, 1, 0)), EDGES, [2, 2, 2]),
    ],
    ids=repr,
)
def test_known_values(distribution: Distribution, u: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(distribution.ppf(u), expected)


def test_a_mixture_without_weights_has_equal_ones() -> None:
    parts = (Uniform(0, 1), Constant(7), Normal(0, 1))
    np.testing.assert_array_equal(Mixture(parts).ppf(U), Mixture(parts, (2, 2, 2)).ppf(U))


def test_a_mixture_of_unbounded_normals_stays_finite() -> None:
    mixture = Mixture((Normal(0, 1), Normal(5, 2)), (0.3, 0.7))
    assert np.isfinite(mixture.ppf([LEAST, np.nextafter(0.3, 0), 0.3, np.nextafter(0.3, 1), MOST])).all()


@pytest.mark.parametrize(("low", "high"), [(0.0, INF), (-INF, 0.0), (-1.0, INF), (-INF, INF)])
def test_the_smallest_and_largest_draws_of_a_truncated_normal_are_scipys(low: float, high: float) -> None:
    found = Normal(0, 1, low=low, high=high, method="truncate").ppf([LEAST, MOST])
    np.testing.assert_allclose(found, stats.truncnorm(low, high).ppf([LEAST, MOST]), rtol=1e-2, atol=1e-15)


@few
@given(st.one_of(distributions(), wide_distributions()))
def test_the_smallest_and_largest_draws_are_finite_and_inside_the_support(distribution: Distribution) -> None:
    values, (low, high) = distribution.ppf([LEAST, MOST]), distribution.support
    assert np.isfinite(values).all()
    assert ((values >= low) & (values <= high)).all()


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
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2)])
def test_ppf_gives_float64_of_the_shape_of_its_argument(distribution: Distribution, shape: tuple[int, ...]) -> None:
    values = distribution.ppf(np.full(shape, 0.4))
    assert (values.shape, values.dtype) == (shape, np.float64)


@few
@given(distributions())
def test_a_value_does_not_depend_on_its_neighbors(distribution: Distribution) -> None:
    alone = [float(distribution.ppf(u)) for u in U[::10]]
    np.testing.assert_array_equal(distribution.ppf(U)[::10], alone)


# support, mean, whole numbers


@pytest.mark.parametrize(
    ("distribution", "support", "integral"),
    [
        (Uniform(-3, 5), (-3, 5), False),
        (LogUniform(1, 10), (1, 10), False),
        (Normal(0, 1), (-math.inf, math.inf), False),
        (Normal(0, 1, low=-1), (-1, math.inf), False),
        (Normal(0, 1, low=-1, high=3), (-1, 3), False),
        (Integer(-2, 7), (-2, 7), True),
        (Choice((3, 1, 2)), (1, 3), True),
        (Choice((3, 1.5, 2)), (1.5, 3), False),
        (Choice((-5.0, 1.0, 0.5), (0, 1, 0)), (1, 1), True),  # values of probability 0 do not count
        (Bernoulli(0.5), (0, 1), True),
        (Bernoulli(0), (0, 0), True),
        (Bernoulli(1), (1, 1), True),
        (Constant(4), (4, 4), True),
        (Constant(0.5), (0.5, 0.5), False),
        (Mixture((Integer(4, 5), Uniform(-1, 2))), (-1, 5), False),
        (Mixture((Uniform(4, 5), Uniform(-1, 2)), (1, 0)), (4, 5), False),
    ],
    ids=repr,
)
def test_support_and_whether_all_values_are_whole(
    distribution: Distribution, support: tuple[float, float], integral: bool
) -> None:
    assert (distribution.support, distribution.integral) == (support, integral)


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


# values: equality, hash, text and files


@few
@given(distributions())
def test_files_text_and_pickles_give_an_equal_distribution_back(distribution: Distribution) -> None:
    form = distribution.to_dict()
    for again in (
        distribution_from_dict(json.loads(json.dumps(form, allow_nan=False))),
        distribution_from_dict(tomllib.loads(toml_text(form))),
        eval(repr(distribution), vars(gym_dr).copy()),
        pickle.loads(pickle.dumps(distribution)),
    ):
        assert (again, hash(again)) == (distribution, hash(distribution))


def test_every_distribution_has_an_example_here() -> None:
    assert {type(example) for example in EXAMPLES} == set(DISTRIBUTIONS.values())


def test_fields_left_at_their_default_are_not_written() -> None:
    assert Normal(0, 1, high=2).to_dict() == {"distribution": "normal", "mu": 0.0, "sigma": 1.0, "high": 2.0}
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(2, 1), "Uniform(2.0, 1.0): expected low < high, got low=2.0 and high=1.0"),
        (lambda: Uniform(1, 1), "Use Constant"),
        (lambda: Uniform(NAN, 1), "expected a number for low, got nan"),
        (lambda: Uniform(0, 10**400), "expected a number for high"),
        (lambda: Uniform("0", 1), "expected a number for low, got '0'"),
        (lambda: Uniform(0, 1j), "expected a number for high, got 1j"),
        (lambda: Uniform(-1e308, 1e308), "expected a range that float64 can hold"),
        (lambda: LogUniform(0, 1), "expected low > 0"),
        (lambda: LogUniform(2, 1), "expected low < high"),
        (lambda: LogUniform(1, INF), "expected a finite high"),
        (lambda: Normal(0, 0), "expected sigma > 0"),
        (lambda: Normal(INF, 1), "expected a finite mu"),
        (lambda: Normal(0, INF), "expected a finite sigma"),
        (lambda: Normal(0, 1e308), "expected draws that float64 can hold"),
        (lambda: Normal(0, 1, low=NAN), "expected a number for low"),
        (lambda: Normal(0, 1, low=2, high=1), "expected low < high"),
        (lambda: Normal(0, 1, method="cut"), "expected method 'clip' or 'truncate'"),
        (lambda: Normal(0, 1, low=50, high=60, method="truncate"), "bounds that hold some probability"),
        (lambda: Integer(0.5, 2), "expected a whole number between -2**53 and 2**53 for low"),
        (lambda: Integer(0, 2**60), "expected a whole number between -2**53 and 2**53 for high"),
        (lambda: Integer(3, 2), "expected low < high"),
        (lambda: Choice(()), "expected a list of numbers for values"),
        (lambda: Choice("12"), "expected a list of numbers for values"),
        (lambda: Choice((1, INF)), "expected finite numbers for values"),
        (lambda: Choice((1, 2), (1,)), "expected 2 probabilities"),
        (lambda: Choice((1, 2), (0.5, 0.6)), "expected probabilities that sum to 1"),
        (lambda: Choice((1, 2), (-0.5, 1.5)), "expected probabilities >= 0"),
        (lambda: Bernoulli(1.1), "expected a probability between 0 and 1"),
        (lambda: Constant(-INF), "expected a finite value"),
        (lambda: Mixture(()), "expected a list of distributions"),
        (lambda: Mixture((Uniform(0, 1), 3)), "expected distributions"),
        (lambda: Mixture((Uniform(0, 1),), (1, 2)), "expected 1 weights"),
        (lambda: Mixture((Uniform(0, 1), Constant(2)), (0, 0)), "expected weights >= 0"),
        (lambda: Mixture((Uniform(0, 1), Constant(2)), (1e308, 1e308)), "expected weights >= 0"),
        # in a file
        (lambda: distribution_from_dict({"low": 0, "high": 1}), "Expected a 'distribution' field"),
        (lambda: distribution_from_dict({"distribution": 3}), "Expected a 'distribution' field"),
        (lambda: distribution_from_dict({"distribution": "normal"}), "Distribution 'normal': expected mu, sigma"),
        (lambda: distribution_from_dict({"distribution": "uniform", "low": 2, "high": 1}), "expected low < high"),
    ],
)
def test_impossible_distributions_are_refused(make: Callable[[], Distribution], message: str) -> None:
    with pytest.raises(RandomizationError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"distribution": "unifrom", "low": 0, "high": 1}, "Unknown distribution 'unifrom'. Did you mean 'uniform'?"),
        ({"distribution": "uniform", "low": 0, "hihg": 1}, "Unknown field of distribution 'uniform': 'hihg'"),
        ({"distribution": "mixture", "components": [{"distribution": "normel"}]}, "Did you mean 'normal'?"),
    ],
)
def test_unknown_names_in_a_file_are_refused_with_the_nearest_known(form: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(message)):
        distribution_from_dict(form)


def test_reading_a_form_leaves_it_as_it_was() -> None:
    form = {"distribution": "uniform", "low": 0, "high": 1}
    distribution_from_dict(form)
    assert form == {"distribution": "uniform", "low": 0, "high": 1}
