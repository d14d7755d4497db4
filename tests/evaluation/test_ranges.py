from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gym_dr import Add, Bernoulli, Choice, Constant, Integer, Normal, Randomization, Scale, Uniform
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.evaluation import ranges
from gym_dr.evaluation.sets import CellSet
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import draw, uniforms
from gym_dr.randomization.space import Param, ParamSpace

SPACE = ParamSpace(
    "Example",
    [
        Param(name="x", nominal=2.0, low=0.0, high=10.0),
        Param(name="y", nominal=3.0, low=-np.inf, high=np.inf),
        Param(name="count", nominal=1, low=0, high=9, kind="int"),
        Param(name="switch", nominal=0, low=0, high=1, kind="bool"),
    ],
)
CORRELATED = Randomization(
    {"x": Uniform(0, 10), "y": Normal(3, 1), "count": Integer(1, 4)},
    correlation={"names": ["y", "x"], "matrix": [[1.0, 0.8], [0.8, 1.0]]},
)


def by_quantile(rules: Any, points: int = 64) -> CellSet:
    given = rules if isinstance(rules, Randomization) else Randomization(rules)
    return CellSet.sobol("sobol", given, SPACE, points, 2)


def column(made: CellSet, name: str) -> Any:
    return made.values[: made.points, made.names.index(name)]


def test_a_grid_is_every_combination_and_the_last_name_varies_fastest() -> None:
    grid = CellSet.grid(LUNAR_LANDER, {"gravity": [-10, -5], "lander_density": [4, 5, 6]}, 2)
    assert grid.values.tolist() == [[-10, 4], [-10, 5], [-10, 6], [-5, 4], [-5, 5], [-5, 6]]
    assert (grid.num_cells, grid.num_episodes) == (6, 12)
    assert grid.cell(4) == {"gravity": -5.0, "lander_density": 5.0}


def test_the_values_of_episodes_are_those_of_their_cells() -> None:
    grid = CellSet.grid(LUNAR_LANDER, {"gravity": [-10, -5], "wind_power": [0, 20]}, 2)
    # episodes 1 to 4 of cells 0, 1, 1, 2
    values = grid.draws.values
    assert {name: column[1:5].tolist() for name, column in values.items()} == {
        "gravity": [-10, -10, -10, -5],
        "wind_power": [0, 20, 20, 0],
        "enable_wind": [1, 1, 1, 1],
    }


def test_a_switch_is_on_where_a_parameter_needs_it() -> None:
    assert CellSet.grid(LUNAR_LANDER, {"wind_power": [0, 20]}, 1).fixed == {"enable_wind": 1.0}
    assert CellSet.grid(LUNAR_LANDER, {"gravity": [-10, -9]}, 1).fixed == {}
    own = CellSet.grid(LUNAR_LANDER, {"wind_power": [0, 20], "enable_wind": [0, 1]}, 1)
    assert (own.fixed, own.values[:, 1].tolist()) == ({}, [0, 1, 0, 1])


def test_a_switch_that_training_turned_on_is_on_in_cells_made_from_its_draws() -> None:
    windy = resolve({"wind_power": (0, 20), "gravity": (-11, -9)}, LUNAR_LANDER)
    assert CellSet.sobol("sobol", windy, LUNAR_LANDER, 2, 1).fixed == {"enable_wind": 1.0}
    drawn = CellSet.from_dict(CellSet.of_draws("training", windy, 2).to_dict())
    assert drawn.randomization == windy
    assert drawn.parameters == ("enable_wind", "gravity", "wind_power")


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({}, ConfigError, "grid is empty"),
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
        CellSet.grid(LUNAR_LANDER, axes, 1)


def test_sobol_points_fill_ranges_as_sensitivity_indices_need_them() -> None:
    points = by_quantile({"x": Uniform(2, 10), "switch": Bernoulli(0.5)}, 256)
    a, b, with_x, with_switch = points.values.reshape(4, 256, 2)
    assert points.num_cells == 4 * 256
    np.testing.assert_array_equal(with_x, np.column_stack([b[:, 0], a[:, 1]]))
    np.testing.assert_array_equal(with_switch, np.column_stack([a[:, 0], b[:, 1]]))
    assert sorted(set(a[:, 1])) == [0.0, 1.0]
    # 32 sequences of 8 points each; of each, every eighth of the range has one point and every half has four
    for sequence in a.reshape(32, 8, 2):
        assert np.histogram(sequence[:, 0], bins=8, range=(2, 10))[0].tolist() == [1] * 8
        assert sequence[:, 1].sum() == 4


def test_the_sequences_of_a_set_are_different_and_the_same_in_every_evaluation() -> None:
    first, second = (by_quantile({"x": Uniform(2, 10), "switch": Bernoulli(0.5)}, 256) for _ in range(2))
    assert len(set(first.values[:256, 0])) == 256
    np.testing.assert_array_equal(first.values, second.values)


def test_points_by_quantile_are_as_frequent_as_draws() -> None:
    points = by_quantile(
        {
            "y": Normal(3, 1, low=2, high=9),
            "x": Scale(Uniform(0.5, 2)),
            "switch": Bernoulli(0.25),
            "count": Integer(1, 4),
        },
        256,
    )
    # quartiles of a normal distribution: 3 +- 0.6745; below 2, one standard deviation off, is 0.1587, which is clipped
    y = column(points, "y")
    assert np.histogram(y, bins=[2, 3 - 0.67449, 3, 3 + 0.67449, 9])[0].tolist() == [64] * 4
    assert (y == 2.0).mean() == pytest.approx(0.1587, abs=1 / 64)
    assert np.histogram(column(points, "x"), bins=8, range=(1, 4))[0].tolist() == [32] * 8
    assert column(points, "switch").sum() == 64
    assert np.bincount(column(points, "count").astype(int)).tolist() == [0, 64, 64, 64, 64]


@pytest.mark.parametrize(
    "rules",
    [
        {"x": Scale(Uniform(0.5, 2)), "y": Add(Normal(0, 1)), "count": Choice((2, 5, 7), (0.2, 0.3, 0.5))},
        CORRELATED,
    ],
    ids=["independent", "correlated"],
)
def test_the_same_uniform_gives_the_same_value_as_a_draw(rules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    randomization = rules if isinstance(rules, Randomization) else Randomization(rules)
    seeds, names = np.arange(8, dtype=np.uint64), [name for name in SPACE if name in randomization]
    drawn = draw(randomization, SPACE, seeds, 0)
    unit = uniforms(seeds, 0, names).T
    # a sequence that gives the uniforms of those draws, for A and for B
    monkeypatch.setattr(ranges, "unit_points", lambda n, d, *_: np.tile(unit, d // len(names))[:n] - 2.0**-31)
    for name in names:
        np.testing.assert_allclose(column(by_quantile(randomization, 8), name), drawn[name], rtol=1e-12)


def test_a_point_at_the_edge_of_the_unit_cube_has_a_finite_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "unit_points", lambda n, d, *_: np.zeros((n, d)))
    assert np.isfinite(by_quantile({"y": Normal(3, 1)}, 2).values).all()


def test_parameters_that_draws_never_change_are_fixed() -> None:
    points = by_quantile(
        {"x": Scale(Constant(2)), "count": Choice((4, 4)), "switch": Bernoulli(1.0), "y": Uniform(-1, 1)}, 2
    )
    assert points.fixed == {"x": 4.0, "count": 4.0, "switch": 1.0}
    assert (points.names, points.values.shape) == (("y",), (2 * 3, 1))
    assert points.cell(0)["x"] == 4.0
    assert points.randomization is None  # nothing is drawn in an episode


def test_correlated_parameters_have_one_cell_a_point_in_which_they_are_correlated() -> None:
    points = by_quantile(CORRELATED, 256)
    assert (points.num_cells, points.correlated) == (256, ("y", "x"))
    # normal scores with correlation r have the rank correlation 6 / pi asin(r / 2) (Pearson 1907): 0.786 for 0.8
    ranks = points.values.argsort(axis=0).argsort(axis=0)
    order = [points.names.index(name) for name in ("x", "y", "count")]
    found = np.corrcoef(ranks.T)[np.ix_(order, order)]
    assert found[0, 1] == pytest.approx(0.786, abs=0.02)
    assert np.histogram(column(points, "x"), bins=8, range=(0, 10))[0] == pytest.approx([32] * 8, abs=6)


@pytest.mark.parametrize("points", [-1, 1, 100])
def test_a_number_of_points_that_is_no_power_of_two_is_refused(points: int) -> None:
    expected = f"expected a power of 2, at least 2, got {points}; [0-9]+ is near"
    for rules in ({"x": Uniform(0, 10)}, CORRELATED):
        with pytest.raises(ConfigError, match=f"`sobol`: {expected}"):
            by_quantile(rules, points)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(ConfigError, match="`sobol=524288` has 1,572,864 cells"):
        by_quantile({"x": Uniform(0, 10), "switch": 1}, 2**19)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [({}, False), ({"x": 3}, False), ({"switch": Bernoulli(0.0)}, False), ({"x": 3, "y": Uniform(0, 1)}, True)],
)
def test_a_randomization_varies_if_a_parameter_can_have_two_values(rules: Any, expected: bool) -> None:
    assert ranges.varies(SPACE, Randomization(rules)) == expected


@pytest.mark.parametrize(
    "made",
    [
        CellSet.nominal(3),
        CellSet.of_draws("training", Randomization({"gravity": (-11, -9)}), 4),
        CellSet.grid(LUNAR_LANDER, {"gravity": [-10, -5], "wind_power": [0, 20]}, 2),
        by_quantile({"x": Scale(Uniform(0.5, 2)), "y": Add(Normal(0, 1, low=-2)), "count": 3}, 8),
        by_quantile(CORRELATED, 8),
    ],
    ids=lambda made: made.kind,
)
def test_json_gives_an_equal_set_back(made: CellSet) -> None:
    again = CellSet.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    assert again.to_dict() == made.to_dict()
    np.testing.assert_array_equal(again.values, made.values)
    assert (again.names, again.fixed, again.randomization) == (made.names, made.fixed, made.randomization)
    assert (again.points, again.correlated) == (made.points, made.correlated)


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "grid", "axes": {f"p{i}": [0.0, 1.0] for i in range(60)}},
        {
            "kind": "sobol",
            "space": {"gravity": {"nominal": -10.0}},
            "randomization": {"gravity": {"distribution": "uniform", "low": -12.0, "high": -8.0}},
            "fixed": {},
            "points": 2**40,
        },
    ],
    ids=lambda form: str(form["kind"]),
)
def test_a_set_in_a_strangers_file_takes_no_memory(form: dict[str, Any]) -> None:
    found = CellSet.from_dict({"name": "sent", "episodes": 1, **form})
    with pytest.raises(ConfigError, match=r"cells; expected at most 1,000,000"):
        _ = found.num_cells


def test_fixed_values_are_one_cell_and_replace_draws_of_a_distribution() -> None:
    alone = CellSet.of_values("low", {"gravity": -3.0}, 2)
    assert (alone.num_cells, alone.cell(0), alone.randomization) == (1, {"gravity": -3.0}, None)
    drawn = CellSet.of_draws("drawn", Randomization({"gravity": (-11, -9), "wind_power": (0, 20)}), 2, alone.fixed)
    assert set(drawn.parameters) == {"gravity", "wind_power"}
    assert {name: values.tolist() for name, values in drawn.draws.values.items()} == {"gravity": [-3.0, -3.0]}
    for one in (alone, drawn):
        assert CellSet.from_dict(one.to_dict()).to_dict() == one.to_dict()
