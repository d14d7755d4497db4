"""``gym_dr.fit``: what a log tells, what it does not, and what its options do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.api.fit import check
from gym_dr.errors import UnknownNameError
from gym_dr.fitting.problem import Question
from gym_dr.fitting.results import Fit
from gym_dr.randomization.distributions import Constant, Integer, Uniform
from gym_dr.randomization.spec import Correlation, Randomization
from tests.api.fit_sample import LENGTH, NOISE, PRIOR, TRUTH, fit, number
from tests.fitting.logged import CART, logged


@pytest.fixture(scope="module")
def log() -> list[dict[str, Any]]:
    return logged(params=TRUTH, noise=NOISE)


@pytest.fixture(scope="module")
def found(log: Any, output: Path) -> Fit:
    return fit(log, randomize=PRIOR, output=output, method="auto")


@pytest.fixture(scope="module")
def quick(short: Any) -> Fit:
    """A fit of the short log as it is by default."""
    return fit(short)


# ---- what a log tells ----


def test_a_length_is_found(found: Fit) -> None:
    row = found.parameters.loc["length"]
    assert row["low"] < 0.7 < row["high"]
    assert row["std"] < 0.01
    assert row["identified"] == "determined"


@pytest.mark.slow  # its sibling is the length above
def test_intervals_hold_nine_of_ten_true_values() -> None:
    pendulum, priors = "gym_dr/PendulumDR-v1", {"g": (8.0, 12.0), "m": (0.5, 1.5), "l": (0.6, 1.4)}
    rng, held = np.random.default_rng(0), []
    for seed in range(60):
        true = {name: rng.uniform(*ends) for name, ends in priors.items()}
        log = logged(pendulum, true, episodes=5, steps=60, noise=0.02, seed=seed)
        table = fit(log, env=pendulum, randomize=priors).parameters
        held += [table["low"][name] <= value <= table["high"][name] for name, value in true.items()]
    assert 0.84 <= np.mean(held) <= 0.96  # 180 values; two standard deviations and a half


def test_a_ratio_is_found_where_its_parts_are_not(found: Fit) -> None:
    # the pole pulls at the cart too, so the parts are not quite open
    ratio = found.particles["force_mag"] / found.particles["masscart"]
    assert abs(ratio.mean() - 12.0) < 3 * max(ratio.std(), 0.01)
    assert ratio.std() / ratio.mean() < 0.01
    assert number(found, "force_mag", "std") / 12.0 > 0.03
    told = re.search(r"Only the ratio force_mag/masscart is determined: ([0-9.]+) ", " ".join(found.findings))
    assert told is not None
    assert float(told[1]) == pytest.approx(ratio.mean(), rel=1e-3)
    assert [text for text in found.findings if text.startswith("Determined: ")] == ["Determined: length."]
    assert found.parameters["identified"].tolist() == ["narrowed", "determined", "narrowed"]


def test_the_sizes_of_errors_are_found(found: Fit) -> None:
    np.testing.assert_allclose(found.errors["measured"], NOISE, rtol=0.15)
    assert (found.errors["process"] < 0.2 * NOISE).all()
    assert found.errors["unit"].tolist() == ["m", "m/s", "rad", "rad/s"]


def test_a_right_model_is_not_suspected(found: Fit) -> None:
    assert not found.suspicious
    assert found.findings[0].startswith("The residuals are consistent with noise")


def test_held_out_episodes_are_predicted_better_than_by_nominal_parameters(found: Fit) -> None:
    shares = found.replay[found.replay["horizon"] == "0.1 s"].groupby("physics")["share"].mean()
    assert shares["fitted"] < 0.5 * shares["nominal"]
    assert any(text.startswith("Error of predictions of 4 held-out episodes") for text in found.findings)
    assert found.facts["episodes"].endswith("fitted, 4 held out")


def test_what_predicts_explains_the_log_where_only_a_product_is_known() -> None:
    pendulum, truth = "gym_dr/PendulumDR-v1", {"m": 0.8, "l": 0.7}  # m l^2 and g / l
    log = logged(pendulum, {**truth, "g": 7.0}, episodes=6, steps=30, noise=0.002)
    wide: dict[str, Any] = {"m": (0.1, 8.0), "l": (0.25, 2.5), "g": (2.5, 25.0)}
    found = fit(log, env=pendulum, randomize=wide)
    shares = found.replay[found.replay["horizon"] == "0.5 s"].groupby("physics")["share"].mean()
    assert shares["fitted"] < 0.01  # the noise; the mean of each parameter gives 0.19


def test_each_parameter_that_was_asked_for_is_told_once(log: Any) -> None:
    asked: dict[str, Any] = {
        "length": (0.25, 1.0),
        "force_mag": (11.95, 12.05),
        "x_threshold": (2.0, 3.0),
        "obs_noise": (0.0, 1.0),
    }
    told = fit(log, randomize=asked).findings
    assert [name for name in asked if sum(name in text for text in told) != 1] == []


def test_particles_and_ranges_belong_together(found: Fit) -> None:
    assert list(found.particles) == list(found.parameters.index) == ["force_mag", "length", "masscart"]
    np.testing.assert_allclose(found.parameters["mean"], found.particles.mean())
    assert ((found.parameters["best"] - found.parameters["mean"]).abs() < 0.5 * found.parameters["std"]).all()
    ends = found.particles.quantile([0.05, 0.95])
    np.testing.assert_allclose(found.parameters[["low", "high"]].to_numpy().T, ends)
    assert ((found.parameters["low"] >= found.parameters["prior_low"]).all()) & (
        (found.parameters["high"] <= found.parameters["prior_high"]).all()
    )


def test_the_randomization_draws_what_the_particles_are(found: Fit) -> None:
    envs: Any = gym.make_vec(CART, 400, randomization=found.randomization)
    envs.reset(seed=0)
    drawn = envs.unwrapped.params
    for name in PRIOR:
        assert drawn[name].mean() == pytest.approx(found.particles[name].mean(), rel=0.03)
    ratio = drawn["force_mag"] / drawn["masscart"]  # correlated, or the ratio would vary by 10 %
    assert ratio.std() / ratio.mean() < 0.02
    envs.close()


def test_a_wrong_model_is_suspected() -> None:
    found = fit(logged(params=TRUTH, late=1), randomize=PRIOR)
    assert found.suspicious
    assert found.findings[0].startswith("The model is suspicious. ")


def test_a_value_beyond_its_prior_is_not_said_to_be_determined() -> None:
    found = fit(logged(params={"length": 0.4}, noise=0.003, episodes=6), randomize={"length": (0.5, 1.0)})
    told = "length lies at the lower end of its prior, 0.5; the best value may be beyond. Widen the prior."
    assert found.findings[1] == told
    assert not any(text.startswith("Determined") for text in found.findings)
    assert "the ends of priors" in found.findings[0]


# ---- options ----


def test_a_margin_widens_ranges_and_not_findings(quick: Fit, short: Any) -> None:
    wide = fit(short, margin=3.0)
    shares = (np.arange(500) + 0.5) / 500
    spreads = [each.randomization["length"].distribution.ppf(shares).std() for each in (quick, wide)]
    assert spreads[1] == pytest.approx(3.0 * spreads[0], rel=0.02)
    np.testing.assert_array_equal(quick.particles, wide.particles)


def test_parameters_that_are_known_are_taken_as_they_are(log: Any) -> None:
    found = fit(log, randomize={"masscart": (0.5, 2.0)}, params={"length": 0.7, "force_mag": 18.0})
    # the ratio is 12, so with a force of 18 a mass of 1.5
    assert number(found, "masscart", "mean") == pytest.approx(1.5, rel=0.02)
    assert found.randomization["force_mag"].distribution == Constant(18.0)


def test_randomize_replaces_parts_of_a_whole_prior(short: Any) -> None:
    whole = {"gravity": (9.0, 10.0), "length": (0.4, 0.6)}
    found = fit(short, randomization=whole, randomize=LENGTH)
    assert list(found.prior) == ["gravity", "length"]
    assert found.prior["length"].distribution == Uniform(0.25, 1.0)


def test_a_whole_prior_keeps_its_correlation(found: Fit, output: Path, short: Any) -> None:
    again = fit(short, randomization=str(output), randomize=None)
    assert again.prior == found.randomization
    assert again.prior.correlation is not None


def test_with_a_correlated_prior_each_parameter_is_compared_with_its_own(short: Any) -> None:
    tied = Correlation(("length", "x_threshold"), ((1.0, -0.7), (-0.7, 1.0)))
    prior = Randomization({"length": Uniform(0.25, 1.0), "x_threshold": Uniform(2.0, 3.0)}, correlation=tied)
    found = fit(short, randomization=prior, randomize=None)
    known = fit(short, randomization=Randomization({"length": Uniform(0.25, 1.0)}), randomize=None)
    assert number(found, "length", "contraction") == pytest.approx(number(known, "length", "contraction"), rel=0.1)
    # given the length, the correlation leaves sqrt(1 - 0.7^2) of the threshold's normal score
    assert number(found, "x_threshold", "contraction") == pytest.approx(0.8, abs=0.05)


def test_a_delay_is_found() -> None:
    log = logged(params={"length": 0.7}, late=2, episodes=10)
    found = fit(log, randomize={**LENGTH, "action_delay": Integer(0, 3)})
    assert found.randomization["action_delay"].distribution == Constant(2.0)
    assert "action_delay: 2 steps (100 %)." in found.findings
    assert not found.suspicious
    assert number(found, "length", "mean") == pytest.approx(0.7, abs=0.02)


def test_a_delay_is_in_steps_of_the_environment_however_slow_the_log() -> None:
    slow = logged("gym_dr/PendulumDR-v1", {"m": 1.2}, episodes=3, noise=0.003, late=1, hold=2)  # late by 2 steps
    timed = [{**episode, "time": 0.1 * np.arange(len(episode["observations"]))} for episode in slow]
    mass: dict[str, Any] = {"m": (0.5, 2.0)}
    found = fit(timed, env="gym_dr/PendulumDR-v1", randomize={**mass, "action_delay": Integer(0, 3)})
    assert found.randomization["action_delay"].distribution == Constant(2.0)
    assert "action_delay: 2 steps (100 %)." in found.findings
    assert number(found, "m", "mean") == pytest.approx(1.2, abs=0.005)


@pytest.mark.slow  # its siblings are the delays above
def test_a_delay_is_found_if_the_log_begins_at_rest() -> None:
    pendulum = "gym_dr/PendulumDR-v1"
    hanging = np.array([-1.0, 0.0, 0.0]) + 0.003 * np.random.default_rng(0).standard_normal((701, 3))
    rest = {"observations": hanging, "actions": np.zeros((700, 1))}
    moving = logged(pendulum, {"m": 1.2}, episodes=4, noise=0.003, late=1)
    found = fit([rest, *moving], env=pendulum, randomize={"m": (0.5, 2.0), "action_delay": Integer(0, 1)})
    assert found.randomization["action_delay"].distribution == Constant(1.0)


@pytest.fixture(scope="module")
def noisy(log: Any) -> Fit:
    """A fit of the noise alone."""
    return fit(log, randomize={"obs_noise": (0.0, 1.0)}, params=TRUTH)


def test_noise_becomes_a_rule_where_it_is_asked_for(noisy: Fit, found: Fit, log: Any) -> None:
    low, high = noisy.randomization["obs_noise"].distribution.support
    assert 0.85 * NOISE < low <= high < 1.15 * NOISE
    assert "obs_noise" not in found.randomization
    wider = fit(log, randomize={"obs_noise": (0.0, 1.0)}, params=TRUTH, margin=2.0)
    assert wider.randomization["obs_noise"].distribution.support == pytest.approx((low / 2.0, 2.0 * high))


def test_noise_beyond_its_prior_is_told_and_stays_within(noisy: Fit, log: Any) -> None:
    found = fit(log, randomize={"obs_noise": (0.0, 0.001)}, params=TRUTH)
    assert found.randomization["obs_noise"].distribution == Constant(0.001)
    assert [text for text in found.findings if text.startswith("obs_noise: the log's is 0.0")]
    (told,) = [text for text in noisy.findings if "obs_noise" in text]
    assert "beyond" not in told


@pytest.fixture(scope="module")
def various() -> list[dict[str, Any]]:
    """Lengths between 0.5 and 0.7, with a deviation of 0.061."""
    return logged(params={"length": np.linspace(0.5, 0.7, 20)}, noise=0.003)


@pytest.fixture(scope="module")
def population(various: Any) -> Fit:
    """A fit of all episodes, which knows that they vary."""
    return fit(various, varies="length", held_out=0.0)


def test_a_system_that_varies_is_found_with_its_variation(population: Fit) -> None:
    assert number(population, "length", "mean") == pytest.approx(0.6, abs=0.03)
    assert number(population, "length", "std") == pytest.approx(0.061, rel=0.35)
    assert population.facts["method"] == "a distribution over episodes"


def test_parameters_that_episodes_share_are_found_with_those_that_vary() -> None:
    forces = np.linspace(8.0, 13.0, 16)
    log = logged(params={"length": 0.7, "force_mag": forces}, episodes=16, noise=0.003)
    asked: dict[str, Any] = {"length": (0.25, 1.0), "force_mag": (5.0, 16.0)}
    found = fit(log, randomize=asked, varies=["force_mag"], held_out=0.0)
    assert abs(number(found, "length", "mean") - 0.7) < 4 * number(found, "length", "std")
    assert number(found, "length", "std") < 0.005
    assert number(found, "force_mag", "mean") == pytest.approx(forces.mean(), abs=1.0)
    assert number(found, "force_mag", "std") == pytest.approx(forces.std(), rel=0.35)
    assert not found.suspicious
    assert "All episodes share length." in found.findings


def test_only_parameters_that_are_to_be_found_can_vary(various: Any) -> None:
    with pytest.raises(UnknownNameError, match="parameter to find that varies"):
        fit(various, varies=["masscart"])


def test_a_system_that_varies_is_suspected_unless_it_is_said_to(population: Fit, various: Any) -> None:
    constant = fit(various)
    assert "`varies=" in constant.findings[0]
    assert "varies" not in population.findings[0]
    assert (constant.suspicious, population.suspicious) == (True, False)


@pytest.mark.slow  # its sibling is the population of lengths above
def test_a_parameter_that_varies_as_its_prior_does_is_not_said_to_be_hidden() -> None:
    log = logged(params={"length": np.tile([0.5, 0.7], 6)}, episodes=12, steps=20, noise=0.003)
    asked: dict[str, Any] = {"length": (0.5, 0.7), "x_threshold": (2.0, 3.0)}
    # none held out: every fourth episode has the same length
    found = fit(log, randomize=asked, varies=[*asked], held_out=0.0)
    assert found.randomization == found.prior
    assert "length varies as widely as its prior." in found.findings
    assert "x_threshold keeps its prior: no step that can be replayed depends on it." in found.findings


@pytest.mark.slow  # its sibling is the population of lengths above
def test_parameters_of_a_population_that_vary_together_are_not_said_to_be_open() -> None:
    # each episode tells both
    masses = np.linspace(0.6, 1.4, 8)
    log = logged("gym_dr/PendulumDR-v1", {"m": masses, "l": masses}, episodes=8, steps=60, noise=0.002)
    asked: dict[str, Any] = {"m": (0.4, 1.6), "l": (0.4, 1.6)}
    said = " ".join(fit(log, env="gym_dr/PendulumDR-v1", randomize=asked, varies=[*asked]).findings)
    assert "l and m vary together: the ratio l/m is " in said
    assert "is determined" not in said


@pytest.mark.slow  # its sibling is the population of lengths above
def test_the_errors_of_a_system_that_varies_are_those_that_its_variation_leaves() -> None:
    pendulum, count = "gym_dr/PendulumDR-v1", 8
    masses, lengths = np.linspace(0.8, 1.6, count), np.linspace(0.6, 1.4, count)[::-1]
    log = logged(pendulum, {"m": masses, "l": lengths}, episodes=count, steps=60, noise=0.002)
    asked: dict[str, Any] = {"m": (0.5, 2.0), "l": (0.4, 1.6), "obs_noise": (0.0, 1.0)}
    found = fit(log, env=pendulum, randomize=asked, varies=["m", "l"], held_out=0.0)
    assert not found.suspicious
    np.testing.assert_allclose(found.errors["measured"], 0.002, rtol=0.2)
    assert (found.errors["process"] < 0.001).all()
    low, high = found.randomization["obs_noise"].distribution.support
    assert 0.8 * 0.002 < low <= high < 1.2 * 0.002


def test_the_same_seed_gives_the_same_result(quick: Fit, short: Any) -> None:
    same, other = fit(short, seed=0), fit(short, seed=6)
    np.testing.assert_array_equal(quick.particles, same.particles)
    assert quick.randomization == same.randomization
    assert (quick.particles.to_numpy() != other.particles.to_numpy()).any()


def test_a_held_out_episode_of_one_step_is_compared_with_the_motion_of_the_others(short: Any) -> None:
    one = {"observations": short[2]["observations"][:2], "actions": short[2]["actions"][:1]}
    found = fit([*short[:2], one])
    assert found.facts["episodes"] == "2 fitted, 1 held out"
    assert (found.replay["share"] < 2.0).all()  # the deviation of one step is 0


def test_a_program_that_makes_errors_of_numpys_warnings_gets_the_same_fit(quick: Fit, short: Any) -> None:
    with np.errstate(all="raise"):
        assert fit(short).particles.equals(quick.particles)


def test_an_action_of_a_slower_log_acts_for_several_steps() -> None:
    fast = logged(params={"length": 0.7}, episodes=30, steps=24, noise=0.0)
    slow = []
    for episode in fast:  # of every second step, where two in a row had the same action
        pairs = episode["actions"][: len(episode["actions"]) // 2 * 2].reshape(-1, 2)
        run = int(np.argmin(np.append(pairs[:, 0] == pairs[:, 1], False)))
        if run >= 2:
            times = 0.04 * np.arange(run + 1)
            slow.append(
                {"observations": episode["observations"][: 2 * run + 1 : 2], "actions": pairs[:run, 0], "time": times}
            )
    found = fit(slow)
    assert number(found, "length", "mean") == pytest.approx(0.7, abs=1e-3)
    assert "Each logged action acts for 2 steps of the environment." in check(
        slow, Question(env=CART, randomize=LENGTH)
    )
