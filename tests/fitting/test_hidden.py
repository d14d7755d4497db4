"""Logs of positions alone: speeds are inferred together with the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.api.fit import open_problem
from gym_dr.fitting.estimate import Estimate, beginning, estimate
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.motion import read_motion
from gym_dr.fitting.problem import Question
from gym_dr.fitting.results import Fit
from gym_dr.fitting.simulator import Simulator
from tests.fitting.cart_on_rail import ID, register, ridden
from tests.registered import forgotten_afterwards

PRIOR: dict[str, Any] = {"gain": (-5.0, 5.0), "drag": (0.0, 4.0)}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        register()
        yield


def fitted(log: Any, **options: Any) -> Fit:
    return gym_dr.fit(log, env=ID, randomize=PRIOR, held_out=0.0, progress=False, **options)


@pytest.mark.parametrize("gain", [pytest.param(2.0, marks=pytest.mark.slow), -2.0])  # the others have 2
def test_parameters_are_found_from_positions_alone(gain: float) -> None:
    # the middle of the prior is 0, where speeds do not change
    found = fitted(ridden(gain))
    assert found.parameters["mean"].to_dict() == pytest.approx({"gain": gain, "drag": 1.0}, abs=0.01)
    assert found.parameters["std"].max() < 0.005
    assert not found.suspicious


def test_dry_friction_that_the_model_lacks_is_found_in_the_speed() -> None:
    found = fitted(ridden(friction=0.1))
    assert found.suspicious
    assert "mostly with the direction of v" in found.findings[0]


@pytest.mark.parametrize("method", ["likelihood", "simulation"])
def test_intervals_of_a_suspicious_model_hold_true_values(method: str) -> None:
    table = fitted(ridden(friction=0.3), method=method).parameters.loc[["gain", "drag"]]
    assert table["best"]["drag"] > 1.5  # takes up the friction
    assert (table["low"] < [2.0, 1.0]).all()
    assert (table["high"] > [2.0, 1.0]).all()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_right_model_of_positions_is_not_suspected(seed: int) -> None:
    assert not fitted(ridden(seed=seed)).suspicious


def test_weights_beyond_the_budget_of_simulated_steps_are_not_made_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gym_dr.fitting.draws._NOT_QUADRATIC", 0.0)  # weights are always wanted
    within = fitted(ridden(), method="likelihood")
    monkeypatch.setattr("gym_dr.fitting.draws._STEPS", 100_000)
    beyond = fitted(ridden(), method="likelihood")
    assert [any("approximate" in sentence for sentence in one.findings) for one in (within, beyond)] == [False, True]
    assert (within.facts["method"], beyond.facts["method"]) == ("particles", "least squares")


def estimated(log: Any, lost: float = 0.0) -> Estimate:
    """The estimate for a log of which a share of the positions is lost."""
    problem = open_problem(log, Question(env=ID, randomize=PRIOR))
    motion = read_motion(problem.episodes, problem.replay)
    rows = np.random.default_rng(0).random(len(motion)) < lost
    motion = replace(
        motion,
        measured=np.where(rows[:, None], np.nan, motion.measured),
        observed=motion.observed & ~rows[:, None],
    )
    likelihood = Likelihood(motion, Simulator(problem.replay), problem.prior)
    found = estimate(likelihood, *beginning(likelihood, np.full(2, 0.5)))
    problem.close()
    return found


def test_missing_rows_take_information_and_move_nothing() -> None:
    whole, found = estimated(ridden()), estimated(ridden(), lost=0.5)
    wider = np.sqrt(np.diag(np.linalg.inv(found.information)) / np.diag(np.linalg.inv(whole.information)))
    assert ((wider > 1.1) & (wider < 2.5)).all()
    # by name, drag and gain: 1 of 0 to 4, and 2 of -5 to 5
    np.testing.assert_allclose(found.u, [0.25, 0.7], atol=0.002)


def test_what_the_model_lacks_becomes_force_and_not_noise_of_positions() -> None:
    found = estimated(ridden(friction=0.3))
    assert found.forced.tolist() == [False, True]
    assert found.noise.process[0] == 0.0
    assert np.sqrt(found.noise.process[1]) > 1e-3  # m/s in each step
    assert np.sqrt(found.noise.measured[0]) == pytest.approx(5e-4, rel=0.2)
