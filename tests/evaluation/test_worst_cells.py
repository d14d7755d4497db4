from __future__ import annotations

import numpy as np
import pytest

from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.family import UNLIMITED
from gym_dr.evaluation.failures import FEWEST, again, fresh_episodes, worst_cell
from gym_dr.evaluation.sets import CellSet

GRID = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -8, -4], "wind_power": [0, 20]}, 5)


def test_the_reported_mean_of_equal_cells_is_unbiased_and_the_first_one_is_not() -> None:
    """All means are 0; the lowest of 6 means of 5 normal numbers is 1.27 standard errors lower, 0.567."""
    rng, times = np.random.default_rng(1), 4000
    found = [worst_cell(rng.normal(size=(6, 5)), rng.normal(size=FEWEST), GRID, UNLIMITED) for _ in range(times)]
    error = 1 / np.sqrt(FEWEST * times)
    assert np.mean([one["mean"]["value"] for one in found]) == pytest.approx(0.0, abs=4 * error)
    assert np.mean([one["first_mean"] for one in found]) == pytest.approx(-1.2672 / np.sqrt(5), abs=0.02)


def test_the_cell_is_that_of_the_first_episodes_even_if_it_was_not_so_bad() -> None:
    returns = np.array([[5.0] * 5, [4.0] * 5, [9.0] * 5, [9.0] * 5, [9.0] * 5, [9.0] * 5])
    found = worst_cell(returns, np.full(FEWEST, 7.0), GRID, UNLIMITED)
    assert (found["cell"], found["mean"]["value"], found["first_mean"]) == (1, 7.0, 4.0)
    assert found["params"] == {"gravity": -12.0, "wind_power": 20.0, "enable_wind": 1.0}


def test_parameters_without_an_effect_in_the_worst_cell_are_left_out() -> None:
    cells = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -8], "enable_wind": [0, 1], "wind_power": [5, 20]}, 5)
    needs = {"wind_power": {"enable_wind": 0.0}}
    returns = np.arange(8.0)[:, None].repeat(5, 1)
    calm, windy = (
        worst_cell(each, np.zeros(FEWEST), cells, UNLIMITED, needs)["params"] for each in (returns, -returns)
    )
    assert calm == {"gravity": -12.0, "enable_wind": 0.0}
    assert windy == {"gravity": -8.0, "enable_wind": 1.0, "wind_power": 20.0}


def test_a_cell_is_played_again_as_often_as_before_and_not_too_rarely() -> None:
    assert fresh_episodes(GRID) == FEWEST
    assert fresh_episodes(CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -8]}, 50)) == 50
    assert fresh_episodes(CellSet.nominal(100)) == 0


def test_playing_again_keeps_all_values_of_the_cell() -> None:
    one = again(GRID, 3)
    assert (one.name, one.num_cells, one.episodes) == ("grid", 1, FEWEST)
    assert one.cell(0) == {"gravity": -8.0, "wind_power": 20.0, "enable_wind": 1.0} == GRID.cell(3)
