from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from gym_dr import Bernoulli, Constant, Normal, Randomization, Scale, Uniform
from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import ConfigError, RandomizationError, UnknownNameError
from gym_dr.evaluation import cells
from gym_dr.evaluation.cells import Box, CellSet
from gym_dr.randomization.space import Param, ParamSpace

BOX = Box(
    ranges={"gravity": (-12.0, -4.0), "enable_wind": (0.0, 1.0)}, fixed={"lander_density": 6.0}, whole=("enable_wind",)
)


def test_an_axis_has_both_ends_and_its_count() -> None:
    assert cells.axis("gravity", -12, -2, 11).tolist() == [-12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2]


@pytest.mark.parametrize(
    ("low", "high", "count", "message"),
    [
        (-12, -2, 0, "--grid gravity=-12:-2:0: the grid is empty; expected a count of at least 1, got 0"),
        (-2, -12, 3, "expected finite LOW <= HIGH, got -2 and -12"),
        (-12, math.nan, 3, "expected finite LOW <= HIGH"),
        (-12, -2, 1, "both ends are included"),
        (-2, -2, 2, "both ends are included"),
    ],
)
def test_impossible_axes_are_refused(low: float, high: float, count: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cells.axis("gravity", low, high, count)


def test_a_grid_is_every_combination_and_the_last_name_varies_fastest() -> None:
    grid = cells.grid(LUNAR_LANDER, {"gravity": [-10, -5], "lander_density": [4, 5, 6]}, 2)
    assert grid.values.tolist() == [[-10, 4], [-10, 5], [-10, 6], [-5, 4], [-5, 5], [-5, 6]]
    assert (grid.num_cells, grid.num_episodes) == (6, 12)
    assert grid.cell(4) == {"gravity": -5.0, "lander_density": 5.0}


def test_the_values_of_episodes_are_those_of_their_cells() -> None:
    grid = cells.grid(LUNAR_LANDER, {"gravity": [-10, -5], "wind_power": [0, 20]}, 2)
    # episodes 1 to 4 of cells 0, 1, 1, 2
    params = grid.params(np.arange(1, 5))
    assert {name: values.tolist() for name, values in params.items()} == {
        "gravity": [-10, -10, -10, -5],
        "wind_power": [0, 20, 20, 0],
        "enable_wind": [1, 1, 1, 1],
    }


def test_a_switch_is_on_where_a_parameter_needs_it() -> None:
    assert cells.grid(LUNAR_LANDER, {"wind_power": [0, 20]}, 1).fixed == {"enable_wind": 1.0}
    assert cells.grid(LUNAR_LANDER, {"gravity": [-10, -9]}, 1).fixed == {}


def test_a_switch_on_the_grid_is_left_alone() -> None:
    grid = cells.grid(LUNAR_LANDER, {"wind_power": [0, 20], "enable_wind": [0, 1]}, 1)
    assert grid.fixed == {}
    assert grid.values[:, 1].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({}, ConfigError, "grid is empty"),
        ({"gravty": [-10]}, UnknownNameError, "Did you mean 'gravity'"),
        ({"gravity": [-20, -5]}, RandomizationError, "'gravity': expected a value from -12 to 0 m/s\\^2, got -20"),
        ({"enable_wind": [0, 0.5, 1]}, RandomizationError, "'enable_wind': expected 0 or 1, got 0.5"),
        (
            {"gravity": np.linspace(-12, 0, 2000), "wind_power": np.linspace(0, 20, 2000)},
            ConfigError,
            "4,000,000 cells",
        ),
    ],
)
def test_impossible_grids_are_refused(axes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cells.grid(LUNAR_LANDER, axes, 1)


def test_the_box_holds_everything_that_the_runs_were_trained_on() -> None:
    box = cells.training_box(
        LUNAR_LANDER,
        [
            Randomization({"gravity": Uniform(-11, -9), "enable_wind": Bernoulli(0.5)}),
            Randomization({"gravity": Normal(-10, 1, low=-10.5, high=-5), "lander_density": Constant(6)}),
            Randomization({"side_engine_power": Scale(Uniform(0.5, 2))}),  # nominally 0.6
            None,
        ],
    )
    assert box.ranges == {"gravity": (-11, -5), "enable_wind": (0, 1), "side_engine_power": (0.3, 1.2)}
    assert box.fixed == {"lander_density": 6}
    assert box.whole == ("enable_wind",)


def test_a_box_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected runs that were trained with some, got none"):
        cells.training_box(LUNAR_LANDER, [None, Randomization(), Randomization({"gravity": -9.0})])


def test_a_box_without_end_is_refused() -> None:
    space = ParamSpace("Endless", [Param(name="x", nominal=0.0, low=-np.inf, high=np.inf)])
    with pytest.raises(ConfigError, match="training range of x is unbounded"):
        cells.training_box(space, [Randomization({"x": Normal(0, 1)})])


def test_corners_are_every_combination_of_ends() -> None:
    corners = cells.corners(BOX, 3)
    assert corners.values.tolist() == [[-12, 0], [-12, 1], [-4, 0], [-4, 1]]
    assert corners.cell(3) == {"gravity": -4.0, "enable_wind": 1.0, "lander_density": 6.0}


def test_too_many_corners_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"2[0-9,]* cells|1,048,576 cells"):
        cells.corners(Box(ranges={f"p{i}": (0.0, 1.0) for i in range(20)}, fixed={}), 1)


def test_sobol_points_fill_the_box_as_sensitivity_indices_need_them() -> None:
    points = cells.sobol(BOX, 64, 5)
    a, b, with_gravity, with_wind = points.values.reshape(4, 64, 2)
    assert points.num_cells == 4 * 64
    np.testing.assert_array_equal(with_gravity, np.column_stack([b[:, 0], a[:, 1]]))
    np.testing.assert_array_equal(with_wind, np.column_stack([a[:, 0], b[:, 1]]))
    # of a Sobol sequence, every eighth of the range has an eighth of the points
    assert np.histogram(a[:, 0], bins=8, range=(-12, -4))[0].tolist() == [8] * 8
    assert sorted(set(a[:, 1])) == [0.0, 1.0]
    assert a[:, 1].sum() == 32


@pytest.mark.parametrize("points", [-1, 0, 1, 3, 100])
def test_a_number_of_points_that_is_no_power_of_two_is_refused(points: int) -> None:
    with pytest.raises(ConfigError, match=f"expected a power of 2, at least 2, got {points}; [0-9]+ is near"):
        cells.sobol(BOX, points, 1)


def test_no_episodes_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 episode, got 0"):
        cells.nominal(0)


@pytest.mark.parametrize(
    "made",
    [
        cells.nominal(3),
        cells.distribution("training", Randomization({"gravity": (-11, -9)}), 4),
        cells.grid(LUNAR_LANDER, {"gravity": [-10, -5], "wind_power": [0, 20]}, 2),
        cells.corners(BOX, 2),
        cells.sobol(BOX, 8, 2),
    ],
    ids=lambda made: made.kind,
)
def test_json_gives_an_equal_set_back(made: CellSet) -> None:
    again = CellSet.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.to_dict() == made.to_dict()
    np.testing.assert_array_equal(again.values, made.values)
    assert (again.names, again.fixed, again.randomization) == (made.names, made.fixed, made.randomization)
