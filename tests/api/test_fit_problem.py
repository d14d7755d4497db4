"""What a fit refuses before anything runs, and what ``check`` tells of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.api.fit import check
from gym_dr.errors import ConfigError, EnvStateError, GymDrError, LogError, RandomizationError, UnknownNameError
from gym_dr.fitting.problem import Question
from tests.api.fit_sample import LENGTH, fit
from tests.fitting.logged import CART, logged

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
    "infinity": ({"log": spoiled("observations", np.inf)}, LogError, "expected finite numbers, got inf in row 2"),
    "actions beyond the bounds": (
        {"log": spoiled("actions", 2)},
        LogError,
        "expected whole numbers from 0 to 1, got 2",
    ),
    "another time step": ({"log": timed(0.03)}, LogError, "expected observations every 0.02 s"),
    "a stock id": ({"env": "CartPole-v1"}, ConfigError, "CartPole-v1: expected an environment with parameters."),
    "an unknown parameter": ({"randomize": {"lenght": (0.4, 0.6)}}, UnknownNameError, "Did you mean 'length'"),
    "nothing to find": ({"randomize": {}}, RandomizationError, "Expected parameters to find"),
    "no priors": ({"randomize": 5}, RandomizationError, "xpected a mapping"),
    "no margin": ({"margin": "wide"}, ConfigError, "`margin`: expected a number from 1 to 100, got 'wide'."),
    "a seed": ({"seed": -1}, ConfigError, "`seed`: expected a whole number of at least 0, got -1."),
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
    with pytest.raises(EnvStateError, match=r"BipedalWalkerDR-v3: a log of it cannot be replayed: .* does not support"):
        fit(walk, env="gym_dr/BipedalWalkerDR-v3", randomize={"gravity": (-12.0, -6.0)})


def test_what_to_log_beside_observations_is_said() -> None:
    push = {"observations": np.zeros((6, 23)), "actions": np.zeros((5, 7))}
    with pytest.raises(GymDrError, match=r"qpos and qvel.*\(T \+ 1, 11\)"):
        fit(push, env="gym_dr/PusherDR-v5", randomize={"gravity.z": (-12.0, -6.0)})


def test_a_log_of_which_nothing_can_be_replayed_is_refused_with_the_reason() -> None:
    flight = {"observations": np.zeros((20, 8)), "actions": np.zeros(19, np.int64)}
    with pytest.raises(LogError, match=r"No logged step can be replayed\. .*the legs still swing to their stops"):
        fit(flight, env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12.0, -6.0)})


def test_episodes_shorter_than_a_constant_delay_are_refused(short: Any) -> None:
    with pytest.raises(LogError, match=r"Expected episodes of more than 40 steps, after which actions act\."):
        fit(short, randomize={**LENGTH, "action_delay": 40})


def test_a_log_of_fewer_numbers_than_there_are_to_find_is_refused(short: Any) -> None:
    first = {"observations": short[0]["observations"][:3], "actions": short[0]["actions"][:2]}
    with pytest.raises(LogError, match="Expected more steps: 8 numbers of 2 steps cannot determine 9: 1 param"):
        fit(first)
    three = {"observations": short[0]["observations"][:4], "actions": short[0]["actions"][:3]}
    assert fit(three).facts["steps"] == "3 fitted"


def test_a_log_without_motion_is_refused() -> None:
    still = {"observations": np.zeros((21, 4)), "actions": np.zeros(20, np.int64)}
    with pytest.raises(LogError, match="Expected motion, got a log in which nothing that is measured changes"):
        fit([still] * 3)


# ---- checking only ----


def test_checking_tells_what_can_be_fitted(short: Any) -> None:
    steps = sum(len(episode["actions"]) for episode in short)
    told = check(short, Question(env=CART, randomize={**LENGTH, "x_threshold": (2.0, 3.0)}))
    assert told[0] == f"{len(short)} episodes, {steps} steps; {steps} can be replayed."
    assert "Compared: x (m), x_dot (m/s), theta (rad), theta_dot (rad/s)." in told
    assert told[-1] == "Parameters to find: length, x_threshold."


def test_checking_tells_which_steps_cannot_be_replayed_and_what_stays_open() -> None:
    log = logged("gym_dr/LunarLanderDR-v3", episodes=2, steps=45, noise=0.0)
    prior: Any = {"gravity": (-12, -6), "ground_friction": (0.05, 0.2)}
    told = check(log, Question(env="gym_dr/LunarLanderDR-v3", randomize=prior))
    assert "60 steps cannot: the legs still swing to their stops after the start." in told
    assert any(text.startswith("ground_friction would keep its prior: it matters on the ground only") for text in told)
    assert told[-1] == "Parameters to find: gravity."
