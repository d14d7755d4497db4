"""Mean scores of episodes, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gym_dr import EpisodeRecord
from gym_dr.wrappers.episode_scores import EpisodeScores, episode_means

NOTHING = np.zeros((2, 2))
ALL = np.ones(2, np.bool_)
# of two sub-environments in four steps
SCORES = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])


def record(env: int) -> EpisodeRecord:
    return EpisodeRecord(env_index=env, seed=0, draw_index=0, params={}, episode_return=0.0, length=1, terminated=True)


def scored(episodes: list[EpisodeRecord]) -> list[tuple[int, float | None]]:
    return [(episode.env_index, episode.score) for episode in episodes]


def test_an_episode_has_the_mean_over_its_steps_and_the_next_one_begins_after_its_end() -> None:
    means, carried = episode_means(SCORES, SCORES > 0, [(3, 0), (1, 1), (3, 1)], NOTHING)
    assert means == [2.0, 10.0, 25.0]  # (1 + 2 + 3) / 3, 10 / 1, (20 + 30) / 2
    assert carried.tolist() == [[4.0, 40.0], [1.0, 1.0]]


def test_what_was_carried_on_counts_for_the_current_episodes_alone() -> None:
    means, carried = episode_means(SCORES, SCORES > 0, [(1, 0), (2, 0)], np.array([[9.0, 5.0], [4.0, 1.0]]))
    assert means == [2.0, 2.0]  # (9 + 1) / 5, 2 / 1
    assert carried.tolist() == [[7.0, 105.0], [2.0, 5.0]]


def test_a_reset_step_does_not_count() -> None:
    stepped = np.array([[True, True], [False, True], [True, True], [True, True]])
    means, carried = episode_means(SCORES, stepped, [(1, 0), (3, 0)], NOTHING)
    assert means == [1.0, 3.0]  # not (2 + 3) / 2
    assert carried.tolist() == [[4.0, 100.0], [1.0, 4.0]]


@pytest.mark.parametrize("end", [0, -3])
def test_an_episode_that_ended_before_the_first_score_has_none(end: int) -> None:
    means, carried = episode_means(SCORES, SCORES > 0, [(end, 0), (2, 0)], NOTHING)
    assert means == [None, 1.5]
    assert carried.tolist() == [[7.0, 100.0], [2.0, 4.0]]


def test_an_episode_without_a_step_has_no_score() -> None:
    stepped = np.array([[False, True]] * 4)
    assert episode_means(SCORES, stepped, [(4, 0)], NOTHING)[0] == [None]


def test_episodes_span_several_calls() -> None:
    scores = EpisodeScores(2)
    scores.note(ALL, 2, [record(1)])
    assert scored(scores.take(SCORES[:2])) == [(1, 15.0)]  # (10 + 20) / 2
    scores.note(ALL, 2, [record(0), record(1)])
    assert scored(scores.take(SCORES[2:])) == [(0, 2.5), (1, 35.0)]  # (1 + 2 + 3 + 4) / 4, (30 + 40) / 2
    assert scores.steps == 0


def test_episodes_that_a_reset_cuts_off_have_no_score_and_leave_nothing_to_the_next() -> None:
    scores = EpisodeScores(2)
    scores.note(ALL, 3, [])
    scores.cut_off(np.array([True, False]))
    scores.note(ALL, 1, [record(0), record(1)])
    assert scored(scores.take(SCORES)) == [(0, 4.0), (1, 25.0)]  # 4 / 1, (10 + 20 + 30 + 40) / 4


def test_steps_that_reset_a_sub_environment_are_left_out_also_in_the_middle_of_a_rollout() -> None:
    scores = EpisodeScores(2)
    scores.note(ALL, 1, [record(0)])
    scores.note(np.array([False, True]), 3, [record(0), record(1)])  # the first of these three reset sub-environment 0
    assert scored(scores.take(SCORES)) == [(0, 1.0), (0, 3.5), (1, 25.0)]  # 1, (3 + 4) / 2, (10 + 20 + 30 + 40) / 4


def test_only_the_latest_steps_need_scores_and_what_was_carried_before_the_others_is_dropped() -> None:
    scores = EpisodeScores(2)
    scores.note(ALL, 2, [])
    scores.take(SCORES[:2])
    scores.note(np.array([False, True]), 1, [record(1)])
    scores.note(ALL, 2, [record(0), record(1)])
    # of five steps the last two have scores: the first episode ended before them
    assert scored(scores.take(SCORES[2:])) == [(0, 3.5), (1, 35.0)]  # (3 + 4) / 2, (30 + 40) / 2
