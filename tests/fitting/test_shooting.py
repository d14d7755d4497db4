"""Least squares over simulated stretches, ``--method simulation``."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError
from gym_dr.fitting.results import Fit
from gym_dr.fitting.shooting import Shot, cut, shot_draws
from tests.fitting import cart_on_rail as rail
from tests.fitting.logged import logged
from tests.registered import forgotten_afterwards

PRIOR: dict[str, Any] = {"gain": (-5.0, 5.0), "drag": (0.0, 4.0)}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        rail.register()
        yield


def shot(log: Any, **asked: Any) -> Fit:
    """A fit by simulation, of a cart on a rail unless asked for more."""
    usual = {"env": rail.ID, "randomize": PRIOR, "method": "simulation", "held_out": 0.0, "progress": False}
    return gym_dr.fit(log, **{**usual, **asked})


def around(found: Fit, **truth: float) -> bool:
    """Whether intervals are narrow and true values within four standard deviations."""
    table = found.parameters
    away = [abs(table["mean"][name] - value) / table["std"][name] for name, value in truth.items()]
    return max(away) < 4.0 and bool((table["contraction"] < 0.1).all())


@pytest.mark.parametrize("gain", [pytest.param(2.0, marks=pytest.mark.slow), -2.0])  # the others have 2
def test_parameters_are_found_from_positions_alone(gain: float) -> None:
    assert around(shot(rail.ridden(gain)), gain=gain, drag=1.0)


@pytest.mark.parametrize(("groups", "quantile"), [(2, 6.314), (3, 2.920), (13, 1.782)])
def test_draws_are_students_t_with_as_many_degrees_of_freedom_as_groups_leave(groups: int, quantile: float) -> None:
    # 95 % quantiles of Student's t with 1, 2 and 12 degrees of freedom, from any table
    shot = Shot(u=np.array([0.5, 0.5]), precision=np.diag([1e8, 0.0]), groups=groups)
    draws = shot_draws(shot, np.random.default_rng(0))
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    assert high[0] - low[0] == pytest.approx(2 * quantile * 1e-4, rel=0.1)
    assert high[1] - low[1] == pytest.approx(0.9, rel=0.05)  # nothing is known of it


def test_a_log_of_one_stretch_has_the_interval_of_independent_residuals() -> None:
    log = rail.ridden()[:1]
    log[0] = {"observations": log[0]["observations"][:101], "actions": log[0]["actions"][:100]}
    assert around(shot(log), gain=2.0, drag=1.0)


def test_a_delay_alone_is_found_by_the_likelihood() -> None:
    found = shot(rail.ridden(), randomize={"action_delay": "integer:0:2"})
    assert any(sentence.startswith("action_delay: 0 steps") for sentence in found.findings)


def test_missing_values_are_left_out() -> None:
    log = rail.ridden()
    for episode in log:
        episode["observations"][np.random.default_rng(0).random(len(episode["observations"])) < 0.5] = np.nan
    assert around(shot(log), gain=2.0, drag=1.0)


def test_steps_may_differ_in_length() -> None:
    holds = np.random.default_rng(0).integers(1, 4, 200)
    ends, log = np.append(0, np.cumsum(holds)), rail.ridden()
    for episode in log:
        rows = ends[ends < len(episode["observations"])]
        acting = np.repeat(episode["actions"][rows[:-1]], np.diff(rows), axis=0)
        state, seen = rail.State(0.0, 0.0), [0.0]
        for action in acting[:, 0]:
            state = rail.step(SimpleNamespace(gain=2.0, drag=1.0), state, float(action))[0]
            seen.append(state.x)
        episode["observations"] = np.array(seen)[rows, None]
        episode["actions"], episode["time"] = episode["actions"][rows[:-1]], rail.STEP * rows
    found = shot(log).parameters["mean"]
    assert found.to_dict() == pytest.approx({"gain": 2.0, "drag": 1.0}, abs=1e-3)


def test_the_best_value_may_lie_at_an_end_of_its_prior() -> None:
    found = shot(rail.ridden(drag=0.0))
    assert found.parameters["mean"]["gain"] == pytest.approx(2.0, abs=0.05)
    assert found.parameters["low"]["drag"] < 0.01


def test_offsets_and_gains_of_sensors_are_found() -> None:
    log = rail.ridden()
    for episode in log:
        episode["observations"] = 1.5 * episode["observations"]
    asked = {"drag": (0.0, 4.0), "obs_gain:x": (0.5, 3.0)}
    assert around(shot(log, randomize=asked), drag=1.0, **{"obs_gain:x": 1.5})


def test_motion_that_is_chaotic_over_a_stretch_is_fitted() -> None:
    truth = {"link_mass_1": 1.3, "link_length_1": 0.9}
    log = logged("gym_dr/AcrobotDR-v1", truth, episodes=6, steps=80, noise=0.01)
    found = shot(log, env="gym_dr/AcrobotDR-v1", randomize=dict.fromkeys(truth, (0.5, 2.0)))
    assert around(found, **truth)


def test_the_same_log_gives_the_same_ranges_and_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.fitting.job.SIMULATED", 100_000)
    log = rail.ridden()
    first, second = shot(log), shot(log)
    assert first.randomization == second.randomization
    assert first.facts["simulated"] == second.facts["simulated"]
    assert around(first, gain=2.0, drag=1.0)


def test_stretches_have_no_breaks_and_about_the_same_duration() -> None:
    begins = np.isin(np.arange(250), [0, 100, 230])
    found = cut(begins, np.full(250, 0.01), 0.25, 10**6)
    assert found.lengths.tolist() == [*[25] * 4, *[26] * 5, 20]
    for rows, length in zip(found.rows, found.lengths, strict=True):
        assert not begins[rows[1:length]].any()
        assert (rows[length:] == rows[length - 1]).all()


def test_long_logs_are_used_in_stretches_spread_over_them() -> None:
    begins = np.arange(10_000) == 0
    found = cut(begins, np.full(10_000, 0.01), 0.5, 500)
    assert found.lengths.tolist() == [50] * 10
    assert np.ptp(found.rows) > 8000


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(ConfigError, match="`varies`"):
        shot(rail.ridden(), varies=["gain"])
    lander = logged("gym_dr/LunarLanderDR-v3", episodes=4, steps=80)
    with pytest.raises(ConfigError, match="random numbers"):
        shot(lander, env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12.0, -6.0)})
