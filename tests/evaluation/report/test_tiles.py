from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.evaluation.report.tiles import BINS, MOST_VALUES, ticks, tiles


def test_few_values_have_a_tile_each_with_edges_half_way_between() -> None:
    part = ticks(np.array([2.0, 0.0, 5.0, 2.0]))
    assert part.centres.tolist() == [0.0, 2.0, 5.0]
    assert part.edges.tolist() == [-1.0, 1.0, 3.5, 6.5]
    assert part.tile.tolist() == [1, 0, 2, 1]


def test_one_value_has_one_tile() -> None:
    assert ticks(np.array([3.0, 3.0])).edges.tolist() == [2.5, 3.5]


@given(st.integers(0, 2**32 - 1), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_many_values_lie_in_their_bins(seed: int, low: float, width: float) -> None:
    values = low + width * np.random.default_rng(seed).random(MOST_VALUES + 20)
    part = ticks(values)
    assert len(part.centres) == BINS
    assert np.all(part.edges[part.tile] <= values)
    assert np.all(values <= part.edges[part.tile + 1])


def test_tiles_have_the_statistics_of_their_episodes() -> None:
    x, y = ticks(np.array([0.0, 0.0, 1.0, 1.0])), ticks(np.array([5.0, 5.0, 5.0, 6.0]))
    # runs in rows: tile (x 0, y 5) holds 1, 3, 5, 7; (1, 5) holds 10, 20; (1, 6) holds -4, 4; (0, 6) none
    found = tiles(x, y, np.array([[1.0, 3.0, 10.0, -4.0], [5.0, 7.0, 20.0, 4.0]]))
    assert found.count.tolist() == [[4, 2], [0, 2]]
    np.testing.assert_equal(found.mean, [[4.0, 15.0], [np.nan, 0.0]])
    np.testing.assert_equal(found.worst, [[1.0, 10.0], [np.nan, -4.0]])
    # variances 20/3, 50, 32 over 4, 2, 2 episodes
    np.testing.assert_allclose(found.error, [[np.sqrt(20 / 3 / 4), 5.0], [np.nan, 4.0]])


def test_one_episode_has_no_standard_error() -> None:
    part = ticks(np.array([0.0]))
    assert np.isnan(tiles(part, part, np.array([[7.0]])).error[0, 0])
