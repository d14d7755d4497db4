from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gym_dr import Randomization
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import (
    means_with_intervals,
    point_statistics,
    policy_statistics,
    statistic_names,
)
from tests.evaluation.points import points_in

DRAWS = CellSet.of_draws("training", Randomization({"gravity": (-11, -9)}), 50)


def grid(count: int, episodes: int) -> CellSet:
    return CellSet.grid(LUNAR_LANDER, {"gravity": np.linspace(-12, -2, count)}, episodes)


def test_statistics_of_known_returns() -> None:
    # 1 to 8: the middle half is 3 to 6; the worst tenth is one episode, the worst quarter two; squares of deviations
    # from 4.5 sum up to 42, over n - 1 = 7 that is 6; 6, 7 and 8 of 8 succeed
    values = dict(zip(statistic_names(6.0), point_statistics(np.arange(8.0, 0.0, -1.0), 6.0), strict=True))
    assert values == {
        "mean": 4.5,
        "median": 4.5,
        "iqm": 4.5,
        "std": pytest.approx(6.0**0.5),
        "cvar_10": 1.0,
        "cvar_25": 1.5,
        "success_rate": 3 / 8,
    }


@given(st.integers(1, 60), st.integers(0, 1000))
def test_statistics_are_scipys_and_numpys(episodes: int, seed: int) -> None:
    sample = np.random.default_rng(seed).normal(0, 300, episodes).round(-2)  # some are equal
    mean, median, iqm, _, cvar_10, cvar_25 = point_statistics(sample, None)
    assert mean == pytest.approx(sample.mean(), abs=1e-9)
    assert median == pytest.approx(np.median(sample), abs=1e-9)
    assert iqm == pytest.approx(stats.trim_mean(sample, 0.25), abs=1e-9)
    assert sample.min() - 1e-9 <= cvar_10 <= cvar_25 + 1e-9 <= mean + 2e-9


def test_one_episode_has_neither_spread_nor_interval() -> None:
    (row,) = policy_statistics(np.array([[5.0]]), CellSet.nominal(1), 1.0)
    assert row["std"] == {"value": None, "low": None, "high": None}
    assert row["mean"] == {"value": 5.0, "low": None, "high": None}
    assert row["success_rate"] == {"value": 1.0, "low": None, "high": None}


def test_one_episode_a_cell_has_no_interval() -> None:
    (row,) = policy_statistics(np.array([[1.0, 2.0, 3.0]]), grid(3, 1), 2.0)
    assert row["mean"] == {"value": 2.0, "low": None, "high": None}
    assert row["success_rate"]["low"] is None


def test_cells_of_a_grid_were_chosen_so_their_differences_are_not_uncertain() -> None:
    returns = np.repeat([0.0, 100.0, 200.0], 4) + np.tile([-1.0, 1.0], 6)
    (found,) = means_with_intervals(returns[None], grid(3, 4))
    # a variance of 4 / 3 in each cell of 4: a standard error of 1 / 3, by 2.262 for 9 degrees of freedom
    half = 2.2622 / 3
    assert found == {"value": 100.0, "low": pytest.approx(100 - half), "high": pytest.approx(100 + half)}


def test_equal_returns_do_not_show_how_much_they_vary() -> None:
    assert means_with_intervals(np.full((1, 50), 0.1 + 0.2), DRAWS)[0]["low"] is None


def test_points_of_a_sobol_sequence_count_with_all_cells_made_of_them() -> None:
    points = points_in({"gravity": (-12.0, -2.0)}, 16, 2)
    returns = np.repeat(np.tile(np.arange(16.0), 3), 2)[None]  # point i returns i in each of its 3 cells, twice
    (row,) = policy_statistics(returns, points, None)
    # 16 points whose mean has standard error 4.76 / sqrt(16) = 1.19, by 2.131; cells alone would give 0.67
    assert row["mean"]["value"] == 7.5
    assert row["mean"]["high"] - 7.5 == pytest.approx(1.19 * 2.131, rel=1e-2)


@pytest.mark.parametrize("solved", [0, 1, 25, 49, 50])
def test_the_interval_of_a_rate_is_wilsons(solved: int) -> None:
    returns = np.repeat([[1.0, 0.0]], [solved, 50 - solved], axis=1)
    found = policy_statistics(returns, DRAWS, 1.0)[0]["success_rate"]
    wilson = stats.binomtest(solved, 50).proportion_ci(method="wilson")
    assert (found["low"], found["high"]) == pytest.approx((wilson.low, wilson.high), abs=1e-12)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_one_more_success_raises_both_ends_of_a_rates_interval(solved: list[int], data: Any) -> None:
    """In any cell, however successes are spread over the cells."""
    cells = grid(len(solved), 5) if len(solved) > 1 else CellSet.nominal(5)
    raised = data.draw(st.integers(0, len(solved) - 1))
    solved[raised] = min(solved[raised], 4)
    more = [count + (k == raised) for k, count in enumerate(solved)]
    returns = np.array([[episode < count for count in counts for episode in range(5)] for counts in (solved, more)])
    fewer, found = (row["success_rate"] for row in policy_statistics(returns.astype(np.float64), cells, 1.0))
    assert fewer["low"] <= found["low"]
    assert fewer["high"] <= found["high"]
    assert 0.0 <= fewer["low"] <= fewer["value"] <= fewer["high"] <= 1.0


def test_an_interval_ends_at_what_is_possible() -> None:
    returns = np.array([[500.0, 500.0, 500.0, 400.0]])
    (found,) = means_with_intervals(returns, CellSet.nominal(4), (0.0, 500.0))
    assert found == {"value": 475.0, "low": pytest.approx(475 - 3.1824 * 25, abs=0.01), "high": 500.0}


def test_an_interval_does_not_depend_on_other_policies() -> None:
    returns, some = np.random.default_rng(2).normal(0, 1, (3, 40)), grid(4, 10)
    assert policy_statistics(returns[:1], some, 0.0)[0] == policy_statistics(returns, some, 0.0)[0]
