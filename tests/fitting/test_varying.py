"""Systems that vary between episodes: their distribution comes out of the estimates of single episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gym_dr.fitting.varying import draw_points, population

Numbers = npt.NDArray[np.float64]
MEAN, COVARIANCE = np.array([0.4, 0.6]), np.array([[0.01, 0.006], [0.006, 0.008]])
BOTH = np.ones(2, np.bool_)
SURE = np.diag([1e4, 4e3])  # information of an episode: deviations of 0.01 and 0.016


def episodes(count: int, information: Any, seed: int = 0) -> tuple[Numbers, Numbers]:
    """Estimates of episodes whose parameters are normal, each with an error of its own."""
    rng = np.random.default_rng(seed)
    truth = rng.multivariate_normal(MEAN, COVARIANCE, count)
    whole = np.broadcast_to(information, (count, 2, 2))
    errors = np.stack([rng.multivariate_normal(np.zeros(2), np.linalg.inv(each)) for each in whole])
    return truth + errors, whole.copy()


def test_mean_and_covariance_of_many_episodes_are_recovered() -> None:
    mean, covariance, _ = population(*episodes(800, SURE), BOTH)
    # standard errors: 0.1 / sqrt(800) = 0.0035 of means, and 5 % of variances
    np.testing.assert_allclose(mean, MEAN, atol=0.011)
    np.testing.assert_allclose(covariance, COVARIANCE, atol=0.0015)


def test_errors_of_the_estimates_are_no_variation() -> None:
    # errors of 0.1, as large as the variation: the estimates' own covariance is twice as large
    points, information = episodes(1500, np.diag([100.0, 125.0]))
    assert np.cov(points.T)[0, 0] > 1.8 * COVARIANCE[0, 0]
    _, covariance, _ = population(points, information, BOTH)
    np.testing.assert_allclose(covariance, COVARIANCE, atol=0.0025)


def test_a_system_that_does_not_vary_has_hardly_any_variation() -> None:
    rng = np.random.default_rng(0)
    points = MEAN + rng.standard_normal((200, 2)) * 0.01
    mean, covariance, _ = population(points, np.broadcast_to(np.eye(2) * 1e4, (200, 2, 2)), BOTH)
    np.testing.assert_allclose(mean, MEAN, atol=0.003)
    assert np.sqrt(np.diag(covariance)).max() < 0.01


def test_directions_that_an_episode_cannot_tell_come_from_the_others() -> None:
    # every second episode tells the first parameter alone, the others the second alone: means are those of the others
    count = 1000
    information = np.where((np.arange(count) % 2)[:, None, None] == 0, np.diag([1e4, 0.0]), np.diag([0.0, 1e4]))
    points = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, count)
    points[::2, 1] = points[1::2, 0] = 0.9  # what is not told says nothing
    mean, covariance, _ = population(points, information, BOTH)
    np.testing.assert_allclose(mean, MEAN, atol=0.015)
    np.testing.assert_allclose(np.diag(covariance), np.diag(COVARIANCE), rtol=0.25)


@pytest.mark.parametrize("count", [2, 3, 6, 40])
def test_a_parameter_that_no_episode_tells_keeps_its_prior(count: int) -> None:
    points, _ = episodes(count, SURE)
    points[:, 1] = np.linspace(0.1, 0.9, count)  # which says nothing
    found = population(points, np.broadcast_to(np.diag([1e4, 0.0]), (count, 2, 2)), BOTH)
    silent = draw_points(*found, 4000, np.random.default_rng(0))[:, 1]
    assert silent.mean() == pytest.approx(0.5, abs=0.02)
    assert 0.92 < silent.std() / np.sqrt(1.0 / 12.0) < 1.0
    assert np.mean((silent < 0.05) | (silent > 0.95)) < 0.12  # a uniform has 0.1


def test_errors_of_a_few_estimates_are_no_variation_either() -> None:
    # six episodes with errors of 0.1, whose variance is 0.01, and no variation: on average over 100 such systems
    points, information = np.full((100, 6, 1), 0.5), np.full((6, 1, 1), 100.0)
    points += 0.1 * np.random.default_rng(0).standard_normal(points.shape)
    assert np.mean([population(each, information, BOTH[:1])[1][0, 0] for each in points]) < 0.5 * 0.01


def test_the_mean_is_as_uncertain_as_episodes_are_few() -> None:
    _, _, few = population(*episodes(5, SURE), BOTH)
    _, _, many = population(*episodes(500, SURE), BOTH)
    # of one parameter alone 0.01 / 500 = 2e-5
    assert many[0, 0] == pytest.approx(2e-5, rel=0.3)
    assert few[0, 0] > 20 * many[0, 0]


def test_two_episodes_are_enough_for_a_distribution() -> None:
    mean, covariance, uncertain = population(*episodes(2, SURE), BOTH)
    assert np.isfinite(mean).all()
    assert (np.linalg.eigvalsh(covariance) > 0).all()
    assert (np.linalg.eigvalsh(uncertain) > 0).all()


def test_what_all_episodes_share_is_as_sure_as_all_of_them_make_it() -> None:
    rng = np.random.default_rng(0)
    truth = np.stack([rng.normal(0.4, 0.1, 400), np.full(400, 0.6)], axis=1)
    information = np.broadcast_to([[1e4, -5e3], [-5e3, 4e3]], (400, 2, 2))  # estimates' errors are correlated
    points = truth + rng.multivariate_normal(np.zeros(2), np.linalg.inv(information[0]), 400)
    mean, covariance, uncertain = population(points, information, np.array([True, False]))
    np.testing.assert_allclose(np.sqrt(covariance[0, 0]), 0.1, rtol=0.15)
    assert (covariance[1] == 0.0).all()
    assert abs(mean[1] - 0.6) < 4 * np.sqrt(uncertain[1, 1])
    # the length of each episode is its own, so each tells the other as well as without knowing it
    assert uncertain[1, 1] == pytest.approx(np.linalg.inv(information[0])[1, 1] / 400, rel=0.1)


def test_draws_have_the_mean_and_both_covariances_together() -> None:
    points = draw_points(MEAN, COVARIANCE, 0.2 * COVARIANCE, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(points.mean(axis=0), MEAN, atol=0.005)
    np.testing.assert_allclose(np.cov(points.T), 1.2 * COVARIANCE, atol=5e-4)


def test_draws_stay_inside_of_the_prior() -> None:
    points = draw_points(np.array([0.02, 0.97]), 4 * COVARIANCE, np.zeros((2, 2)), 500, np.random.default_rng(0))
    assert points.shape == (500, 2)
    assert ((points > 0.0) & (points < 1.0)).all()


def test_a_distribution_beyond_the_prior_is_drawn_at_its_edge() -> None:
    points = draw_points(np.array([5.0]), np.array([[1e-4]]), np.zeros((1, 1)), 50, np.random.default_rng(0))
    np.testing.assert_allclose(points, 1.0, atol=1e-5)
