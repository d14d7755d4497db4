"""Errors of predictions, and the choice between methods by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gym_dr
from gym_dr.fitting.horizons import choice_sentences, chosen_method, held_out, in_blocks
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.results import Fit
from tests.fitting import cart_on_rail as rail
from tests.registered import forgotten_afterwards

PRIOR: dict[str, Any] = {"gain": (-5.0, 5.0), "drag": (0.0, 4.0)}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        rail.register()
        yield


def fitted(log: Any, **asked: Any) -> Fit:
    return gym_dr.fit(log, env=rail.ID, randomize=PRIOR, progress=False, **asked)


@pytest.fixture(scope="module")
def right() -> Fit:
    return fitted(rail.ridden(gain=3.0))


@pytest.fixture(scope="module")
def wrong() -> Fit:
    """Of a system with dry friction, which the model lacks."""
    return fitted(rail.ridden(gain=3.0, friction=0.5))


def test_errors_are_told_at_each_horizon_that_fits_and_in_the_unit_of_each_coordinate(right: Fit) -> None:
    horizons = ["one step", "0.1 s", "0.5 s", "1 s", "whole episode"]
    assert list(dict.fromkeys(right.replay["horizon"])) == horizons
    assert {"nominal", "fitted", "simulation"} == {*right.replay["physics"]}
    assert right.prediction_table.columns[1:-1] == horizons
    assert [row[0] for row in right.prediction_table.rows] == ["x"]
    assert all(horizon in " ".join(right.findings) for horizon in horizons)


def test_first_states_are_fitted_and_speeds_not_guessed(right: Fit) -> None:
    errors = right.replay[right.replay["physics"] == "fitted"].set_index("horizon")["error"]
    assert errors["one step"] < 1.5e-3  # the noise is 5e-4; a speed of 0 would be off by as much as it moves
    assert errors["1 s"] < 0.01


def test_the_likelihood_is_kept_where_both_methods_predict_alike(right: Fit) -> None:
    assert "Method: likelihood. Likelihood and simulation predict alike." in right.findings
    assert not any("disagree" in text for text in right.findings)
    assert right.parameters["mean"].to_dict() == pytest.approx({"gain": 3.0, "drag": 1.0}, abs=0.01)


def test_a_missing_friction_is_seen_in_what_each_method_predicts(wrong: Fit) -> None:
    (told,) = (text for text in wrong.findings if text.startswith("Method: "))
    taken = "simulation" if told.startswith("Method: simulation") else "likelihood"
    (other,) = {"likelihood", "simulation"} - {taken}
    assert {*wrong.replay["physics"]} == {"nominal", "fitted", other}
    assert wrong.facts["method"].startswith("simulation") == (taken == "simulation")


def test_blocks_of_one_long_episode_are_held_out() -> None:
    (first, *_) = rail.ridden()
    many = {"observations": np.tile(first["observations"][:-1], (4, 1)), "actions": np.tile(first["actions"], (4, 1))}
    episode = LoggedEpisode(observations=np.vstack([many["observations"], [[0.0]]]), actions=many["actions"])
    blocks = in_blocks([episode])
    assert [len(block) for block in blocks] == [240] * 5
    np.testing.assert_array_equal(blocks[1].observations[0], blocks[0].observations[-1])
    short = [LoggedEpisode(observations=np.zeros((100, 1)), actions=np.zeros((99, 1)))]
    assert in_blocks(short) == short
    assert in_blocks([episode] * 3) == [episode] * 3


def test_one_episode_of_each_part_of_the_log_is_held_out_at_no_fixed_distance() -> None:
    # 16 episodes in four parts of four
    drawn = [sorted(held_out(16, 0.25, np.random.default_rng(seed))) for seed in range(20)]
    assert all([number // 4 for number in numbers] == [0, 1, 2, 3] for numbers in drawn)
    assert {number for numbers in drawn for number in numbers} == set(range(16))
    assert len({tuple(np.diff(numbers)) for numbers in drawn}) > 10
    assert [len(held_out(episodes, 0.2, np.random.default_rng(0))) for episodes in (2, 3, 6)] == [0, 1, 2]


def errors(**shares: list[float]) -> pd.DataFrame:
    """Of one coordinate over one step, 1 s and whole episodes."""
    horizons = [("one step", 0.0), ("1 s", 1.0), ("whole episode", np.nan)]
    rows = [
        (physics, horizon, seconds, "x", "m", share, share)
        for physics, values in shares.items()
        for (horizon, seconds), share in zip(horizons, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["physics", "horizon", "seconds", "coordinate", "unit", "error", "share"])


@pytest.mark.parametrize(
    ("likelihood", "simulation", "taken"),
    [
        ([0.1, 0.5, 0.1], [0.2, 0.4, 0.9], "simulation"),
        ([0.2, 0.5, 0.9], [0.1, 0.49, 0.1], "likelihood"),  # a tie
        ([0.2, 0.4, 0.9], [0.1, 0.5, 0.1], "likelihood"),
    ],
)
def test_the_method_that_predicts_better_over_a_second_is_taken(
    likelihood: list[float], simulation: list[float], taken: str
) -> None:
    table = errors(nominal=[1.0] * 3, likelihood=likelihood, simulation=simulation)
    assert chosen_method(table, ["likelihood", "simulation"]) == taken


def test_disagreements_are_told_with_both_ranges() -> None:
    near, far = np.linspace(0.9, 1.1, 100), np.linspace(2.0, 3.0, 100)
    values = {"likelihood": {"gain": near, "drag": near}, "simulation": {"gain": far, "drag": near + 0.05}}
    table = errors(nominal=[1.0] * 3, likelihood=[0.1, 0.5, 0.5], fitted=[0.2, 0.4, 0.5])
    told = choice_sentences(table, "simulation", values)
    assert told[0] == "Method: simulation. Simulation predicts better at 1 s; likelihood predicts better at one step."
    assert [text for text in told if "disagree" in text] == told[1:]
    assert "gain" in told[1]
    assert len(told) == 2
