"""The standard normal distribution, against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from gym_dr.randomization.normal import normal_cdf, normal_ppf
from tests.strategies import LEAST, MOST, few, probabilities

# both tails, down to where float64 ends, and the whole middle
GRID = np.concatenate(
    [10.0 ** np.arange(-300.0, -1.0, 0.5), np.linspace(0.01, 0.99, 9999), 1 - 2.0 ** -np.arange(7, 54)]
)


def test_ppf_equals_scipys_to_fourteen_digits() -> None:
    np.testing.assert_allclose(normal_ppf(GRID), stats.norm.ppf(GRID), rtol=1e-14, atol=1e-15)


def test_known_values_at_the_ends_and_in_the_middle() -> None:
    assert float(normal_ppf(0.975)) == pytest.approx(1.959963984540054, rel=1e-15)
    np.testing.assert_array_equal(normal_ppf([0.0, 0.5, 1.0]), [-math.inf, 0.0, math.inf])
    assert np.isfinite(normal_ppf([LEAST, MOST])).all()
    np.testing.assert_array_equal(normal_cdf([-math.inf, math.inf]), [0.0, 1.0])


def test_ppf_is_antisymmetric() -> None:
    p = np.arange(1, 512) / 1024  # 1 - p is exact for these
    np.testing.assert_array_equal(normal_ppf(1 - p), -normal_ppf(p))


@pytest.mark.parametrize("border", [0.075, 0.925, math.exp(-25.0)])
def test_ppf_does_not_fall_where_one_polynomial_takes_over_from_another(border: float) -> None:
    p = border * (1 + np.linspace(-1e-9, 1e-9, 101))
    assert (np.diff(normal_ppf(p)) > 0).all()


@few
@given(probabilities, probabilities)
def test_ppf_is_monotone(p: float, q: float) -> None:
    low, high = normal_ppf(sorted((p, q)))
    # neighboring floats may be out of order by the rounding of the polynomials
    assert low <= high + 1e-14 * abs(high)


def test_cdf_equals_scipys() -> None:
    x = np.linspace(-38.0, 38.0, 4001)
    np.testing.assert_allclose(normal_cdf(x), stats.norm.cdf(x), rtol=1e-12, atol=1e-310)


@few
@given(probabilities)
def test_cdf_undoes_ppf(p: float) -> None:
    assert float(normal_cdf(normal_ppf(p))) == pytest.approx(p, rel=1e-13)


def test_shares_too_small_for_a_double_are_no_errors_where_numpys_warnings_are() -> None:
    with np.errstate(all="raise"):
        assert np.all(normal_cdf([-38.0, -50.0]) < 1e-307)


@pytest.mark.parametrize("function", [normal_ppf, normal_cdf])
@pytest.mark.parametrize("shape", [(), (2, 3), (2, 0)])
def test_results_have_the_shape_of_the_argument(function: object, shape: tuple[int, ...]) -> None:
    values = function(np.full(shape, 0.01))  # type: ignore[operator]
    assert (values.shape, values.dtype) == (shape, np.float64)


@pytest.mark.parametrize("function", [normal_ppf, normal_cdf])
def test_a_value_does_not_depend_on_its_neighbors(function: object) -> None:
    together = function(GRID)  # type: ignore[operator]
    alone = [float(function(p)) for p in GRID[::10]]  # type: ignore[operator]
    np.testing.assert_array_equal(together[::10], alone)
