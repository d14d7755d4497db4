"""Statistics over seeds against values that were worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gym_dr.envs.family import return_limits
from gym_dr.evaluation.statistics import holm, mean_over_seeds


def test_the_interval_is_students_and_the_p_value_that_of_its_test() -> None:
    # mean 3, standard deviation 1, so standard error 1 / sqrt(3); t with 2 degrees of freedom: 4.302653 at 97.5 %
    found, p = mean_over_seeds(np.array([2.0, 3.0, 4.0]))
    half = 4.302653 / math.sqrt(3)
    assert found["value"] == 3.0
    assert (found["low"], found["high"]) == pytest.approx((3 - half, 3 + half), abs=1e-5)
    # t = 3 sqrt(3) = 5.196; with 2 degrees of freedom P(|T| > t) = 1 - t / sqrt(t^2 + 2)
    assert p == pytest.approx(1 - math.sqrt(27) / math.sqrt(29))


def test_no_interval_exceeds_what_is_possible() -> None:
    limits = return_limits("gym_dr/CartPoleDR-v1")
    found, _ = mean_over_seeds(np.array([500.0, 500.0, 490.0]), limits)
    assert (found["low"], found["high"]) == (pytest.approx(482.3, abs=0.1), 500.0)
    assert mean_over_seeds(np.array([1.0, 0.9, 0.1]), (0.0, 1.0))[0]["high"] == 1.0
    assert mean_over_seeds(np.array([-0.02, -0.01, 0.01]), (0.0, 1.0))[0]["low"] == 0.0
    assert return_limits("gym_dr/LunarLanderDR-v3") == (-math.inf, math.inf)


@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0, 5.0], [0.0, 0.0], [0.1 + 0.2, 0.3]])
def test_one_seed_or_equal_values_have_no_interval(values: list[float]) -> None:
    found, p = mean_over_seeds(np.array(values))
    assert found["value"] == pytest.approx(values[0])
    assert (found["low"], found["high"], p) == (None, None, None)


def test_holms_correction_multiplies_the_smallest_by_all_and_never_falls() -> None:
    # sorted: 0.01 x 4 = 0.04, 0.02 x 3 = 0.06, 0.03 x 2 = 0.06, 0.04 x 1 = 0.04, which rises to the one before
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holms_correction_ends_at_one() -> None:
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@pytest.mark.parametrize(("repetitions", "within"), [pytest.param(1000, 0.01, marks=pytest.mark.slow), (150, 0.03)])
def test_intervals_cover_the_mean_and_corrected_tests_are_wrong_as_often_as_they_say(
    repetitions: int, within: float
) -> None:
    """Means over five seeds of ten contrasts that share a baseline, all of them zero."""
    rng, wrong, covered = np.random.default_rng(0), 0, 0
    for _ in range(repetitions):
        runs = rng.normal(size=(11, 5))
        found = [mean_over_seeds(one - runs[0]) for one in runs[1:]]
        covered += sum((interval["low"] or 0.0) <= 0.0 <= (interval["high"] or 0.0) for interval, _ in found)
        wrong += min(holm([1.0 if p is None else p for _, p in found])) < 0.05
    assert abs(covered / (10 * repetitions) - 0.95) < within
    assert wrong / repetitions < 0.05 + within
