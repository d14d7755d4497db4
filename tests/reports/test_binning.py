from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr import Randomization
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.evaluation.sets import CellSet
from gym_dr.reports.binning import MAX_VALUES, NUM_BINS, bin_statistics, make_bins, tile_bins


def test_few_values_have_a_bin_each_with_edges_half_way_between() -> None:
    part = make_bins(np.array([2.0, 0.0, 5.0, 2.0]))
    assert part.centers.tolist() == [0.0, 2.0, 5.0]
    assert part.edges.tolist() == [-1.0, 1.0, 3.5, 6.5]
    assert part.index.tolist() == [1, 0, 2, 1]


def test_one_value_has_one_bin() -> None:
    assert make_bins(np.array([3.0, 3.0])).edges.tolist() == [2.5, 3.5]


@given(st.integers(0, 2**32 - 1), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_many_values_lie_in_their_bins(seed: int, low: float, width: float) -> None:
    values = low + width * np.random.default_rng(seed).random(MAX_VALUES + 20)
    part = make_bins(values)
    assert len(part.centers) == NUM_BINS
    assert np.all(part.edges[part.index] <= values)
    assert np.all(values <= part.edges[part.index + 1])


def test_many_values_are_cut_where_each_bin_has_as_many_episodes() -> None:
    # 1, 2, ..., 81 squared: the eighths end at 1, 11, 21, ..., 81 squared; the last bin has the 81st value, too
    part = make_bins(np.arange(1.0, 82.0) ** 2)
    assert part.edges.tolist() == [k**2 for k in range(1, 82, 10)]
    assert np.bincount(part.index).tolist() == [10] * 7 + [11]
    assert part.centers[0] == 38.5  # the mean of 1, 4, ..., 100


def test_a_frequent_value_leaves_no_bin_empty() -> None:
    # half of the values are at the bound, where a distribution was clipped
    part = make_bins(np.concatenate([np.full(100, -5.0), np.linspace(-4.0, 4.0, 100)]))
    assert part.edges[0] == -5.0
    assert np.all(np.bincount(part.index) > 0)
    assert len(part.centers) == len(part.edges) - 1


def draws(episodes: int) -> CellSet:
    return CellSet.of_draws("training", Randomization({"gravity": (-11, -9)}), episodes)


def test_an_episode_without_a_value_lies_in_no_bin() -> None:
    part = make_bins(np.array([2.0, np.nan, 5.0, 2.0]))
    assert part.index.tolist() == [0, -1, 1, 0]
    assert bin_statistics(np.array([[1.0, 100.0, 7.0, 3.0]]), draws(4), part).mean.tolist() == [2.0, 7.0]


def test_tiles_pool_the_episodes_that_have_both_values() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((2, 200))
    values[0, :100] = np.nan
    x, y = tile_bins(*values)
    assert x.index.tolist()[:100] == y.index.tolist()[:100] == [-1] * 100
    assert len(x.centers) == len(y.centers) == 5  # 100 episodes, 4 for each of 25 tiles
    assert bin_statistics(np.ones((1, 200)), draws(200), x, y).count.sum() == 100


def test_bins_have_the_statistics_of_their_episodes() -> None:
    x, y = make_bins(np.array([0.0, 0.0, 1.0, 1.0])), make_bins(np.array([5.0, 5.0, 5.0, 6.0]))
    # runs in rows: bin (x 0, y 5) holds 1, 3, 5, 7; (1, 5) holds 10, 20; (1, 6) holds -4, 4; (0, 6) none
    found = bin_statistics(np.array([[1.0, 3.0, 10.0, -4.0], [5.0, 7.0, 20.0, 4.0]]), draws(4), x, y)
    assert found.count.tolist() == [[4, 2], [0, 2]]
    np.testing.assert_equal(found.mean, [[4.0, 15.0], [np.nan, 0.0]])


def test_intervals_of_bins_are_over_seeds_that_share_their_episodes() -> None:
    # two runs return 2 and 6 on average in a bin: 4 +- 12.706 standard errors of 2, however many episodes they share
    part = make_bins(np.zeros(4))
    found = bin_statistics(np.array([[1.0, 3.0, 1.0, 3.0], [5.0, 7.0, 5.0, 7.0]]), draws(4), part)
    assert (found.low[0], found.high[0]) == (pytest.approx(4 - 25.41, abs=0.01), pytest.approx(4 + 25.41, abs=0.01))


def test_intervals_of_bins_are_not_over_cells_of_a_grid_that_were_chosen() -> None:
    grid = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -2], "lander_density": [5, 7]}, 2)
    part = make_bins(np.repeat(grid.values[:, 1], 2))  # each bin holds two cells of two episodes
    found = bin_statistics(np.array([[0.0, 2.0, 0.0, 2.0, 100.0, 102.0, 200.0, 202.0]]), grid, part)
    # variances of 2 in each cell of 2: a standard error of sqrt(2 * 2 / 2) / 2, by 4.303 for two degrees of freedom
    np.testing.assert_allclose(found.high - found.mean, 4.303 * 2**0.5 / 2, rtol=1e-3)


@pytest.mark.parametrize("cells", [draws(1), None])
def test_one_episode_has_no_interval(cells: CellSet | None) -> None:
    part = make_bins(np.array([0.0]))
    assert np.isnan(bin_statistics(np.array([[7.0]]), cells, part, part).low[0, 0])


def test_a_bin_without_an_interval_says_so() -> None:
    table = bin_statistics(np.array([[1.0, 2.0, 5.0]]), CellSet.of_values("set", {}, 3), make_bins(np.array([0, 0, 1])))
    assert [text.startswith("95 % interval") for text in table.intervals] == [True, False]
    assert not any("nan" in text for text in table.intervals)
