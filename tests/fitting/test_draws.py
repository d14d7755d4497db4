"""Draws of posteriors that are known otherwise, from a quadratic likelihood that is wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from gym_dr.fitting.draws import Draws, _straightest, _weighted
from gym_dr.fitting.particles import UnconstrainedTransform, unconstrained
from gym_dr.fitting.prior import make_prior
from gym_dr.randomization.space import Param, ParamSpace

Points = npt.NDArray[np.float64]
SPACE = ParamSpace("toy", [Param(name=name, nominal=1.0, low=0.0, high=10.0) for name in ("a", "b")])
PRIOR = make_prior(SPACE, None, {"a": (0.0, 10.0), "b": (0.0, 10.0)}, {})


def estimate_at(values: Any, stds: Any) -> Any:
    """A maximum at values in the prior's range, with standard deviations, quadratic in any coordinates."""
    u, information = np.array(values) / 10.0, np.diag(1.0 / np.square(np.array(stds) / 10.0))

    def quadratic(points: Points, transform: UnconstrainedTransform) -> Points:
        slope = transform.slope(u[None])[0]
        moved = transform.forward(points) - transform.forward(u[None])
        found: Points = -0.5 * np.einsum("ci,ij,cj->c", moved, information * np.outer(slope, slope), moved)
        return found

    return SimpleNamespace(u=u, quadratic=quadratic)


def weighted(exact: Any, estimate: Any, count: int = 1000) -> Draws:
    rng = np.random.default_rng(0)
    return _weighted(exact, estimate, unconstrained(PRIOR, False), rng, count, lambda _: None)


def test_weights_correct_a_quadratic_that_is_off_and_too_narrow() -> None:
    found = weighted(lambda u: scipy.stats.norm(0.45, 0.04).logpdf(u).sum(axis=1), estimate_at([4.0, 5.0], [0.2, 0.2]))
    np.testing.assert_allclose((found.points.mean(axis=0) - 0.45) / 0.04, 0.0, atol=0.12)
    np.testing.assert_allclose(found.points.std(axis=0) / 0.04, 1.0, atol=0.12)
    assert not found.warning


def test_draws_that_hardly_count_are_called_approximate() -> None:
    def thin(u: Points) -> Points:  # a curved ridge, a thousandth as wide as long
        return np.asarray(-0.5 * np.square((u[:, 1] - 40.0 * np.square(u[:, 0] - 0.5) - 0.3) / 1e-4))

    found = weighted(thin, estimate_at([5.0, 3.0], [2.0, 2.0]), 200)
    assert "approximate" in found.warning


def test_coordinates_are_those_in_which_the_likelihood_is_quadratic() -> None:
    # of a small coefficient as it is, of a large one its logarithm
    estimate: Any = estimate_at([0.2, 5.0], [0.1, 2.5])

    def exact(u: Points) -> Points:
        return np.asarray(-0.5 * np.square((u[:, 0] - 0.02) / 0.01) - 0.5 * np.square(np.log(u[:, 1] / 0.5) / 0.5))

    rng = np.random.default_rng(0)
    found = _straightest(SimpleNamespace(prior=PRIOR), estimate, exact, rng)  # type: ignore[arg-type]
    logs, plain = unconstrained(PRIOR), unconstrained(PRIOR, False)
    np.testing.assert_array_equal(found.images[0], plain.images[0])
    np.testing.assert_array_equal(found.images[1], logs.images[1])
    points = rng.uniform(0.01, 0.9, (50, 2))
    assert estimate.quadratic(points, found) == pytest.approx(exact(points), rel=1e-2, abs=0.02)
