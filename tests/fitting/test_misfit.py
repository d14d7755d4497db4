"""Whether noise explains what a model leaves over: no false alarms, and wrong models are found out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.api.fit import open_problem
from gym_dr.fitting.estimate import estimate, first_guess
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.misfit import Misfit, find_misfit
from gym_dr.fitting.motion import read_motion
from gym_dr.fitting.problem import Question
from gym_dr.fitting.simulator import Simulator
from tests.fitting.logged import CART, logged

PRIOR: dict[str, Any] = {"length": (0.25, 1.0), "force_mag": (6.0, 14.0)}
TRUTH = {"length": 0.6, "force_mag": 11.0}


def misfit_of(log: Any, randomize: Any = None, params: Any = None) -> Misfit:
    problem = open_problem(log, Question(env=CART, randomize=PRIOR if randomize is None else randomize, params=params))
    try:
        simulator = Simulator(problem.replay)
        middle = np.full(len(problem.prior.names), 0.5)
        motion = read_motion(problem.episodes, problem.replay)
        likelihood = Likelihood(motion, simulator, problem.prior)
        return find_misfit(likelihood, estimate(likelihood, first_guess(likelihood, middle)))
    finally:
        problem.close()


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.02])
def test_a_right_model_is_not_suspected_at_any_noise(noise: float) -> None:
    found = misfit_of(logged(params=TRUTH, noise=noise))
    assert not found.suspicious, found


def test_right_models_are_suspected_as_rarely_as_promised() -> None:
    # of 6 logs 0.09 on average: two or more have a probability of 0.4 %
    alarms = sum(misfit_of(logged(params=TRUTH, episodes=12, seed=seed)).suspicious for seed in range(6))
    assert alarms <= 1


def test_actions_that_act_a_step_late_are_found() -> None:
    found = misfit_of(logged(params=TRUTH, late=1))
    assert found.suspicious
    assert found.lack is not None
    assert found.lack.p < 1e-6
    assert "action" in found.lack.feature
    assert found.lack.coordinate.name in ("x_dot", "theta_dot")


def test_another_time_step_is_found() -> None:
    found = misfit_of(logged(params={**TRUTH, "tau": 0.024}, episodes=40, noise=0.002))
    assert found.lacks()


def test_a_time_step_that_is_known_is_not_suspected() -> None:
    log = logged(params={**TRUTH, "tau": 0.024}, episodes=40, noise=0.002)
    assert not misfit_of(log, params={"tau": 0.024}).suspicious


def test_parameters_that_differ_between_episodes_are_found() -> None:
    lengths = np.linspace(0.4, 0.8, 20)
    found = misfit_of(logged(params={"length": lengths, "force_mag": 11.0}))
    assert found.episodes_differ()
    assert found.contradiction is not None
    assert found.contradiction.odd is None


def test_one_episode_says_nothing_about_differences() -> None:
    assert misfit_of(logged(params=TRUTH, episodes=8)[:1]).contradiction is None


def test_without_parameters_residuals_are_looked_at_all_the_same() -> None:
    only_noise = {"obs_noise": (0.0, 1.0)}
    assert not misfit_of(logged(), only_noise).suspicious
    assert misfit_of(logged(late=1), only_noise).suspicious


def test_an_offset_is_told_as_one() -> None:
    log = logged(params=TRUTH, noise=0.002)
    for episode in log:
        episode["observations"][:, 1] += 0.05  # m/s; so x moves less than x_dot says
    found = misfit_of(log)
    assert found.lacks()
    assert found.lack is not None
    assert (found.lack.coordinate.name, found.lack.feature) == ("x", "")
    assert found.lack.size / 0.02 == pytest.approx(0.05, rel=0.1)  # m/s, in steps of 0.02 s


def test_one_episode_that_contradicts_all_others_is_named() -> None:
    lengths = np.full(8, 0.6)
    lengths[5] = 0.7
    found = misfit_of(logged(params={"length": lengths, "force_mag": 11.0}, episodes=8))
    assert found.episodes_differ()
    assert found.contradiction is not None
    assert found.contradiction.odd == 5


def test_of_two_episodes_that_differ_neither_is_the_odd_one() -> None:
    found = misfit_of(logged(params={"length": np.array([0.5, 0.7]), "force_mag": 11.0}, episodes=2, steps=60))
    assert found.episodes_differ()
    assert found.contradiction is not None
    assert found.contradiction.odd is None


def test_what_is_too_small_to_matter_is_no_alarm() -> None:
    log = logged(params=TRUTH, noise=1e-5)
    for episode in log:
        episode["observations"][:, 1] += 5e-4  # m/s, of about 1
    found = misfit_of(log)
    assert found.lack is not None
    assert found.lack.p < 1e-6
    assert not found.suspicious
    assert found.excess.any()  # ranges are narrower still


def test_forces_act_on_speeds_and_not_on_positions() -> None:
    problem = open_problem(logged(params=TRUTH), Question(env=CART, randomize=PRIOR))
    simulator = Simulator(problem.replay)
    likelihood = Likelihood(read_motion(problem.episodes, problem.replay), simulator, problem.prior)
    found = estimate(likelihood, np.full(2, 0.5), rounds=1)
    problem.close()
    assert found.forced.tolist() == [False, True, False, True]
