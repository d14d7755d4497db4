"""From particles to a randomization: bounds, operations, priors that stay, margins and correlations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from gym_dr.fitting.posterior import delay_distribution, marginal, randomization_of
from gym_dr.fitting.prior import Prior, make_prior
from gym_dr.randomization.distributions import Choice, Constant, Distribution, Mixture, Normal
from gym_dr.randomization.files import load_randomization, randomization_text
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Add, Randomization, Scale

SPACE = ParamSpace(
    "toy",
    [
        Param(name="gravity", nominal=-10.0, low=-30.0, high=0.0),
        Param(name="length", nominal=0.5, low=0.01, high=5.0),
        Param(name="mass", nominal=2.0, low=0.1, high=10.0),
        Param(name="friction", nominal=0.1, low=0.0, high=1.0),
    ],
)
COUNT = 4000
Values = npt.NDArray[np.float64]


def prior(known: Any = None, **asked: Any) -> Prior:
    return make_prior(SPACE, None, asked, known or {})


def bell(mean: float, deviation: float) -> Values:
    """Quantiles of a normal distribution, in random order."""
    found: Values = scipy.stats.norm(mean, deviation).ppf((np.arange(COUNT) + 0.5) / COUNT)
    return np.random.default_rng(int(1000 * mean) % 97).permutation(found)


def fitted(given: Prior, margin: float = 1.0, contraction: float = 0.2, **values: Values) -> Randomization:
    return randomization_of(given, values, dict.fromkeys(values, contraction), {}, margin)


def drawn(distribution: Distribution) -> Values:
    return distribution.ppf((np.arange(COUNT) + 0.5) / COUNT)


# ---- one parameter ----


def test_a_bell_becomes_a_truncated_normal_within_the_priors_bounds() -> None:
    rule = fitted(prior(length=(0.2, 0.8)), length=bell(0.6, 0.05))["length"]
    assert isinstance(rule.distribution, Normal)
    assert rule.distribution.method == "truncate"
    assert rule.distribution.support == (0.2, 0.8)
    values = drawn(rule.distribution)
    np.testing.assert_allclose([values.mean(), values.std()], [0.6, 0.05], rtol=0.01)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("a wall", 0.2 + np.abs(bell(0.0, 0.05))),
        ("two peaks", np.concatenate([bell(0.3, 0.01)[::2], bell(0.7, 0.01)[::2]])),
        ("a range", np.linspace(0.3, 0.5, COUNT)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_is_no_bell_becomes_bins_of_its_quantiles(name: str, values: Values) -> None:
    rule = fitted(prior(length=(0.2, 0.8)), length=values)["length"]
    assert isinstance(rule.distribution, Mixture)
    low, high = rule.distribution.support
    assert 0.2 <= low < high <= 0.8
    # bins of 10 % each: their ends agree
    shares = np.arange(1, 10) / 10
    np.testing.assert_allclose(rule.distribution.ppf(shares), np.quantile(values, shares), atol=2e-3)


def test_particles_at_one_place_are_still_a_distribution_within_the_bounds() -> None:
    rule = fitted(prior(length=(0.2, 0.8)), length=np.full(COUNT, 0.8))["length"]
    np.testing.assert_allclose(drawn(rule.distribution), 0.8, rtol=1e-6)


@pytest.mark.parametrize("margin", [1.0, 2.0, 3.0])
def test_a_margin_widens_a_bell_by_that_factor(margin: float) -> None:
    found = drawn(fitted(prior(length=(0.1, 0.9)), margin, length=bell(0.5, 0.02))["length"].distribution)
    np.testing.assert_allclose([found.mean(), found.std()], [0.5, 0.02 * margin], rtol=0.02)


def test_a_margin_widens_bins_around_the_median_and_stops_at_the_bounds() -> None:
    # of 0.3 to 0.5 around 0.4: twice as wide is 0.2 to 0.6
    values = np.linspace(0.3, 0.5, COUNT)
    np.testing.assert_allclose(marginal(values, 0.0, 1.0, 2.0).support, (0.2, 0.6), atol=1e-6)
    low, high = marginal(values, 0.25, 1.0, 2.0).support
    assert low == 0.25
    assert high == pytest.approx(0.6)


# ---- operations ----


OPERATIONS: dict[str, tuple[str, Any, Values, float, float]] = {  # of which parameter, its rule, mean and deviation
    "factor": ("mass", Scale((0.5, 2.0)), bell(3.0, 0.1), 1.5, 0.05),  # 2 x 1.5 = 3, and 2 x 0.05 = 0.1
    "factor of a negative value": ("gravity", Scale((0.5, 2.0)), bell(-12.0, 0.5), 1.2, 0.05),
    "summand": ("mass", Add((-1.0, 2.0)), bell(2.5, 0.1), 0.5, 0.1),
}


@pytest.mark.parametrize(("name", "rule", "values", "mean", "deviation"), OPERATIONS.values(), ids=OPERATIONS)
def test_a_factor_stays_a_factor_and_a_summand_a_summand(
    name: str, rule: Any, values: Values, mean: float, deviation: float
) -> None:
    found = fitted(prior(**{name: rule}), **{name: values})[name]
    assert found.operation == rule.operation
    assert found.distribution.support == rule.distribution.support
    numbers = drawn(found.distribution)
    assert [numbers.mean(), numbers.std()] == pytest.approx([mean, deviation], rel=0.01)


# ---- what stays ----


def test_a_parameter_that_the_log_does_not_tell_keeps_its_prior_exactly() -> None:
    given = prior(length=Normal(0.5, 0.1, 0.2, 0.8), mass=(1.0, 3.0))
    values = {"length": bell(0.5, 0.1), "mass": bell(2.0, 0.1)}
    found = randomization_of(given, values, {"length": 0.95, "mass": 0.2}, {})
    assert found["length"] == given.randomization["length"]
    assert found["mass"] != given.randomization["mass"]


def test_a_margin_leaves_a_prior_that_stays_alone() -> None:
    given = prior(length=(0.2, 0.8))
    assert fitted(given, 3.0, 1.0, length=np.linspace(0.2, 0.8, COUNT))["length"] == given.randomization["length"]


def test_what_was_known_is_in_the_result_as_constants() -> None:
    found = fitted(prior({"mass": 3.5}, length=(0.2, 0.8), friction=0.25), length=bell(0.5, 0.01))
    assert found["mass"].distribution == Constant(3.5)
    assert found["friction"].distribution == Constant(0.25)


def test_disturbances_are_in_the_result() -> None:
    found = randomization_of(prior(length=(0.2, 0.8)), {}, {}, {"action_delay": Constant(2.0)})
    assert found["action_delay"].distribution == Constant(2.0)


# ---- correlation ----


def twins(rho: float) -> dict[str, Any]:
    """Values of length and mass whose normal scores have a correlation."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(COUNT)
    y = rho * x + np.sqrt(1.0 - rho**2) * rng.standard_normal(COUNT)
    return {"length": 0.5 + 0.02 * x, "mass": 2.0 + 0.1 * y}


@pytest.mark.parametrize("rho", [-0.95, 0.6, 0.999])
def test_correlations_are_close_to_those_of_the_particles(rho: float) -> None:
    values = twins(rho)
    found = fitted(prior(length=(0.2, 0.8), mass=(1.0, 3.0)), **values)
    assert found.correlation is not None
    assert found.correlation.names == ("length", "mass")
    matrix = np.asarray(found.correlation.matrix)
    assert matrix[0, 1] == matrix[1, 0] == pytest.approx(np.corrcoef(*values.values())[0, 1], abs=0.01)


def test_correlations_are_of_ranks_so_that_no_shape_of_a_distribution_matters() -> None:
    values = twins(0.8)
    bent = {"length": 0.2 + 0.01 * np.exp(10 * (values["length"] - 0.5)), "mass": values["mass"]}
    given = prior(length=(0.2, 0.8), mass=(1.0, 3.0))
    one, other = (fitted(given, **each).correlation for each in (values, bent))
    assert one is not None
    assert one == other


def test_values_that_are_one_anothers_copies_have_a_correlation_that_can_be_used() -> None:
    same = bell(0.5, 0.02)
    found = fitted(prior(length=(0.2, 0.8), mass=(0.2, 0.8)), length=same, mass=same)
    assert found.correlation is not None
    assert np.isfinite(found.correlation.cholesky).all()


def test_independent_values_and_one_alone_get_no_correlation() -> None:
    assert fitted(prior(length=(0.2, 0.8), mass=(1.0, 3.0)), **twins(0.0)).correlation is None
    assert fitted(prior(length=(0.2, 0.8)), length=bell(0.5, 0.02)).correlation is None


# ---- the whole ----


def test_the_result_is_one_that_environments_and_files_take(tmp_path: Path) -> None:
    given = prior({"friction": 0.3}, length=(0.2, 0.8), mass=Scale((0.5, 1.5)))
    found = fitted(given, **twins(0.9))
    assert resolve(found, SPACE)["mass"].operation == "scale"
    path = tmp_path / "fitted.toml"
    path.write_text(randomization_text(found, "Found by: gymdr fit flights\n\nNoise explains the residuals."))
    assert load_randomization(path) == found
    assert path.read_text().startswith("# Found by: gymdr fit flights\n#\n# Noise explains")
    bins = fitted(prior(length=(0.2, 0.8)), length=np.concatenate([bell(0.3, 0.01)[::2], bell(0.7, 0.01)[::2]]))
    path.write_text(randomization_text(bins, ""))
    assert load_randomization(path) == bins


# ---- delays ----


def test_a_delay_of_which_nothing_else_is_likely_is_a_constant() -> None:
    assert delay_distribution((0, 1, 2), np.array([1e-5, 1.0 - 2e-5, 1e-5])) == Constant(1.0)


def test_delays_that_are_possible_keep_their_probabilities() -> None:
    found = delay_distribution((0, 1, 2, 3), np.array([0.0, 0.25, 0.75, 1e-9]))
    assert isinstance(found, Choice)
    assert found.to_dict()["values"] == [1.0, 2.0]
    np.testing.assert_allclose(found.to_dict()["probabilities"], [0.25, 0.75], rtol=1e-6)
