"""What may be asked of a log: ranges of parameters, one delay and noise; the rest is refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.fitting.prior import Delay, Prior, make_prior
from gym_dr.randomization.distributions import Bernoulli, Choice, Integer, Uniform
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Correlation, Randomization, Scale

SPACE = ParamSpace(
    "toy",
    [
        Param(name="gravity", nominal=-10.0, low=-30.0, high=0.0),
        Param(name="length", nominal=0.5, low=0.01, high=5.0),
        Param(name="legs", nominal=2, low=1, high=4, kind="int"),
        Param(name="windy", nominal=0, low=0, high=1, kind="bool"),
        Param(name="wind", nominal=15.0, low=0.0, high=20.0, needs=("windy",)),
    ],
)


def prior(known: Any = None, **asked: Any) -> Prior:
    return make_prior(SPACE, None, asked, known or {})


# ---- what is refused ----


def test_a_parameter_is_either_to_be_found_or_known() -> None:
    asked = {"length": (0.4, 0.6), "gravity": (-12.0, -8.0)}
    with pytest.raises(RandomizationError, match=r"length: expected in `randomize` or in `params`, got both"):
        make_prior(SPACE, asked, None, {"length": 0.5})
    assert make_prior(SPACE, None, asked, {"length": 0.5}).names == ("gravity",)  # a preset has them all


REFUSED: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "Expected parameters to find, each with the range in which it may be, such as"),
    "constants alone": ({"length": 0.7}, "Expected parameters to find"),
    "a choice": ({"length": Choice((0.4, 0.6))}, "'length': expected a range of numbers to find it in, got Choice"),
    "a kind that is whole": ({"legs": Uniform(1, 4)}, "'legs'"),
    "a switch": ({"windy": Bernoulli(0.5)}, "not choices: set it with `params`."),
    "a bias": ({"length": (0.4, 0.6), "obs_bias": (0, 1)}, "obs_bias: expected parameters of the environment, action_"),
    "pushes": ({"push_speed": (0, 1), "push_probability": 0.1}, "A log does not show other disturbances"),
    "two delays": (
        {"action_delay": Integer(0, 3), "obs_delay": Integer(0, 3)},
        "Expected action_delay or obs_delay, got both: in a log they look the same.",
    ),
    "a delay that is no number of steps": ({"action_delay": (0.0, 3.0)}, "action_delay"),
    "a factor of a delay": ({"action_delay": Scale(Integer(0, 3))}, "Scale multiplies its nominal value"),
    "too many delays": (
        {"obs_delay": Integer(0, 60)},
        "and at most 50 combinations",
    ),
    "actions from the future": ({"action_delay": Integer(-2, -1)}, "'action_delay': expected a whole number"),
    "negative noise": ({"obs_noise": (-3.0, -1.0)}, "'obs_noise': expected a finite value from 0"),
    "beyond the bounds": ({"length": (0.0, 1.0)}, "length"),
}


@pytest.mark.parametrize(("asked", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_a_log_cannot_answer_is_refused_with_the_reason(asked: Any, message: str) -> None:
    with pytest.raises(RandomizationError) as refused:
        make_prior(SPACE, None, asked, {})
    assert message in str(refused.value)


@pytest.mark.parametrize(("asked", "known"), [({"lenght": (0.4, 0.6)}, {}), ({"length": (0.4, 0.6)}, {"gravty": -9.0})])
def test_unknown_parameters_are_refused_with_a_proposal(asked: Any, known: Any) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        make_prior(SPACE, None, asked, known)


def test_a_delay_that_is_known_is_a_constant_prior() -> None:
    with pytest.raises(RandomizationError, match=r"that you know as `randomize=\{'action_delay': 1\}`\."):
        prior({"action_delay": 1}, length=(0.4, 0.6))
    assert prior(action_delay=1).delays == (Delay(name="action_delay", steps=(1,), weights=(1.0,)),)


def test_known_values_beyond_the_bounds_are_refused() -> None:
    with pytest.raises(RandomizationError, match="gravity"):
        prior({"gravity": 5.0}, length=(0.4, 0.6))


# ---- what is taken ----


KNOWN: dict[str, tuple[dict[str, Any], dict[str, float], dict[str, float]]] = {  # asked, given, and what is known then
    "constants and what is given": ({"legs": 3}, {"gravity": -9.0}, {"gravity": -9.0, "legs": 3.0}),
    "a constant factor": ({"gravity": Scale(0.5)}, {}, {"gravity": -5.0}),
    "a value that replaces its prior": ({"gravity": (-12.0, -6.0)}, {"gravity": -9.0}, {"gravity": -9.0}),
    "the switch of what is known": ({}, {"wind": 5.0}, {"wind": 5.0, "windy": 1.0}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_names_are_the_parameters_to_find_and_the_rest_is_known(name: str) -> None:
    asked, given, known = KNOWN[name]
    found = prior(given, length=(0.6, 0.9), **asked)  # which leaves the nominal 0.5 outside
    assert found.names == ("length",)
    assert dict(found.known) == known


def test_a_switch_is_turned_on_for_a_parameter_to_find() -> None:
    assert dict(prior(wind=(0.0, 20.0)).known) == {"windy": 1.0}


def test_a_switch_that_the_user_sets_is_not_turned_on() -> None:
    with pytest.raises(RandomizationError, match="'wind' has no effect here: it needs windy = 1"):
        prior({"windy": 0.0}, wind=(0.0, 20.0))


def test_a_file_is_a_prior(tmp_path: Path) -> None:
    path = tmp_path / "prior.toml"
    path.write_text('[length]\ndistribution = "uniform"\nlow = 0.4\nhigh = 0.6\n')
    assert make_prior(SPACE, None, str(path), {}).names == ("length",)


def test_a_delay_has_whole_steps_with_equal_probabilities() -> None:
    whole = prior(action_delay=Integer(1, 3))
    (found,) = whole.delays
    assert (found.name, found.steps) == ("action_delay", (1, 2, 3))
    np.testing.assert_allclose(found.weights, [1 / 3] * 3, atol=1e-3)
    assert whole.names == ()


def test_a_choice_of_delays_keeps_its_probabilities() -> None:
    (found,) = prior(obs_delay=Choice((0.0, 4.0), (0.25, 0.75))).delays
    assert (found.name, found.steps) == ("obs_delay", (0, 4))
    np.testing.assert_allclose(found.weights, [0.25, 0.75], atol=1e-3)


def test_noise_is_asked_for_and_no_parameter_of_the_environment() -> None:
    found = prior(length=(0.4, 0.6), obs_noise=(0.0, 1.0))
    assert found.noise == Uniform(0.0, 1.0)
    assert found.names == ("length",)
    assert found.delays == ()


# ---- points and values ----


def test_params_are_what_is_known_and_the_values_of_a_point() -> None:
    given = prior({"gravity": -9.0}, length=(0.4, 0.6))
    assert given.params(np.array([0.5])) == {"gravity": -9.0, "length": pytest.approx(0.5)}


def test_values_are_in_the_order_of_points_and_have_the_priors_correlation() -> None:
    rules = {"length": (0.4, 0.6), "gravity": (-12.0, -6.0)}
    tied = Randomization(rules, correlation=Correlation(("gravity", "length"), ((1.0, 0.9), (0.9, 1.0))))
    given = make_prior(SPACE, None, tied, {})
    values = given.values(np.random.default_rng(0).uniform(size=(2000, 2)))
    assert tuple(values) == given.names == ("gravity", "length")
    # of uniforms with a Gaussian copula, 6 / pi asin(rho / 2) = 0.891
    assert np.corrcoef(values["gravity"], values["length"])[0, 1] == pytest.approx(0.891, abs=0.02)


def test_a_parameter_alone_has_its_whole_range_whatever_the_correlation() -> None:
    rules = {"length": (0.4, 0.6), "gravity": (-12.0, -6.0)}
    tied = Randomization(rules, correlation=Correlation(("gravity", "length"), ((1.0, -0.7071), (-0.7071, 1.0))))
    given = make_prior(SPACE, None, tied, {})
    for name, (low, high) in rules.items():
        np.testing.assert_allclose(given.alone(name, np.array([0.0, 0.25, 1.0])), [low, 0.75 * low + 0.25 * high, high])
