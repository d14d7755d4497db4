"""Coordinates in which ratios and products are straight lines: logarithms where a parameter has one sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.fitting.prior import Prior, make_prior
from gym_dr.fitting.unconstrained import unconstrained
from gym_dr.randomization.distributions import LogUniform, Normal
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Correlation, Randomization, Scale
from tests.strategies import few, intervals

SPACE = ParamSpace(
    "toy",
    [
        Param(name="g", nominal=9.8, low=0.0, high=50.0),
        Param(name="l", nominal=1.0, low=0.01, high=5.0),
        Param(name="lift", nominal=-10.0, low=-50.0, high=0.0),
        Param(name="drift", nominal=0.0, low=-5.0, high=5.0),
    ],
)


def prior(**asked: Any) -> Prior:
    return make_prior(SPACE, None, asked, {})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"g": (2.0, 8.0)}, np.log(5.0)),  # u = 0.5 is 5
        ({"lift": (-12.0, -6.0)}, -np.log(9.0)),  # -9; log 9 falls as u rises, so it counts as -log 9
        ({"drift": (-2.0, 4.0)}, 1.0),
    ],
    ids=["positive", "negative", "both signs"],
)
def test_a_parameter_of_one_sign_becomes_its_logarithm(asked: Any, expected: float) -> None:
    np.testing.assert_allclose(unconstrained(prior(**asked)).forward(np.array([[0.5]])), [[expected]], atol=1e-6)


def test_the_slope_of_a_logarithm_is_the_value_over_the_range() -> None:
    # x = 2 + 6 u, y = log x: du/dy = x / 6, which is 5 / 6 in the middle
    transform = unconstrained(prior(g=(2.0, 8.0)))
    np.testing.assert_allclose(transform.slope(np.array([[0.5]])), [[5.0 / 6.0]], rtol=1e-3)


def test_a_correlated_prior_keeps_its_uniforms() -> None:
    rules = {"g": (8.0, 12.0), "l": (0.5, 2.0)}
    tied = Randomization(rules, correlation=Correlation(("g", "l"), ((1.0, 0.5), (0.5, 1.0))))
    u = np.array([[0.2, 0.9]])
    np.testing.assert_allclose(unconstrained(make_prior(SPACE, None, tied, {})).forward(u), u, atol=1e-12)


def test_a_prior_whose_values_stand_still_keeps_its_uniforms() -> None:
    # a clipped normal has 16 % of its mass at each end, where no map back exists
    clipped = unconstrained(prior(g=Normal(5.0, 1.0, 4.0, 6.0, method="clip")))
    np.testing.assert_allclose(clipped.forward(np.array([[0.05], [0.5]])), [[0.05], [0.5]], atol=1e-12)


def test_only_images_of_points_are_inside() -> None:
    transform = unconstrained(prior(g=(2.0, 8.0), drift=(-1.0, 1.0)))
    places = np.array([[0.0, np.log(3.0)], [0.0, np.log(9.0)], [-1.5, np.log(3.0)]])  # in the order of names
    assert transform.inside(places).tolist() == [True, False, False]


def test_without_parameters_there_is_nothing_to_map() -> None:
    transform = unconstrained(make_prior(SPACE, None, {"obs_noise": (0.0, 1.0)}, {}))
    assert transform.forward(np.empty((3, 0))).shape == (3, 0)


PRIORS: dict[str, Any] = {
    "log-uniform": {"l": LogUniform(0.1, 4.0)},
    "truncated normal": {"g": Normal(9.0, 2.0, 5.0, 12.0, method="truncate")},
    "scaled": {"g": Scale((0.5, 1.5))},
    "scaled negative": {"lift": Scale((0.5, 1.5))},  # falls with u
    "signed": {"drift": (-2.0, 3.0)},
    "several": {"g": (1.0, 20.0), "lift": (-40.0, -1.0), "drift": (-1.0, 2.0)},
}


@pytest.mark.parametrize("asked", PRIORS.values(), ids=list(PRIORS))
def test_there_and_back_is_where_it_began(asked: Any) -> None:
    transform = unconstrained(prior(**asked))
    u = np.random.default_rng(0).uniform(0.001, 0.999, (200, len(asked)))
    np.testing.assert_allclose(transform.inverse(transform.forward(u)), u, atol=1e-9)


@pytest.mark.parametrize("asked", PRIORS.values(), ids=list(PRIORS))
def test_slopes_are_differences_of_the_way_back(asked: Any) -> None:
    transform = unconstrained(prior(**asked))
    # inside a cell of the table, which is 1 / 4000 wide, the map is linear
    u = (np.random.default_rng(0).integers(1, 3998, (50, len(asked))) + 0.5) / 4000
    there = transform.forward(u)
    near = transform.forward(u + 1e-5)
    np.testing.assert_allclose(transform.slope(u), 1e-5 / (near - there), rtol=1e-5)


@few
@given(intervals(-20.0, 20.0), st.lists(st.floats(1e-6, 1.0 - 1e-6), min_size=1, max_size=5))
def test_any_range_maps_there_and_back(ends: tuple[float, float], points: list[float]) -> None:
    space = ParamSpace("toy", [Param(name="x", nominal=0.0, low=-20.0, high=20.0)])
    transform = unconstrained(make_prior(space, None, {"x": ends}, {}))
    u = np.array(points)[:, None]
    there = transform.forward(u)
    np.testing.assert_allclose(transform.inverse(there), u, atol=1e-8)
    assert (np.diff(there[np.argsort(points), 0]) >= 0).all()
