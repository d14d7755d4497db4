"""Fits of logs as people have them: uneven clocks, known loads, sensors that are not read in every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.api.fit import check, open_problem
from gym_dr.errors import ConfigError, LogError, UnknownNameError
from gym_dr.fitting.problem import Question
from tests.api.fit_sample import LENGTH, fit, number
from tests.fitting.logged import CART, logged

STEP = 0.02  # s, of the cart
TRUTH = {"length": 0.7}
RNG = np.random.default_rng(0)


def holds_the_truth(found: Any, name: str = "length", value: float = 0.7) -> bool:
    """Whether a narrow interval holds the truth, with some reserve."""
    mean, deviation = number(found, name, "mean"), number(found, name, "std")
    return abs(mean - value) < 4 * deviation < 0.1 * value


def uneven(noise: float = 0.002) -> list[dict[str, Any]]:
    """Actions that act for one to four steps, with times."""
    holds = RNG.integers(1, 5, 25)
    log = logged(params=TRUTH, episodes=20, steps=25, noise=noise, hold=holds.tolist())
    time = STEP * np.append(0, np.cumsum(holds))
    return [{**episode, "time": time[: len(episode["observations"])]} for episode in log]


def test_each_interval_of_an_uneven_clock_is_simulated_for_as_long_as_it_lasts() -> None:
    log = uneven()
    assert "Logged actions act for 1 to 4 steps of the environment." in check(log, Question(env=CART, randomize=LENGTH))
    found = fit(log)
    assert holds_the_truth(found)
    assert not found.suspicious


def test_steps_last_as_long_as_the_log_needs_where_a_parameter_is_their_duration() -> None:
    lengths = np.linspace(0.012, 0.02, 12)  # s
    log = logged(params={**TRUTH, "tau": lengths}, episodes=12, noise=0.002)
    timed = [{**one, "time": lengths[k] * np.arange(len(one["observations"]))} for k, one in enumerate(log)]
    found = fit(timed, time_step="tau")
    assert holds_the_truth(found)
    assert not found.suspicious


def test_the_log_may_tell_how_long_steps_last() -> None:
    lengths = np.linspace(0.012, 0.02, 12)  # s
    log = logged(params={**TRUTH, "tau": lengths}, episodes=12, noise=0.002)
    told = [
        {**one, "params/tau": lengths[k], "time": np.arange(len(one["actions"]) + 1.0)} for k, one in enumerate(log)
    ]
    assert holds_the_truth(fit(told))


def test_the_time_step_of_a_robot_is_that_of_its_simulation() -> None:
    # of which each step of the environment has four, of 0.002 s
    count = 12
    log = {"observations": np.zeros((count + 1, 11)), "actions": np.zeros((count, 3)), "time": 0.012 * np.arange(13)}
    asked: dict[str, Any] = {"body_mass:torso": (2.0, 5.0)}
    problem = open_problem(log, Question(env="gym_dr/HopperDR-v5", randomize=asked, time_step="timestep"))
    problem.close()
    assert problem.episodes[0].holds.tolist() == [2] * count
    np.testing.assert_allclose(problem.episodes[0].known["timestep"], 0.0015)


def test_a_gap_begins_a_new_chain() -> None:
    log = logged(params=TRUTH, episodes=10, steps=30, noise=0.002)
    parts = [{**one, "time": STEP * np.arange(len(one["observations"]))} for one in log]
    for one in parts:
        one["time"][8:] += 1.0
        one["observations"][8:, 0] += 0.5  # as if it had gone on meanwhile
    told = check(parts, Question(env=CART, randomize=LENGTH))
    assert "10 steps cannot: a gap, in which nobody knows what acted." in told
    assert holds_the_truth(fit(parts))


def test_sensors_may_have_other_rates_and_speeds_none() -> None:
    log = logged(params={**TRUTH, "masscart": 1.3}, episodes=10, steps=60, noise=0.003)
    for episode in log:
        rows = np.arange(len(episode["observations"]))
        episode["observations"][:, [1, 3]] = np.nan  # speeds
        episode["observations"][rows % 4 != 0, 0] = np.nan  # the position, at a quarter of the angle's rate
    asked: dict[str, Any] = {**LENGTH, "masscart": (0.5, 2.0)}
    told = check(log, Question(env=CART, randomize=asked))
    assert "Compared: x (m), theta (rad)." in told
    assert any(text.startswith("x is measured after 2") for text in told)
    found = fit(log, randomize=asked)
    assert holds_the_truth(found)
    assert holds_the_truth(found, "masscart", 1.3)
    assert not found.suspicious


def test_rows_that_are_lost_take_nothing_but_information() -> None:
    log = logged(params=TRUTH, episodes=10, noise=0.003)
    for episode in log:
        episode["observations"][RNG.random(len(episode["observations"])) < 0.4] = np.nan
    found = fit(log)
    assert holds_the_truth(found)
    assert not found.suspicious


def test_how_far_whole_steps_miss_the_log_is_told() -> None:
    log = logged(episodes=6, steps=12, hold=4)
    for episode in log:
        count = len(episode["observations"])
        episode["time"] = 0.08 * np.arange(count) + RNG.uniform(-0.004, 0.004, count)
    told = check(log, Question(env=CART, randomize=LENGTH))
    assert [text for text in told if text.startswith("Whole steps miss the logged intervals by 0.00")]


def test_what_the_log_tells_of_each_episode_is_simulated() -> None:
    masses = np.linspace(0.6, 1.6, 16)
    log = logged(params={**TRUTH, "masscart": masses}, episodes=16, noise=0.002)
    told = [{**episode, "params/masscart": masses[k]} for k, episode in enumerate(log)]
    assert fit(log).suspicious
    found = fit(told)
    assert holds_the_truth(found)
    assert not found.suspicious
    assert "Told by the log, row by row: masscart." in check(told, Question(env=CART, randomize=LENGTH))


def test_what_the_log_tells_may_change_within_an_episode() -> None:
    light, heavy = (logged(params={**TRUTH, "masscart": m}, episodes=8, noise=0.0, steps=12) for m in (0.6, 1.6))
    log = []
    for one, other in zip(light, heavy, strict=False):
        joined = {name: np.concatenate([one[name], other[name]]) for name in ("observations", "actions")}
        joined["actions"] = np.concatenate([one["actions"], [0], other["actions"]])
        masses = np.repeat([0.6, 1.6], [len(one["observations"]), len(other["observations"])])
        time = STEP * np.arange(len(masses)) + np.repeat([0.0, 1.0], np.unique(masses, return_counts=True)[1])
        log.append({**joined, "time": time, "params/masscart": masses})
    assert number(fit(log), "length", "mean") == pytest.approx(0.7, rel=1e-4)


def test_a_constant_of_the_whole_log_is_set_and_what_is_to_be_found_is_not_read() -> None:
    log = logged(params={**TRUTH, "masscart": 1.5}, episodes=10, noise=0.002)
    told = [{**episode, "params/masscart": 1.5, "params/length": 0.3} for episode in log]
    found = fit(told)
    assert holds_the_truth(found)
    assert found.randomization["masscart"].support(1.0) == (1.5, 1.5)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([{"params/mascart": 1.0}] * 6, UnknownNameError, "Did you mean 'masscart'"),
        ([{"params/masscart": 1.0}] * 5 + [{}], LogError, "expected params/masscart in all episodes"),
        ([{"params/masscart": np.ones(3)}] * 6, LogError, "params/masscart: expected a number, or one for each row"),
        ([{"params/obs_gain:theta": 1.1}] * 6, LogError, "Set a sensor's with `params`"),
        ([{"params/masscart": np.nan}] * 6, LogError, "params/masscart: expected finite numbers, got nan"),
    ],
)
def test_what_a_log_cannot_tell_is_refused(columns: Any, error: type[Exception], message: str) -> None:
    log = [{**one, **more} for one, more in zip(logged(episodes=6, steps=12), columns, strict=True)]
    with pytest.raises(error, match=message):
        fit(log)


def test_a_duration_of_steps_needs_times_and_a_parameter_that_nothing_else_sets() -> None:
    log = logged(episodes=6, steps=12)
    with pytest.raises(ConfigError, match="`time_step`: expected a log with times"):
        fit(log, time_step="tau")
    with pytest.raises(ConfigError, match="`time_step`: expected a parameter that neither the fit nor the log sets"):
        fit(log, time_step="length")
    with pytest.raises(UnknownNameError, match="Did you mean 'tau'"):
        fit(log, time_step="tao")
