from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gym_dr.evaluation import ranges
from gym_dr.evaluation.sensitivity import SobolIndices, orthonormal, sobol_indices
from tests.evaluation.points import points_in

LEVELS = (np.arange(4096) + 0.5) / 4096


def estimate(
    function: Callable[..., Any], d: int, points: int, *, noise: float = 0.0, repeats: int = 1, seed: int = 0
) -> SobolIndices | None:
    """SobolIndices of a function of d parameters that are uniform in [0, 1]; ``noise`` is a standard deviation."""
    layout = points_in({f"x{i}": (0.0, 1.0) for i in range(d)}, points, repeats)
    exact = np.broadcast_to(function(*layout.values.T), len(layout.values))
    outputs = exact[:, None] + np.random.default_rng(seed).normal(0.0, noise, (len(exact), repeats))
    values = layout.values.reshape(d + 2, points, d)
    functions = [orthonormal(values[..., i], LEVELS) for i in range(d)]
    return sobol_indices(outputs.reshape(d + 2, points, repeats), functions, min(points, ranges.SEQUENCES))


def check(found: SobolIndices | None, first: Sequence[float], total: Sequence[float], within: float) -> None:
    assert found is not None
    np.testing.assert_allclose(found.first_order[:, 0], first, atol=within)
    np.testing.assert_allclose(found.total[:, 0], total, atol=within)
    for ends, true in ((found.first_order, first), (found.total, total)):
        assert (ends[:, 1] - 1e-9 <= true).all()
        assert (np.array(true) <= ends[:, 2] + 1e-9).all()


def test_a_polynomial_is_found_to_the_last_digits() -> None:
    # variances: 1/12 of x, 4/12 of 2 y, and (1/12)^2 of a centered product, times 12: 1, 4, 1/12
    found = estimate(lambda x, y, z: x + 2 * y + (x - 0.5) * (y - 0.5) + 0 * z, 3, 64)
    whole = 5 + 1 / 12
    check(found, [1 / whole, 4 / whole, 0], [(1 + 1 / 12) / whole, (4 + 1 / 12) / whole, 0], within=1e-6)


def test_jumps_that_no_polynomial_expresses_are_found_from_pairs() -> None:
    # x < 1/4 and y < 1/4 both: mean 1/16, variance 15/256; alone, each has (1/4)^2 (1/4)(3/4) = 3/256; rest 9/256
    found = estimate(lambda x, y, z: ((x < 0.25) & (y < 0.25)) + 0 * z, 3, 512)
    check(found, [3 / 15, 3 / 15, 0], [12 / 15, 12 / 15, 0], within=0.03)


def test_a_wave_that_is_too_fast_for_polynomials_is_found_from_pairs() -> None:
    # 40 periods: beyond degree 16; variances 1/2 and 1/2 (1/2 of the square of a sine each)
    found = estimate(lambda x, y: np.sin(2 * np.pi * 40 * x) + np.sin(2 * np.pi * y), 2, 1024)
    check(found, [0.5, 0.5], [0.5, 0.5], within=0.1)


def test_many_parameters_without_effect_get_nothing() -> None:
    found = estimate(lambda *x: x[0] + 0 * x[1], 9, 128, noise=0.5, repeats=5)
    check(found, [1 / 1.6] + [0.0] * 8, [1 / 1.6] + [0.0] * 8, within=0.05)  # noise: (1/4 / 5) / (1/12) = 0.6 of it
    assert found is not None
    assert found.noise == pytest.approx(0.6 / 1.6, abs=0.03)


def test_where_all_is_chance_no_parameter_has_a_share() -> None:
    found = estimate(lambda *x: 0.0, 3, 128, noise=1.0, repeats=5)
    check(found, [0.0] * 3, [0.0] * 3, within=0.1)
    assert found is not None
    assert found.noise == pytest.approx(1.0, abs=0.1)


def test_estimates_of_nothing_are_below_0_as_often_as_above() -> None:
    values = []
    for seed in range(60):
        found = estimate(lambda x, y: x + 0 * y, 2, 16, noise=0.5, repeats=4, seed=seed)
        assert found is not None
        values.append(found.total[1, 0])
    assert (
        15 <= sum(value < 0.0 for value in values) <= 45
    )  # 30, and almost four standard deviations of 3.9 to either side


@pytest.mark.parametrize(
    "quantiles",
    [LEVELS, np.exp(3 * LEVELS), np.clip(LEVELS, 0.25, 0.5), np.floor(3 * LEVELS), (LEVELS > 0.75) * 1.0],
    ids=["uniform", "skewed", "clipped", "whole", "switch"],
)
def test_polynomials_are_orthonormal_under_the_distribution(quantiles: Any) -> None:
    found = orthonormal(quantiles, quantiles)
    count = found.shape[-1]
    np.testing.assert_allclose(found.mean(0), np.zeros(count), atol=1e-6)
    np.testing.assert_allclose(found.T @ found / len(found), np.eye(count), atol=1e-6)


def test_the_polynomial_of_a_switch_is_its_standardized_value() -> None:
    # on in a quarter of draws: mean 1/4, standard deviation sqrt(3)/4
    found = orthonormal(np.array([0.0, 1.0]), (LEVELS >= 0.75) * 1.0)
    assert found.shape == (2, 1)
    np.testing.assert_allclose(np.abs(found[:, 0]), [1 / 3**0.5, 3**0.5], rtol=1e-9)
    assert found[0, 0] * found[1, 0] < 0
