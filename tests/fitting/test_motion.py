"""Logged steps: which of them can be replayed, and what acts in them if actions act late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gym_dr.envs.replay import Coordinate, Reading
from gym_dr.errors import LogError
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.motion import read_motion, start_path, stretches

Numbers = npt.NDArray[np.float64]
LOST = 6  # a step that cannot be replayed
LATE = 2


def pushed(states: Numbers, actions: Numbers) -> Numbers:
    """A position that a force moves, which follows the action slowly."""
    force = 0.5 * (states[:, 1] + actions[:, 0])
    return np.stack([states[:, 0] + force, force], axis=1)


def read(observations: Numbers, _: Any) -> Reading:
    """Positions only; the force is not observed."""
    usable = np.arange(len(observations) - 1) != LOST
    states = np.concatenate([observations, np.full((len(observations), 1), np.nan)], axis=1)
    return Reading(states=states, usable=usable, reasons={"lost": ~usable})


REPLAY: Any = SimpleNamespace(
    read=read,
    coordinates=(Coordinate(name="x"), Coordinate(name="force")),
    difference=lambda states, origins: states - origins,
    seen=lambda known: known[..., :2],
    places=np.arange(2),
    inexact=(),
)
SIMULATOR: Any = SimpleNamespace(
    replay=REPLAY,
    start=lambda _: np.zeros(2),
    predict=lambda states, actions, _, **__: pushed(states, actions),
)


def ridden(steps: int, seed: int = 0) -> tuple[LoggedEpisode, Numbers]:
    """An episode whose actions act ``LATE`` steps after they are logged, and nothing before; and its states."""
    actions = np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, 1))
    states = [np.zeros((1, 2))]
    for t in range(steps):
        states.append(pushed(states[-1], actions[t - LATE : t - LATE + 1] if t >= LATE else np.zeros((1, 1))))
    whole = np.concatenate(states)
    return LoggedEpisode(observations=whole[:, :1], actions=actions), whole


def test_a_start_keeps_what_is_measured_and_fills_gaps_between() -> None:
    episode, states = ridden(6)  # all before the lost step
    episode.observations[3] = np.nan
    path = start_path(read_motion([episode], REPLAY, LATE), SIMULATOR, {})
    expected = states[2:, 0].copy()
    expected[1] = (expected[0] + expected[2]) / 2.0
    np.testing.assert_allclose(path.states[:, 0], expected[:-1])
    np.testing.assert_allclose(path.ends[:, 0], expected[1:])
    assert not path.ends[:, 1].any()  # as at the start of an episode


def test_the_table_holds_what_is_measured_and_nothing_else() -> None:
    motion = read_motion([ridden(10)[0]], REPLAY, LATE)
    assert motion.seen.tolist() == [True, False]
    assert motion.observed.all(axis=0).tolist() == motion.first_observed.all(axis=0).tolist() == [True, False]
    assert np.isnan(motion.measured[:, 1]).all()
    assert np.isnan(motion.first[:, 1]).all()
    assert np.isfinite(motion.scale).tolist() == [True, False]


def test_a_part_of_the_steps_has_chains_of_its_own() -> None:
    motion = read_motion([ridden(20)[0]], REPLAY, LATE)
    rows = np.array([1, 2, 3, 6, 7])
    part = motion.rows(rows)
    assert part.begins.tolist() == [True, False, False, True, False]
    np.testing.assert_array_equal(part.before, motion.before[rows])
    np.testing.assert_array_equal(part.measured, motion.measured[rows])
    np.testing.assert_array_equal(motion.rows(slice(None)).first, motion.first)


def test_a_step_that_cannot_be_replayed_takes_no_others_with_it() -> None:
    # the action that was logged in it acts two steps later all the same
    motion = read_motion([ridden(10)[0], ridden(12, 1)[0]], REPLAY, LATE)
    assert motion.episode.tolist() == [0] * 7 + [1] * 9
    assert motion.steps.tolist() == [2, 3, 4, 5, 7, 8, 9, 2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert np.flatnonzero(~motion.joined).tolist() == [3, 6, 10, 15]


def test_episodes_shorter_than_a_delay_are_left_out() -> None:
    motion = read_motion([ridden(1)[0], ridden(5)[0]], REPLAY, LATE)
    assert motion.episode.tolist() == [1, 1, 1]
    with pytest.raises(LogError, match="Expected episodes of more than 2 steps, after which actions act"):
        read_motion([ridden(1)[0], ridden(2)[0]], REPLAY, LATE)


def test_what_is_read_late_belongs_to_the_row_in_which_it_was() -> None:
    episode = ridden(6)[0]
    motion = read_motion([episode], REPLAY, ages={"x": 2})
    np.testing.assert_array_equal(motion.first[0, 0], episode.observations[2, 0])
    np.testing.assert_array_equal(motion.measured[:4, 0], episode.observations[3:, 0])
    assert motion.observed[:, 0].tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize("steps", [601, 623, 625, 700, 1201, 40_000])
def test_a_part_of_a_log_comes_from_all_of_it(steps: int) -> None:
    rows = stretches(steps, 600)
    assert len(rows) == len(set(rows.tolist())) == 600
    assert (rows[0], rows[-1]) == (0, steps - 1)
    ends = np.flatnonzero(np.diff(rows) != 1)
    assert np.diff(rows)[ends].max() <= steps // 20  # nothing longer is left out
    assert np.diff(ends, prepend=-1).min() >= 25  # steps in a row, whose states hang together


def test_of_a_short_log_all_steps_are_taken() -> None:
    np.testing.assert_array_equal(stretches(600, 600), np.arange(600))
