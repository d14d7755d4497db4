"""ADR ends where its success at the ends of ranges says that it must."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from gym_dr.errors import ConfigError
from gym_dr.randomization.adaptive.adr import Adr, AdrOptions, moved
from gym_dr.randomization.sampler import TrainingInfo
from gym_dr.randomization.spec import Randomization
from tests.randomization.adaptive.synthetic import LINE, SPACE, SQUARE, below_06, play_at_once

NUM_ENVS = 400
OPTIONS = AdrOptions(success=1.0, cohort=NUM_ENVS, bound_step=0.1, start=Randomization({"x": (0.2, 0.4)}))


def adr(support: Randomization = LINE, options: AdrOptions = OPTIONS) -> Adr:
    return Adr(SPACE, support, options, TrainingInfo(num_envs=NUM_ENVS))


def test_draws_are_uniform_between_the_bounds_and_half_of_them_at_one() -> None:
    sampler = adr(SQUARE, AdrOptions(success=1.0, start={"x": (0.2, 0.4), "y": (0.5, 0.9)}))
    seeds, index = np.arange(8000, dtype=np.uint64), np.zeros(8000, np.int64)
    x, y = sampler.draw(seeds, index).values()
    at = np.stack([x == x.min(), x == x.max(), y == y.min(), y == y.max()])
    assert [x.min(), x.max(), y.min(), y.max()] == pytest.approx([0.2, 0.4, 0.5, 0.9])
    assert (at.sum(axis=0) <= 1).all()
    # one in eight at each of four bounds; the standard deviation of a share is sqrt(7 / 64 / 8000) = 0.0037
    np.testing.assert_allclose(at.mean(axis=1), 0.125, atol=0.015)
    np.testing.assert_allclose(x[~at[:2].any(axis=0)].mean(), 0.3, atol=0.003)


@pytest.mark.parametrize(
    ("bound", "rate", "expected"),
    [
        (0, 0.5, [0.1, 0.4]),  # the lower end moves down by the step
        (1, 0.5, [0.2, 0.5]),
        (1, 0.4, [0.2, 0.4]),  # between the thresholds nothing moves
        (0, 0.25, [0.3, 0.4]),
        (1, 0.25, [0.2, 0.3]),
    ],
)
def test_a_bound_moves_by_its_success(bound: int, rate: float, expected: list[float]) -> None:
    np.testing.assert_allclose(moved(np.array([[0.2, 0.4]]), bound, rate, OPTIONS), [expected])


def test_a_bound_stays_in_the_box_and_does_not_pass_the_other() -> None:
    for ranges, bound, rate, expected in (
        ((0.05, 1.0), 0, 1.0, (0.0, 1.0)),
        ((0.0, 0.95), 1, 1.0, (0.0, 1.0)),
        ((0.4, 0.45), 0, 0.0, (0.45, 0.45)),
        ((0.4, 0.45), 1, 0.0, (0.4, 0.4)),
    ):
        np.testing.assert_allclose(moved(np.array([ranges]), bound, rate, OPTIONS), [expected])


def test_success_below_06_ends_in_bounds_from_0_to_06() -> None:
    # From (0.2, 0.4) in steps of 0.1: the lower end reaches 0 after two moves. The upper end moves to 0.5, where all
    # succeed, and to 0.6, where none do (0.6 < 0.6 is false); so it goes back to 0.5, and on between the two.
    sampler = adr()
    rows = play_at_once(sampler, below_06, updates=12, episodes=NUM_ENVS)
    assert [row["x.low"] for row in rows[2:]] == [pytest.approx(0.0, abs=1e-12)] * 10
    assert {round(float(row["x.high"]), 9) for row in rows[3:]} == {0.5, 0.6}
    assert rows[-1]["entropy"] == pytest.approx(np.log(float(rows[-1]["x.high"])))


def test_two_parameters_that_interact_end_where_half_of_the_draws_at_a_bound_succeed() -> None:
    # Success if x + y < 1, from the square (0.2, 0.4) x (0.2, 0.4). Draws with x at its upper end h succeed for y below
    # 1 - h, a share (1 - h) / h of y in (0, h): at least 0.5 up to h = 2/3, at most 0.25 from h = 0.8. By symmetry y
    # does the same, so the ends move out while h <= 0.6, and stay at the first multiple of 0.1 after 2/3: 0.7.
    sampler = adr(SQUARE, AdrOptions(**{**vars(OPTIONS), "start": Randomization({"x": (0.2, 0.4), "y": (0.2, 0.4)})}))
    play_at_once(sampler, lambda p: float(p["x"] + p["y"] < 1), updates=25, episodes=NUM_ENVS)
    np.testing.assert_allclose(sampler.shape, [(0.0, 0.7), (0.0, 0.7)], atol=0.1 + 1e-9)
    np.testing.assert_allclose(sampler.shape[:, 0], 0.0, atol=1e-9)


def test_a_parameter_that_does_not_matter_takes_its_whole_range() -> None:
    sampler = adr(SQUARE)
    play_at_once(sampler, below_06, updates=15, episodes=NUM_ENVS)
    np.testing.assert_allclose(sampler.shape[1], (0.0, 1.0), atol=1e-9)


def test_nothing_moves_before_the_first_draws_succeed() -> None:
    sampler = adr(options=AdrOptions(**{**vars(OPTIONS), "start": Randomization({"x": (0.7, 0.9)})}))
    rows = play_at_once(sampler, below_06, updates=3, episodes=NUM_ENVS)
    assert [row["did"] for row in rows] == ["waits"] * 3
    assert sampler.version == 0


def test_success_can_be_a_function_of_the_episode() -> None:
    sampler = adr(options=dataclasses.replace(OPTIONS, success=lambda episode: episode.params["x"] < 0.5))
    rows = play_at_once(sampler, lambda params: 0.0, updates=8, episodes=NUM_ENVS)
    assert {round(float(row["x.high"]), 9) for row in rows[3:]} == {0.4, 0.5}


@pytest.mark.parametrize(
    "bad",
    [
        {"bound_probability": 1.0},
        {"bound_episodes": 0},
        {"bound_step": 0.6},
        {"narrow_at": 0.6},
        {"cohort": 0},
        {"start_width": 0.0},
        {"bound_step": "0.1"},
        {"success": "100"},
        {"success": float("nan")},
    ],
)
def test_impossible_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(bad))}: expected"):
        AdrOptions(**bad)


def test_someone_must_say_what_success_is() -> None:
    with pytest.raises(ConfigError, match="success: expected the return"):
        adr(options=AdrOptions())
