"""Particles are draws of posteriors that are known otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.fitting.particles import UnconstrainedTransform, tempered_particles, unconstrained
from gym_dr.fitting.prior import Prior, make_prior
from gym_dr.randomization.distributions import LogUniform, Normal
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Correlation, Randomization, Scale
from tests.strategies import few, intervals

Points = npt.NDArray[np.float64]
# standard errors of a mean and a deviation of 2000 independent particles are 2.2 and 1.6 % of the deviation;
# resampled ones are not quite independent
CLOSE = 0.12


def cube(dimensions: int) -> UnconstrainedTransform:
    """Coordinates of the cube itself."""
    uniforms = np.linspace(0.0, 1.0, 101)
    return UnconstrainedTransform(uniforms=uniforms, images=np.repeat(uniforms[None], dimensions, axis=0))


def sampled(log_likelihood: Any, transform: UnconstrainedTransform, seed: int = 0, **options: Any) -> Points:
    rng = np.random.default_rng(seed)
    return tempered_particles(log_likelihood, transform, rng, **{"count": 2000, "moves": 6, **options})


def test_a_gaussian_in_the_middle_keeps_its_mean_and_covariance() -> None:
    mean, covariance = np.array([0.5, 0.4]), np.array([[4e-4, 3e-4], [3e-4, 9e-4]])
    found = sampled(scipy.stats.multivariate_normal(mean, covariance).logpdf, cube(2))
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((found.mean(axis=0) - mean) / deviations, 0.0, atol=CLOSE)
    np.testing.assert_allclose(np.cov(found.T) / np.outer(deviations, deviations), [[1, 0.5], [0.5, 1]], atol=CLOSE)


def test_a_gaussian_beyond_a_wall_is_truncated_there() -> None:
    # its center is the corner u = 0, so half a normal is left: mean sqrt(2 / pi), deviation sqrt(1 - 2 / pi)
    found = sampled(lambda u: -0.5 * np.square(u[:, 0] / 0.1), cube(1))[:, 0]
    assert found.min() > 0.0
    np.testing.assert_allclose([found.mean() / 0.1, found.std() / 0.1], [0.798, 0.603], atol=0.06)


def test_a_flat_likelihood_leaves_the_prior() -> None:
    found = sampled(lambda u: np.zeros(len(u)), cube(2))
    assert scipy.stats.kstest(found[:, 0], "uniform").statistic < 0.04
    assert scipy.stats.kstest(found[:, 1], "uniform").statistic < 0.04


def test_a_flat_likelihood_is_uniform_in_the_cube_in_any_coordinates() -> None:
    # the walk's coordinates are logarithms, whose slopes must not remain in the result
    space = ParamSpace("toy", [Param(name="g", nominal=1.0, low=0.0, high=100.0)])
    transform = unconstrained(make_prior(space, None, {"g": (0.1, 100.0)}, {}))
    found = sampled(lambda u: np.zeros(len(u)), transform, moves=20)[:, 0]
    assert scipy.stats.kstest(found, "uniform").statistic < 0.04


def test_a_ratio_that_is_known_well_leaves_a_valley_and_its_whole_length() -> None:
    """Of g / l = 9.8 to 1 %, with g from 4 to 16 and l from 0.4 to 1.6: a thin line across the square."""
    space = ParamSpace(
        "toy", [Param(name="g", nominal=9.8, low=1.0, high=50.0), Param(name="l", nominal=1.0, low=0.1, high=5.0)]
    )
    prior = make_prior(space, None, {"g": (4.0, 16.0), "l": (0.4, 1.6)}, {})

    def log_likelihood(u: Points) -> Points:
        values = prior.values(u)
        found: Points = -0.5 * np.square(np.log(values["g"] / values["l"] / 9.8) / 0.01)
        return found

    values = prior.values(sampled(log_likelihood, unconstrained(prior)))
    ratio = np.log(values["g"] / values["l"] / 9.8)
    np.testing.assert_allclose([ratio.mean() / 0.01, ratio.std() / 0.01], [0.0, 1.0], atol=CLOSE)
    # the prior is flat in g and l, and a strip around g = 9.8 l of constant relative width is l wide: density ~ l from
    # 4 / 9.8 to 1.6
    low, high = 4.0 / 9.8, 1.6
    quantiles = (np.sort(values["l"]) ** 2 - low**2) / (high**2 - low**2)
    assert scipy.stats.kstest(quantiles, "uniform").statistic < 0.06


def test_two_peaks_keep_their_shares() -> None:
    # 3 to 1
    def log_likelihood(u: Points) -> Points:
        parts = [w * scipy.stats.norm(m, 0.02).pdf(u[:, 0]) for w, m in ((0.75, 0.2), (0.25, 0.8))]
        found: Points = np.log(sum(parts) + 1e-300)
        return found

    found = sampled(log_likelihood, cube(1))[:, 0]
    np.testing.assert_allclose((found < 0.5).mean(), 0.75, atol=0.06)


def test_the_same_generator_gives_the_same_particles() -> None:
    one, other = (sampled(lambda u: -9.0 * u[:, 0], cube(1), seed=3, count=100) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_without_parameters_there_are_empty_points() -> None:
    assert sampled(lambda u: np.zeros(len(u)), cube(0), count=5).shape == (5, 0)


# ---- coordinates of the walk -----------------------------------------------------------------------------------------

TOY = ParamSpace(
    "toy",
    [
        Param(name="g", nominal=9.8, low=0.0, high=50.0),
        Param(name="l", nominal=1.0, low=0.01, high=5.0),
        Param(name="lift", nominal=-10.0, low=-50.0, high=0.0),
        Param(name="drift", nominal=0.0, low=-5.0, high=5.0),
    ],
)


def prior(**asked: Any) -> Prior:
    return make_prior(TOY, None, asked, {})


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
    np.testing.assert_allclose(unconstrained(make_prior(TOY, None, tied, {})).forward(u), u, atol=1e-12)


def test_a_prior_whose_values_stand_still_keeps_its_uniforms() -> None:
    # a clipped normal has 16 % of its mass at each end, where no map back exists
    clipped = unconstrained(prior(g=Normal(5.0, 1.0, 4.0, 6.0, method="clip")))
    np.testing.assert_allclose(clipped.forward(np.array([[0.05], [0.5]])), [[0.05], [0.5]], atol=1e-12)


def test_only_images_of_points_are_inside() -> None:
    transform = unconstrained(prior(g=(2.0, 8.0), drift=(-1.0, 1.0)))
    places = np.array([[0.0, np.log(3.0)], [0.0, np.log(9.0)], [-1.5, np.log(3.0)]])  # in the order of names
    assert transform.inside(places).tolist() == [True, False, False]


def test_without_parameters_there_is_nothing_to_map() -> None:
    transform = unconstrained(make_prior(TOY, None, {"obs_noise": (0.0, 1.0)}, {}))
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
