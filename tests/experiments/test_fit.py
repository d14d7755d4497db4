"""``gym_dr.fit``: what a log tells, what it does not, what is refused, and that a fit that was stopped goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, GymDrError, Interrupted, LogError, RandomizationError, UnknownNameError
from gym_dr.experiments.fit import check
from gym_dr.experiments.fit_files import FitFiles
from gym_dr.fitting.results import Fit
from gym_dr.randomization.distributions import Constant, Integer, Uniform
from gym_dr.randomization.files import load_randomization
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.spec import Correlation, Randomization
from gym_dr.runs.loggers import LOGGERS
from tests.fitting.logged import CART, logged
from tests.plugins.parts.recording import RECORDING, calls

PRIOR: dict[str, Any] = {"length": (0.25, 1.0), "force_mag": (9.0, 15.0), "masscart": (0.7, 1.4)}
TRUTH = {"length": 0.7, "force_mag": 12.0}  # masscart is nominal, 1: the ratio is 12
NOISE = 0.01
LENGTH: dict[str, Any] = {"length": (0.25, 1.0)}


def fit(log: Any, **asked: Any) -> Fit:
    return gym_dr.fit(log, **{"env": CART, "randomize": LENGTH, "progress": False, **asked})


def number(found: Fit, name: str, column: str) -> float:
    """Of a parameter in a fit's table."""
    return float(found.parameters[column][name])


@pytest.fixture(scope="module")
def log() -> list[dict[str, Any]]:
    return logged(params=TRUTH, noise=NOISE)


@pytest.fixture(scope="module")
def short() -> list[dict[str, Any]]:
    """For fits whose numbers do not matter."""
    return logged(params=TRUTH, episodes=6, steps=12)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fits") / "fitted.toml"


@pytest.fixture(scope="module")
def found(log: Any, output: Path) -> Fit:
    return fit(log, randomize=PRIOR, output=output)


# ---- what a log tells ----


def test_a_length_is_found(found: Fit) -> None:
    row = found.parameters.loc["length"]
    assert row["low"] < 0.7 < row["high"]
    assert row["deviation"] < 0.01
    assert row["told"] == "determined"


def test_a_ratio_is_found_where_its_parts_are_not(found: Fit) -> None:
    # the pole pulls at the cart too, so the parts are not quite open
    ratio = found.particles["force_mag"] / found.particles["masscart"]
    assert abs(ratio.mean() - 12.0) < 3 * max(ratio.std(), 0.01)
    assert ratio.std() / ratio.mean() < 0.01
    assert number(found, "force_mag", "deviation") / 12.0 > 0.03
    told = re.search(r"only the ratio of force_mag to masscart is determined: ([0-9.]+), to", " ".join(found.findings))
    assert told is not None
    assert float(told[1]) == pytest.approx(ratio.mean(), rel=1e-3)


def test_what_is_determined_as_a_ratio_only_is_not_said_to_be_determined(found: Fit) -> None:
    assert [text for text in found.findings if text.startswith("Determined: ")] == ["Determined: length."]
    assert found.parameters["told"].tolist() == ["narrowed", "determined", "narrowed"]


def test_a_ratio_is_told_even_if_the_prior_leaves_one_of_its_parts_determined(log: Any) -> None:
    # of the wider prior of the mass alone is left so little that it counts as determined; the ratio is 70 times better
    found = fit(log, randomize={**PRIOR, "masscart": (0.5, 2.0)})
    assert found.parameters.loc["force_mag", "told"] == "narrowed"
    assert "only the ratio of force_mag to masscart is determined" in " ".join(found.findings)


def test_the_sizes_of_errors_are_found(found: Fit) -> None:
    np.testing.assert_allclose(found.errors["measured"], NOISE, rtol=0.15)
    assert (found.errors["process"] < 0.2 * NOISE).all()
    assert found.errors["unit"].tolist() == ["m", "m/s", "rad", "rad/s"]


def test_a_right_model_is_not_suspected(found: Fit) -> None:
    assert not found.suspicious
    assert found.findings[0].startswith("Noise explains the residuals")


def test_held_out_episodes_are_replayed_better_than_by_nominal_parameters(found: Fit) -> None:
    shares = found.replay[found.replay["steps"] == 10].groupby("physics")["share"].mean()
    assert shares["fitted"] < 0.5 * shares["nominal"]
    assert any(text.startswith("Replay of 4 held-out episodes, error after 10 steps") for text in found.findings)
    assert found.facts["episodes"].endswith("fitted, 4 held out")


def test_residuals_are_white(found: Fit) -> None:
    assert found.residuals["residual"].std() == pytest.approx(1.0, abs=0.1)
    assert set(found.residuals["coordinate"]) == {"x", "x_dot", "theta", "theta_dot"}


def test_particles_and_ranges_belong_together(found: Fit) -> None:
    assert list(found.particles) == list(found.parameters.index) == ["force_mag", "length", "masscart"]
    np.testing.assert_allclose(found.parameters["mean"], found.particles.mean())
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


def test_a_fit_prints_what_it_found(found: Fit) -> None:
    assert repr(found).splitlines() == [f"Fit of {CART}", *(f"  {text}" for text in found.findings)]


def test_a_parameter_that_motion_does_not_show_keeps_its_prior(short: Any) -> None:
    prior = {**LENGTH, "x_threshold": (2.0, 3.0)}
    found = fit(short, randomize=prior)
    assert found.randomization["x_threshold"].distribution == Uniform(2.0, 3.0)
    assert "x_threshold keeps its prior: no step that can be replayed depends on it." in found.findings


def test_a_wrong_model_is_suspected() -> None:
    found = fit(logged(params=TRUTH, late=1), randomize=PRIOR)
    assert found.suspicious
    assert found.findings[0].startswith("The model is suspicious: residuals of ")


def test_a_value_beyond_its_prior_is_not_said_to_be_determined() -> None:
    found = fit(logged(params={"length": 0.4}, noise=0.003, episodes=6), randomize={"length": (0.5, 1.0)})
    told = "length lies at the lower end of its prior, 0.5; the best value may be beyond. Widen the prior."
    assert found.findings[1] == told
    assert not any(text.startswith("Determined") for text in found.findings)
    assert "A prior is too narrow, or something that is not fitted differs" in found.findings[0]


def test_a_value_just_inside_of_its_prior_is_determined() -> None:
    found = fit(logged(params={"length": 0.4}, noise=0.003), randomize={"length": (0.39, 1.0)})
    assert "Determined: length." in found.findings
    assert not any("end of its prior" in text for text in found.findings)


# ---- options ----


def test_a_margin_widens_ranges_and_not_findings(short: Any) -> None:
    narrow, wide = fit(short), fit(short, margin=3.0)
    shares = (np.arange(500) + 0.5) / 500
    spreads = [each.randomization["length"].distribution.ppf(shares).std() for each in (narrow, wide)]
    assert spreads[1] == pytest.approx(3.0 * spreads[0], rel=0.02)
    np.testing.assert_array_equal(narrow.particles, wide.particles)


def test_parameters_that_are_known_are_taken_as_they_are(log: Any) -> None:
    found = fit(log, randomize={"masscart": (0.5, 2.0)}, params={"length": 0.7, "force_mag": 18.0})
    # the ratio is 12, so with a force of 18 a mass of 1.5
    assert number(found, "masscart", "mean") == pytest.approx(1.5, rel=0.02)
    assert found.randomization["force_mag"].distribution == Constant(18.0)


def test_randomize_replaces_parts_of_a_whole_prior(short: Any) -> None:
    found = fit(short, randomization={"gravity": (9.0, 10.0), "length": (0.4, 0.6)}, randomize=LENGTH)
    assert list(found.prior) == ["gravity", "length"]
    assert found.prior["length"].distribution == Uniform(0.25, 1.0)


def test_a_whole_prior_may_leave_the_nominal_value_outside(short: Any) -> None:
    # 0.5 is nominal; a warning is an error here, and ``randomize`` gives none
    assert list(fit(short, randomization={"length": (0.6, 0.9)}, randomize=None).prior) == ["length"]


def test_a_whole_prior_may_have_a_delay_and_noise(short: Any) -> None:
    whole = {**LENGTH, "action_delay": Integer(0, 1), "obs_noise": (0.0, 1.0)}
    assert list(fit(short, randomization=whole, randomize=None).randomization) == sorted(whole)


def test_a_whole_prior_keeps_its_correlation(found: Fit, output: Path, short: Any) -> None:
    again = fit(short, randomization=str(output), randomize=None)
    assert again.prior == found.randomization
    assert again.prior.correlation is not None


def test_with_a_correlated_prior_each_parameter_is_compared_with_its_own(short: Any) -> None:
    tied = Correlation(("length", "x_threshold"), ((1.0, -0.7), (-0.7, 1.0)))
    prior = Randomization({"length": Uniform(0.25, 1.0), "x_threshold": Uniform(2.0, 3.0)}, correlation=tied)
    found = fit(short, randomization=prior, randomize=None)
    known = fit(short, randomization=Randomization({"length": Uniform(0.25, 1.0)}), randomize=None)
    assert number(found, "length", "shrink") == pytest.approx(number(known, "length", "shrink"), rel=0.1)
    # given the length, the correlation leaves sqrt(1 - 0.7^2) of the threshold's normal score
    assert number(found, "x_threshold", "shrink") == pytest.approx(0.8, abs=0.05)


def test_a_preset_is_a_prior(short: Any) -> None:
    envs: Any = gym.make_vec(CART, 1)
    default = resolve("default", envs.unwrapped.param_space)
    assert list(fit(short, randomization="default", randomize=None).prior) == list(default)


def test_a_delay_is_found() -> None:
    found = fit(logged(params=TRUTH, late=2), randomize={**PRIOR, "action_delay": Integer(0, 3)})
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
    said = "action_delay: 2 steps (100 %). Only multiples of 2 were tried, since each logged action acts for 2 steps."
    assert said in found.findings
    assert number(found, "m", "mean") == pytest.approx(1.2, abs=0.005)


def test_a_delay_is_found_if_the_log_begins_at_rest() -> None:
    pendulum = "gym_dr/PendulumDR-v1"
    hanging = np.array([-1.0, 0.0, 0.0]) + 0.003 * np.random.default_rng(0).standard_normal((701, 3))
    rest = {"observations": hanging, "actions": np.zeros((700, 1))}
    moving = logged(pendulum, {"m": 1.2}, episodes=4, noise=0.003, late=1)
    found = fit([rest, *moving], env=pendulum, randomize={"m": (0.5, 2.0), "action_delay": Integer(0, 1)})
    assert found.randomization["action_delay"].distribution == Constant(1.0)


def test_noise_becomes_a_rule_where_it_is_asked_for(log: Any) -> None:
    found = fit(log, randomize={"obs_noise": (0.0, 1.0)}, params=TRUTH)
    low, high = found.randomization["obs_noise"].distribution.support
    assert 0.85 * NOISE < low <= high < 1.15 * NOISE
    assert "obs_noise" not in fit(log, params={"force_mag": 12.0}).randomization
    wider = fit(log, randomize={"obs_noise": (0.0, 1.0)}, params=TRUTH, margin=2.0)
    assert wider.randomization["obs_noise"].distribution.support == pytest.approx((low / 2.0, 2.0 * high))


def test_noise_beyond_its_prior_is_told_and_stays_within(log: Any) -> None:
    found = fit(log, randomize={"obs_noise": (0.0, 0.001)}, params=TRUTH)
    assert found.randomization["obs_noise"].distribution == Constant(0.001)
    assert [text for text in found.findings if text.startswith("obs_noise: the log's is 0.0")]
    within = fit(log, randomize={"obs_noise": (0.0, 1.0)}, params=TRUTH)
    assert not [text for text in within.findings if "obs_noise" in text]


@pytest.fixture(scope="module")
def various() -> list[dict[str, Any]]:
    """Lengths between 0.5 and 0.7, with a deviation of 0.061."""
    return logged(params={"length": np.linspace(0.5, 0.7, 20)}, noise=0.003)


def test_a_system_that_varies_is_found_with_its_variation(various: Any) -> None:
    found = fit(various, varies=True, held_out=0.0)
    assert number(found, "length", "mean") == pytest.approx(0.6, abs=0.03)
    assert number(found, "length", "deviation") == pytest.approx(0.061, rel=0.35)
    assert found.facts["method"] == "a distribution over episodes"


def test_a_delay_alone_does_not_vary(short: Any) -> None:
    prior = {"action_delay": Integer(0, 1)}
    varies, constant = fit(short, randomize=prior, varies=True), fit(short, randomize=prior)
    assert varies.randomization == constant.randomization
    assert varies.facts["method"] == "least squares"


def test_a_system_that_varies_is_suspected_unless_it_is_said_to(various: Any) -> None:
    constant, varies = fit(various), fit(various, varies=True)
    assert "fit with varies=True" in constant.findings[0]
    assert "varies" not in varies.findings[0]
    assert (constant.suspicious, varies.suspicious) == (True, False)


def test_a_parameter_that_varies_as_its_prior_does_is_not_said_to_be_hidden() -> None:
    log = logged(params={"length": np.tile([0.5, 0.7], 6)}, episodes=12, steps=20, noise=0.003)
    found = fit(log, randomize={"length": (0.5, 0.7), "x_threshold": (2.0, 3.0)}, varies=True)
    assert found.randomization == found.prior
    assert "length varies as widely as its prior." in found.findings
    assert "x_threshold keeps its prior: no step that can be replayed depends on it." in found.findings


def test_parameters_of_a_population_that_vary_together_are_not_said_to_be_open() -> None:
    # each episode tells both
    masses = np.linspace(0.6, 1.4, 8)
    log = logged("gym_dr/PendulumDR-v1", {"m": masses, "l": masses}, episodes=8, steps=60, noise=0.002)
    asked: dict[str, Any] = {"m": (0.4, 1.6), "l": (0.4, 1.6)}
    said = " ".join(fit(log, env="gym_dr/PendulumDR-v1", randomize=asked, varies=True).findings)
    assert "l and m vary together: the ratio of l to m is " in said
    assert "is determined" not in said


def test_the_errors_of_a_system_that_varies_are_those_that_its_variation_leaves() -> None:
    pendulum, count = "gym_dr/PendulumDR-v1", 8
    masses, lengths = np.linspace(0.8, 1.6, count), np.linspace(0.6, 1.4, count)[::-1]
    log = logged(pendulum, {"m": masses, "l": lengths}, episodes=count, steps=60, noise=0.002)
    asked: dict[str, Any] = {"m": (0.5, 2.0), "l": (0.4, 1.6), "obs_noise": (0.0, 1.0)}
    found = fit(log, env=pendulum, randomize=asked, varies=True, held_out=0.0)
    assert not found.suspicious
    np.testing.assert_allclose(found.errors["measured"], 0.002, rtol=0.2)
    assert (found.errors["process"] < 0.001).all()
    low, high = found.randomization["obs_noise"].distribution.support
    assert 0.8 * 0.002 < low <= high < 1.2 * 0.002


def test_the_particle_method_finds_the_same(short: Any) -> None:
    quick, exact = (fit(short, method=method) for method in ("least-squares", "particles"))
    assert exact.facts["method"] == "particles"
    sure = number(quick, "length", "deviation")
    assert number(exact, "length", "mean") == pytest.approx(number(quick, "length", "mean"), abs=sure)
    assert number(exact, "length", "deviation") == pytest.approx(sure, rel=0.25)


def test_the_same_seed_gives_the_same_result(short: Any) -> None:
    one, same, other = fit(short, seed=5), fit(short, seed=5), fit(short, seed=6)
    np.testing.assert_array_equal(one.particles, same.particles)
    assert one.randomization == same.randomization
    assert (one.particles.to_numpy() != other.particles.to_numpy()).any()


def test_true_parameters_of_a_log_are_replayed_too(short: Any) -> None:
    told = [{**episode, "params/length": 0.7, "params/force_mag": 12.0} for episode in short]
    found = fit(told)
    assert set(found.replay["physics"]) == {"nominal", "fitted", "true"}
    assert "with true parameters" in found.findings[-1]


def test_without_true_parameters_in_a_log_none_are_replayed(short: Any) -> None:
    found = fit(short, randomize={"obs_noise": (0.0, 1.0)})
    assert set(found.replay["physics"]) == {"nominal", "fitted"}


@pytest.mark.parametrize("length", [-3.0, np.inf])
def test_impossible_true_parameters_of_a_log_are_left_out_with_a_sentence(length: float, short: Any) -> None:
    found = fit([{**episode, "params/length": length} for episode in short])
    assert set(found.replay["physics"]) == {"nominal", "fitted"}
    (said,) = [text for text in found.findings if text.startswith("The log's own parameters are not replayed: ")]
    assert "'length'" in said


def test_if_held_out_episodes_cannot_be_replayed_it_is_said_that_the_fitted_ones_are() -> None:
    late = logged(params=TRUTH, episodes=6, steps=12, late=2)
    late[-2:] = [{"observations": e["observations"][:3], "actions": e["actions"][:2]} for e in late[-2:]]
    found = fit(late, randomize={**LENGTH, "action_delay": 2})
    told = "Replay of the fitted episodes themselves (no step of those held out can be replayed), error after"
    assert found.findings[-1].startswith(told)
    late[-1] = late[0]
    assert fit(late, randomize={**LENGTH, "action_delay": 2}).findings[-1].startswith("Replay of 1 held-out episode, ")


def test_a_held_out_episode_of_one_step_is_compared_with_the_motion_of_the_others(short: Any) -> None:
    one = {"observations": short[2]["observations"][:2], "actions": short[2]["actions"][:1]}
    found = fit([*short[:2], one])
    assert found.facts["episodes"] == "2 fitted, 1 held out"
    assert (found.replay["share"] < 2.0).all()  # the deviation of one step is 0


def test_few_episodes_are_all_fitted(short: Any) -> None:
    found = fit(short[:2])
    assert found.facts["episodes"] == "2 fitted, 0 held out"
    assert any("Replay of the fitted episodes themselves" in text for text in found.findings)


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
    assert "Each logged action acts for 2 steps of the environment." in check(slow, env=CART, randomize=LENGTH)


# ---- what is refused before anything runs ----


def spoiled(what: str, value: Any) -> list[dict[str, Any]]:
    log = logged(episodes=6, steps=12)
    log[1][what] = log[1][what].astype(np.float64) if what == "observations" else log[1][what]
    log[1][what][2] = value
    return log


def timed(interval: float) -> list[dict[str, Any]]:
    log = logged(episodes=6, steps=12)
    return [{**episode, "time": interval * np.arange(len(episode["observations"]))} for episode in log]


REFUSED: dict[str, tuple[dict[str, Any], type[GymDrError], str]] = {
    "other widths": (
        {"env": "gym_dr/AcrobotDR-v1", "randomize": {"link_mass_1": (0.5, 2.0)}},
        LogError,
        "expected 6 numbers in each, as the environment observes, got 4",
    ),
    "nan": ({"log": spoiled("observations", np.nan)}, LogError, "expected finite numbers, got nan in row 2"),
    "too large": (
        {"log": spoiled("observations", 1e30)},
        LogError,
        "episode 1: observations: expected numbers up to 1e+08, got 1e+30 in row 2, column 0.",
    ),
    "actions beyond the bounds": (
        {"log": spoiled("actions", 2)},
        LogError,
        "expected whole numbers from 0 to 1, got 2",
    ),
    "another time step": ({"log": timed(0.03)}, LogError, "expected observations every 0.02 s"),
    "an unknown id": ({"env": "gym_dr/CartPolDR-v1"}, UnknownNameError, "Did you mean"),
    "a stock id": ({"env": "CartPole-v1"}, ConfigError, "CartPole-v1: expected an environment with parameters."),
    "an unknown parameter": ({"randomize": {"lenght": (0.4, 0.6)}}, UnknownNameError, "Did you mean 'length'"),
    "nothing to find": ({"randomize": {}}, RandomizationError, "Expected parameters to find"),
    "a bad prior": ({"randomize": {"length": (0.6, 0.4)}}, RandomizationError, "length"),
    "an unknown method": ({"method": "particle"}, UnknownNameError, "Did you mean 'particles'"),
    "no share": ({"held_out": None}, ConfigError, "held_out: expected"),
    "no margin": ({"margin": "wide"}, ConfigError, "margin: expected"),
    "no priors": ({"randomize": 5}, RandomizationError, "xpected a mapping"),
    "no path": ({"output": 5}, ConfigError, "output: expected"),
    "a share": ({"held_out": 0.9}, ConfigError, "held_out: expected a share of the episodes from 0 to 0.5, got 0.9."),
    "a margin": ({"margin": 0.5}, ConfigError, "margin: expected a factor from 1 to 100, got 0.5."),
    "a seed": ({"seed": -1}, ConfigError, "seed: expected a whole number of at least 0, got -1."),
    "no log": ({"log": []}, LogError, "Expected a log of at least one episode"),
}


@pytest.mark.parametrize(("asked", "error", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_fitted_is_refused_before_anything_runs(
    asked: dict[str, Any],
    error: type[GymDrError],
    message: str,
    short: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gym_dr.fitting.simulator.Simulator.predict", None)
    with pytest.raises(error) as refused:
        fit(**{"log": short, "output": tmp_path / "fitted.toml", **asked})
    assert message in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_an_environment_without_replay_is_refused_with_the_reason() -> None:
    walk = {"observations": np.zeros((6, 24)), "actions": np.zeros((5, 4))}
    with pytest.raises(ConfigError, match=r"BipedalWalkerDR-v3: a log of it cannot be replayed\. .* does not say what"):
        fit(walk, env="gym_dr/BipedalWalkerDR-v3", randomize={"gravity": (-12.0, -6.0)})


def test_what_to_log_beside_observations_is_said() -> None:
    push = {"observations": np.zeros((6, 23)), "actions": np.zeros((5, 7))}
    with pytest.raises(GymDrError, match=r"Log qpos, shape \(T \+ 1, 11\), and qvel"):
        fit(push, env="gym_dr/PusherDR-v5", randomize={"gravity.z": (-12.0, -6.0)})


def test_a_log_of_which_nothing_can_be_replayed_is_refused_with_the_reason() -> None:
    flight = {"observations": np.zeros((20, 8)), "actions": np.zeros(19, np.int64)}
    with pytest.raises(LogError, match=r"No logged step can be replayed\. .*the legs still swing to their stops"):
        fit(flight, env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12.0, -6.0)})


def test_episodes_too_short_for_a_delay_are_refused(short: Any) -> None:
    tiny = [{"observations": e["observations"][:3], "actions": e["actions"][:2]} for e in short]
    with pytest.raises(LogError, match="Expected episodes of more than 3 steps, after which actions act"):
        fit(tiny, randomize={**LENGTH, "action_delay": Integer(0, 3)})


def test_episodes_shorter_than_a_constant_delay_are_refused(short: Any) -> None:
    with pytest.raises(LogError, match=r"Expected episodes of more than 40 steps, after which actions act\."):
        fit(short, randomize={**LENGTH, "action_delay": 40})


def test_a_log_of_fewer_numbers_than_there_are_to_find_is_refused(short: Any) -> None:
    first = {"observations": short[0]["observations"][:3], "actions": short[0]["actions"][:2]}
    with pytest.raises(LogError, match="Expected more steps: 8 numbers of 2 steps cannot tell 9: 1 parameter, and"):
        fit(first)
    three = {"observations": short[0]["observations"][:4], "actions": short[0]["actions"][:3]}
    assert fit(three).facts["steps"] == "3 fitted"


def test_a_log_without_motion_is_refused() -> None:
    still = {"observations": np.zeros((21, 4)), "actions": np.zeros(20, np.int64)}
    with pytest.raises(LogError, match="Expected motion, got a log in which nothing that is measured changes"):
        fit([still] * 3)


def test_motion_that_is_no_simulations_is_refused() -> None:
    huge = logged(params=TRUTH, episodes=6, steps=12)
    huge = [{**episode, "observations": 1e7 * episode["observations"] + 1e7} for episode in huge]
    with pytest.raises(LogError, match=r"CartPoleDR-v1, got one that is too far from any simulation"):
        fit(huge)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fitted.json", "expected a file that ends in .toml"),
        ("no/fitted.toml", "existing folder"),
        ("folder.toml", r"expected to write a file, got the folder '.*folder\.toml'"),
        ("particles.toml", r"expected to write a file, got the folder '.*particles\.npz'"),
        ("report.toml", r"expected to write a file, got the folder '.*report\.html'"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(name: str, message: str, short: Any, tmp_path: Path) -> None:
    folders = ["folder.toml", "particles.npz", "report.html"]
    for folder in folders:
        (tmp_path / folder).mkdir()
    with pytest.raises(ConfigError, match=message):
        fit(short, output=tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == folders


def test_an_output_neither_replaces_the_log_nor_lies_among_its_episodes(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ride = tmp_path / "rides" / "ride.npz"
    ride.parent.mkdir()
    np.savez(ride, **short[0])
    content = ride.read_bytes()
    monkeypatch.chdir(ride.parent)
    with pytest.raises(ConfigError, match=r"output: .* 'ride\.npz', a file of the log, would be replaced"):
        fit("ride.npz", output="ride.toml")
    with pytest.raises(ConfigError, match=r"output: .* 'cart\.toml' would lie among the episodes"):
        fit([tmp_path / "rides"], output="cart.toml")
    assert [path.name for path in ride.parent.iterdir()] == ["ride.npz"]
    assert ride.read_bytes() == content


def test_the_randomization_is_written_even_if_the_report_is_not(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr("gym_dr.evaluation.report.page.write_report", fail)
    with pytest.raises(OSError):  # noqa: PT011
        fit(short, output=tmp_path / "fitted.toml")
    assert list(load_randomization(tmp_path / "fitted.toml")) == ["length"]


# ---- files ----


def test_randomization_particles_and_report_are_written_and_nothing_else(found: Fit, output: Path) -> None:
    assert sorted(path.name for path in output.parent.iterdir()) == ["fitted.html", "fitted.npz", "fitted.toml"]
    assert load_randomization(output) == found.randomization
    with np.load(output.with_suffix(".npz"), allow_pickle=False) as saved:
        for name in found.particles:
            np.testing.assert_array_equal(saved[name], found.particles[name])


def test_the_file_begins_with_what_was_found(found: Fit, output: Path) -> None:
    lines = output.read_text().splitlines()
    assert lines[: 1 + len(found.findings)] == ["# Found by gym_dr.fit", *(f"# {text}" for text in found.findings)]


def test_the_file_is_one_that_environments_take(found: Fit, output: Path) -> None:
    envs: Any = gym.make_vec(CART, 50, randomization=str(output))
    envs.reset(seed=0)
    assert envs.unwrapped.params["length"].mean() == pytest.approx(0.7, abs=0.01)
    envs.close()


# ---- stopping and going on ----


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stops a fit, as Ctrl-C does, after it has saved its second round."""

    def stop(log: Any, path: Path, **asked: Any) -> None:
        save = FitFiles.save_round

        def saved(files: FitFiles, key: str, state: Any) -> None:
            save(files, key, state)
            if state.round.number == 2:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(FitFiles, "save_round", saved)
            with pytest.raises(Interrupted, match=r"Stopped\. The same command goes on from here\."):
                fit(log, output=path, **asked)
        assert [each.name for each in path.parent.iterdir()] == [".fitted.unfinished.npz"]

    return stop


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds that are done."""
    done_rounds: list[int] = []
    save = FitFiles.save_round

    def saved(files: FitFiles, key: str, state: Any) -> None:
        done_rounds.append(state.round.number)
        save(files, key, state)

    monkeypatch.setattr(FitFiles, "save_round", saved)
    return done_rounds


def test_a_fit_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(
    short: Any, tmp_path: Path, stopped: Any, rounds: list[int]
) -> None:
    whole = fit(short)
    stopped(short, tmp_path / "fitted.toml")
    rounds.clear()
    gone_on = fit(short, output=tmp_path / "fitted.toml")
    assert rounds[0] == 3
    np.testing.assert_array_equal(gone_on.particles, whole.particles)
    assert gone_on.randomization == whole.randomization
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fitted.html", "fitted.npz", "fitted.toml"]


def test_a_fit_that_was_stopped_after_its_last_round_makes_no_more(
    short: Any, tmp_path: Path, rounds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gym_dr.fitting.misfit.find_misfit", interrupt)
        with pytest.raises(Interrupted):
            fit(short, output=tmp_path / "fitted.toml", randomize=PRIOR)
    last = rounds[-1]
    rounds.clear()
    gone_on = fit(short, output=tmp_path / "fitted.toml", randomize=PRIOR)
    assert rounds == [last]
    np.testing.assert_array_equal(gone_on.particles, fit(short, randomize=PRIOR).particles)


def test_an_unfinished_fit_of_another_log_is_ignored(
    short: Any, tmp_path: Path, stopped: Any, rounds: list[int]
) -> None:
    stopped(short, tmp_path / "fitted.toml")
    rounds.clear()
    found = fit(short[1:], output=tmp_path / "fitted.toml")
    assert rounds[0] == 1
    np.testing.assert_array_equal(found.particles, fit(short[1:]).particles)


def test_an_unfinished_fit_of_another_prior_is_ignored(
    short: Any, tmp_path: Path, stopped: Any, rounds: list[int]
) -> None:
    stopped(short, tmp_path / "fitted.toml")
    rounds.clear()
    fit(short, output=tmp_path / "fitted.toml", randomize={"length": (0.25, 1.1)})
    assert rounds[0] == 1


def test_an_unfinished_fit_with_other_columns_of_states_is_ignored(
    short: Any, tmp_path: Path, stopped: Any, rounds: list[int]
) -> None:
    stopped(short, tmp_path / "fitted.toml")
    rounds.clear()
    exact = [{**episode, "state/theta": episode["observations"][:, 2] + 0.02} for episode in short]
    fit(exact, output=tmp_path / "fitted.toml")
    assert rounds[0] == 1


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no archive"])
def test_a_damaged_unfinished_fit_is_ignored(
    damage: str, short: Any, tmp_path: Path, stopped: Any, rounds: list[int]
) -> None:
    stopped(short, tmp_path / "fitted.toml")
    rounds.clear()
    path = tmp_path / ".fitted.unfinished.npz"
    content = path.read_bytes()
    middle = len(content) // 2
    changed = content[:middle] + bytes(byte ^ 255 for byte in content[middle : middle + 40]) + content[middle + 40 :]
    spoiled_content = {"cut": content[:middle], "changed": changed, "empty": b"", "no archive": b"hello"}
    path.write_bytes(spoiled_content[damage])
    fit(short, output=tmp_path / "fitted.toml")
    assert rounds[0] == 1


def test_without_an_output_a_stopped_fit_is_lost_and_says_nothing_else(
    short: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gym_dr.fitting.misfit.find_misfit", interrupt)
    with pytest.raises(Interrupted, match=r"^Stopped\.$"):
        fit(short)


# ---- checking only ----


def test_checking_tells_what_can_be_fitted(short: Any) -> None:
    steps = sum(len(episode["actions"]) for episode in short)
    told = check(short, env=CART, randomize={**LENGTH, "x_threshold": (2.0, 3.0)})
    assert told[0] == f"{len(short)} episodes, {steps} steps; {steps} can be replayed."
    assert "Compared: x (m), x_dot (m/s), theta (rad), theta_dot (rad/s)." in told
    assert told[-1] == "Parameters to find: length, x_threshold."


def test_checking_tells_which_steps_cannot_be_replayed_and_what_stays_open() -> None:
    log = logged("gym_dr/LunarLanderDR-v3", episodes=2, steps=45, noise=0.0)
    told = check(log, env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12, -6), "ground_friction": (0.05, 0.2)})
    assert "60 steps cannot: the legs still swing to their stops after the start." in told
    assert any(text.startswith("ground_friction would keep its prior: it shows on the ground only") for text in told)
    assert told[-1] == "Parameters to find: gravity."


# ---- loggers ----


@pytest.fixture
def recording() -> Iterator[None]:
    """A logger that goes on from what it has."""
    gym_dr.load_plugins()
    LOGGERS.add(RECORDING.name, RECORDING, "tests")
    yield
    LOGGERS.remove(RECORDING.name)


def shown(output: Path) -> list[dict[str, Any]]:
    return calls(output.with_suffix(".loggers") / "recording")


@pytest.mark.usefixtures("recording")
def test_loggers_get_the_rounds_the_posterior_and_what_came_out(short: Any, tmp_path: Path) -> None:
    output = tmp_path / "fitted.toml"
    found = fit(short, output=output, loggers=["recording"])
    *rounds, posterior, results, closed = shown(output)
    assert [call["step"] for call in rounds] == list(range(1, len(rounds) + 1))
    assert all(call["scalars"].keys() == {"fit/moved", "fit/length"} for call in rounds)
    assert posterior["histograms"]["posterior/length"] == found.particles["length"].tolist()
    assert results["values"]["posterior/length/mean"] == number(found, "length", "mean")
    assert closed["kind"] == "close"


@pytest.mark.usefixtures("recording")
def test_loggers_of_a_fit_that_goes_on_get_every_round_once(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "fitted.toml"
    saved, stop_after = FitFiles.save_round, 2

    def stop(self: FitFiles, key: str, unfinished: Any) -> None:
        saved(self, key, unfinished)
        if unfinished.round.number == stop_after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FitFiles, "save_round", stop)
        with pytest.raises(Interrupted):
            fit(short, output=output, loggers=["recording"])
    fit(short, output=output, loggers=["recording"])
    steps = [call["step"] for call in shown(output) if call["kind"] == "write"]
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.usefixtures("recording")
def test_loggers_of_another_fit_begin_anew(short: Any, tmp_path: Path) -> None:
    output = tmp_path / "fitted.toml"
    fit(short, output=output, loggers=["recording"])
    fit(short, output=output, loggers=["recording"], randomize={"masspole": (0.05, 0.2)})
    first, *_ = shown(output)
    assert (first["step"], first["scalars"].keys()) == (1, {"fit/moved", "fit/masspole"})


def test_loggers_without_an_output_are_refused(short: Any) -> None:
    with pytest.raises(ConfigError, match="loggers: expected with output"):
        fit(short, loggers=["tensorboard"])
