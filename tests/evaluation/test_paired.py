"""Statistics over seeds against values that were worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gym_dr.evaluation.paired import holm, mean_over_seeds, ratio_over_seeds


def test_the_interval_is_students_and_the_p_value_that_of_its_test() -> None:
    # mean 3, standard deviation 1, so standard error 1 / sqrt(3); t with 2 degrees of freedom: 4.302653 at 97.5 %
    found, p = mean_over_seeds(np.array([2.0, 3.0, 4.0]))
    half = 4.302653 / math.sqrt(3)
    assert found["value"] == 3.0
    assert (found["low"], found["high"]) == pytest.approx((3 - half, 3 + half), abs=1e-5)
    # t = 3 sqrt(3) = 5.196; with 2 degrees of freedom P(|T| > t) = 1 - t / sqrt(t^2 + 2)
    assert p == pytest.approx(1 - math.sqrt(27) / math.sqrt(29))


@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0, 5.0], [0.0, 0.0], [0.1 + 0.2, 0.3]])
def test_one_seed_or_equal_values_have_no_interval(values: list[float]) -> None:
    found, p = mean_over_seeds(np.array(values))
    assert found["value"] == pytest.approx(values[0])
    assert (found["low"], found["high"], p) == (None, None, None)


def test_holms_correction_multiplies_the_smallest_by_all_and_never_falls() -> None:
    # sorted: 0.01 x 4 = 0.04, 0.02 x 3 = 0.06, 0.03 x 2 = 0.06, 0.04 x 1 = 0.04, which rises to the one before
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holms_correction_leaves_out_what_was_not_tested_and_ends_at_one() -> None:
    assert holm([None, 0.6, 0.7]) == [None, 1.0, 1.0]
    assert holm([]) == []


def test_a_ratio_is_one_of_sums_so_a_seed_with_a_small_denominator_counts_little() -> None:
    # (1 + 0) / (1 + 9); the mean of the ratios 1 and 0 would be 0.5
    assert ratio_over_seeds(np.array([1.0, 0.0]), np.array([1.0, 9.0]))["value"] == pytest.approx(0.1)


def test_the_interval_over_a_constant_is_students_interval_divided_by_it() -> None:
    # numerators 2, 3 and 4 have mean 3 and standard error 1 / sqrt(3); t with 2 degrees of freedom: 4.302653
    found = ratio_over_seeds(np.array([2.0, 3.0, 4.0]), np.array([2.0, 2.0, 2.0]))
    half = 4.302653 / math.sqrt(3)
    assert found["value"] == pytest.approx(1.5)
    assert (found["low"], found["high"]) == pytest.approx(((3 - half) / 2, (3 + half) / 2), abs=1e-5)


@given(st.integers(2, 10), st.integers(0, 1000))
def test_an_interval_ends_where_a_paired_t_test_rejects_and_is_there_where_the_denominators_are_not_zero(
    seeds: int, seed: int
) -> None:
    numerators, denominators = np.random.default_rng(seed).normal([[2.0], [3.0]], 2.0, (2, seeds))
    found, denominator = ratio_over_seeds(numerators, denominators), mean_over_seeds(denominators)[0]
    assert (found["low"] is None) == (denominator["low"] <= 0 <= denominator["high"])
    if found["low"] is not None:
        assert found["low"] < found["value"] < found["high"]
        for end in (found["low"], found["high"]):
            assert stats.ttest_1samp(numerators - end * denominators, 0.0).pvalue == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("denominators", [[2.0], [2.0, 4.0], [6.0, 6.0, 6.0]])
def test_a_ratio_of_one_seed_or_the_same_for_all_has_no_interval(denominators: list[float]) -> None:
    found = ratio_over_seeds(0.1 * np.array(denominators), np.array(denominators))
    assert found == {"value": pytest.approx(0.1), "low": None, "high": None}
