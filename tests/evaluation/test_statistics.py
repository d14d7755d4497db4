from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gym_dr import Randomization
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.evaluation import statistics
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import (
    iqm_with_interval,
    mean_with_interval,
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


def test_one_episode_has_no_spread() -> None:
    assert point_statistics(np.array([5.0]), None)[statistic_names(None).index("std")] == 0.0


def test_an_interval_is_scipys_bootstrap() -> None:
    returns = np.random.default_rng(1).normal(100, 50, (1, 50))
    (row,), _ = policy_statistics(returns, DRAWS, None)
    # the normal approximation: mean +- 1.96 s / sqrt(n); the bootstrap's is about that
    half = 1.96 * returns.std() / 50**0.5
    assert row["mean"]["value"] == pytest.approx(returns.mean())
    assert row["mean"]["low"] == pytest.approx(returns.mean() - half, abs=0.2 * half)
    assert row["mean"]["high"] == pytest.approx(returns.mean() + half, abs=0.2 * half)


def test_differences_are_paired() -> None:
    # episodes differ by hundreds, the policies by 1 in each of them
    returns = np.random.default_rng(1).normal(0, 300, 50)
    rows, differences = policy_statistics(np.stack([returns + 1.0, returns]), DRAWS, None)
    assert rows[0]["mean"]["high"] - rows[0]["mean"]["low"] > 100
    for name in ("mean", "median", "iqm", "cvar_10", "cvar_25"):
        assert differences[0, 1][name] == {key: pytest.approx(1.0) for key in ("value", "low", "high")}, name


def test_cells_of_a_grid_are_resampled_apart() -> None:
    # each cell always returns the same: what differs between cells is chosen, so nothing is uncertain
    returns = np.repeat([0.0, 100.0, 200.0], 4)[None]
    (row,), _ = policy_statistics(returns, grid(3, 4), None)
    assert row["mean"] == {"value": 100.0, "low": 100.0, "high": 100.0}


def test_points_of_a_sobol_sequence_are_resampled_with_all_cells_made_of_them() -> None:
    points = points_in({"gravity": (-12.0, -2.0)}, 16, 2)
    returns = np.repeat(np.tile(np.arange(16.0), 3), 2)[None]  # point i returns i in each of its 3 cells, twice
    (row,), _ = policy_statistics(returns, points, None)
    # 16 points whose mean has standard error 4.61 / sqrt(16) = 1.15; cells alone would give 0.67, episodes 0.47
    assert row["mean"]["value"] == 7.5
    assert row["mean"]["high"] - row["mean"]["low"] == pytest.approx(2 * 1.96 * 1.15, rel=0.15)


def test_one_episode_a_cell_has_no_interval() -> None:
    (row,), _ = policy_statistics(np.array([[1.0, 2.0, 3.0]]), grid(3, 1), 2.0)
    assert row["mean"] == {"value": 2.0, "low": None, "high": None}
    assert row["success_rate"]["low"] is None


def test_the_rate_of_no_success_is_not_known_exactly() -> None:
    rows, differences = policy_statistics(np.zeros((2, 50)), DRAWS, 1.0)
    # Clopper and Pearson: 1 - 0.025 ** (1 / 50)
    assert rows[0]["success_rate"] == {"value": 0.0, "low": 0.0, "high": pytest.approx(0.0711, abs=1e-4)}
    assert differences[0, 1]["success_rate"]["low"] == pytest.approx(-0.0711, abs=1e-4)
    assert differences[0, 1]["success_rate"]["high"] == pytest.approx(0.0711, abs=1e-4)


def test_a_rate_is_not_known_exactly_if_each_cell_is_always_solved_or_never() -> None:
    (row,), _ = policy_statistics(np.repeat([1.0, 0.0], 5)[None], grid(2, 5), 1.0)
    # Clopper and Pearson for 5 of 10
    expected = {"value": 0.5, "low": pytest.approx(0.1871, abs=1e-4), "high": pytest.approx(0.8129, abs=1e-4)}
    assert row["success_rate"] == expected


def test_summing_up_again_gives_the_same() -> None:
    returns = np.random.default_rng(1).normal(0, 1, (2, 50))
    assert policy_statistics(returns, DRAWS, 0.0) == policy_statistics(returns, DRAWS, 0.0)


def test_an_interval_does_not_depend_on_other_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_BATCH", 20_000)
    returns, some = np.random.default_rng(2).normal(0, 1, (3, 40)), grid(4, 10)
    alone, together = policy_statistics(returns[:1], some, 0.0)[0], policy_statistics(returns, some, 0.0)[0]
    assert alone[0] == together[0]
    assert means_with_intervals(returns[:1], some)[0] == means_with_intervals(returns, some)[0]


@pytest.mark.parametrize(("values", "ends"), [([3.0], (None, None)), ([3.0, 3.0], (3.0, 3.0))])
def test_the_mean_of_a_cell_has_its_own_interval(values: list[float], ends: Any) -> None:
    assert mean_with_interval(np.array(values)) == {"value": 3.0, "low": ends[0], "high": ends[1]}


def test_few_seeds_have_no_bootstrap_interval() -> None:
    assert iqm_with_interval([3.0]) == (3.0, None, None)
    assert iqm_with_interval([1.0, 2.0, 3.0, 10.0]) == (2.5, None, None)  # of 2 and 3, the middle half
    center, low, high = iqm_with_interval([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 4.0, 4.0, 10.0])
    assert center == 3.0
    assert low is not None
    assert high is not None
    assert low < center < high
