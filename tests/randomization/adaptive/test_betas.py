"""Beta distributions: formulas against scipy and finite differences, the solver against trust-constr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from gym_dr.arrays import Array
from gym_dr.randomization.adaptive import betas
from gym_dr.randomization.adaptive.betas import AtLeast, Function

OLD = np.array([[3.0, 5.0], [20.0, 4.0]])
NEW = np.array([[2.0, 2.5], [15.0, 6.0]])
EVENLY = (np.arange(500) + 0.5) / 500
Z = np.stack([stats.beta(*OLD[0]).ppf(EVENLY), stats.beta(*OLD[1]).ppf(np.random.default_rng(0).permutation(EVENLY))])


def test_entropy_is_that_of_scipy_and_0_for_the_box() -> None:
    assert betas.entropy(OLD)[0] == pytest.approx(sum(float(stats.beta(a, b).entropy()) for a, b in OLD))
    assert betas.entropy(np.ones((3, 2)))[0] == pytest.approx(0.0, abs=1e-12)


def test_divergence_is_the_mean_logarithm_of_the_ratio_of_densities() -> None:
    expected = 0.0
    for (a0, b0), (a, b) in zip(OLD, NEW, strict=True):
        old, new = stats.beta(a0, b0), stats.beta(a, b)
        expected += old.expect(lambda z, old=old, new=new: old.logpdf(z) - new.logpdf(z))
    assert betas.divergence(OLD, NEW)[0] == pytest.approx(expected)
    assert betas.divergence(OLD, OLD)[0] == pytest.approx(0.0, abs=1e-12)


def test_weights_are_ratios_of_densities() -> None:
    densities = [
        np.prod([stats.beta(*ab).pdf(z) for ab, z in zip(shape, Z, strict=True)], axis=0) for shape in (NEW, OLD)
    ]
    np.testing.assert_allclose(betas.weights(OLD, NEW, Z), densities[0] / densities[1])


def test_the_effective_sample_size_counts_equal_weights() -> None:
    assert betas.effective_sample_size(np.full(7, 0.3)) == pytest.approx(7)
    assert betas.effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0])) == pytest.approx(2)


def test_an_expectation_under_another_shape_is_estimated() -> None:
    # of z_0, whose mean under Beta(2.5, 4) is 2.5 / 6.5, and under Beta(3, 5) was 3 / 8 = 0.375
    near = np.array([[2.5, 4.0], [19.0, 4.0]])
    assert betas.expectation(OLD, Z, Z[0])(near)[0] == pytest.approx(2.5 / 6.5, abs=0.004)


@pytest.mark.parametrize(
    "function",
    [betas.entropy, lambda new: betas.divergence(OLD, new), betas.expectation(OLD, Z, Z[0] * (Z[1] < 0.8))],
    ids=["entropy", "divergence", "expectation"],
)
def test_gradients_are_those_of_finite_differences(function: Function) -> None:
    def value(x: Array) -> float:
        return function(x.reshape(2, 2))[0]

    np.testing.assert_allclose(function(NEW)[1].ravel(), optimize.approx_fprime(NEW.ravel(), value, 1e-6), atol=1e-5)


def test_ranges_are_fitted_by_mean_and_variance() -> None:
    (a, b), box, (c, d) = betas.fitted(np.array([(0.1, 0.5), (0.0, 1.0), (0.0, 0.1)]))
    assert stats.beta(a, b).stats() == (pytest.approx(0.3), pytest.approx(0.4**2 / 12))
    np.testing.assert_allclose(box, (1.0, 1.0))
    assert stats.beta(c, d).mean() == pytest.approx(0.05)


def by_trust_constr(goal: Function, constraints: list[AtLeast], start: Array, highest: float) -> Array:
    """The same problem given to the solver that the authors use."""

    def of_log(function: Function, sign: float = 1.0) -> tuple[Callable[[Array], Any], Callable[[Array], Any]]:
        def at(x: Array) -> tuple[float, Array]:
            value, gradient = function(np.exp(x).reshape(start.shape))
            return sign * value, sign * gradient.ravel() * np.exp(x)

        return lambda x: at(x)[0], lambda x: at(x)[1]

    value, slope = of_log(goal, -1.0)
    limits = optimize.Bounds(np.zeros(start.size), np.full(start.size, np.log(highest)))
    conditions = []
    for constraint in constraints:
        left, jacobian = of_log(constraint.function)
        conditions.append(optimize.NonlinearConstraint(left, constraint.lowest, np.inf, jac=jacobian))
    options = {"gtol": 1e-6, "xtol": 1e-9, "maxiter": 3000}
    x0 = np.log(start).ravel()
    found = optimize.minimize(
        value, x0, jac=slope, method="trust-constr", bounds=limits, constraints=conditions, options=options
    )
    return np.exp(found.x).reshape(start.shape)


SUCCESSES = (Z[0] + 0.3 * Z[1] < 0.65).astype(float)  # 61 % of the draws
PROBLEMS = {
    "entropy": (betas.entropy, [betas.trust_region(OLD, 0.1)]),
    "entropy and success": (
        betas.entropy,
        [betas.trust_region(OLD, 0.1), AtLeast(betas.expectation(OLD, Z, SUCCESSES), 0.6)],
    ),
    "success": (betas.expectation(OLD, Z, SUCCESSES), [betas.trust_region(OLD, 0.05)]),
}


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_solver_finds_what_trust_constr_finds(name: str) -> None:
    goal, constraints = PROBLEMS[name]
    ours = betas.maximized(goal, constraints, OLD, 30.0)
    theirs = by_trust_constr(goal, constraints, OLD, 30.0)
    assert ours is not None
    assert all(constraint.holds(ours) for constraint in constraints)
    assert goal(ours)[0] >= goal(theirs)[0] - 1e-4
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_where_nothing_is_better_than_the_start_there_is_no_answer() -> None:
    assert betas.maximized(betas.entropy, [betas.trust_region(OLD, 0.1)], np.ones((2, 2)), 30.0) is None
