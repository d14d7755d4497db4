"""How many steps of an environment logged intervals last, where gaps are, and which rows of a faster log are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.errors import LogError
from gym_dr.fitting.clock import in_single_steps, on_clock
from gym_dr.fitting.logs import LoggedEpisode, read_log

STEPS = 6


def logged(time: Any, actions: Any = None, **others: Any) -> LoggedEpisode:
    """An episode whose action changes at every third row."""
    count = len(time)
    chosen = np.repeat(np.arange(count), 3)[: count - 1, None] if actions is None else actions
    given = {"observations": np.arange(count * 2.0).reshape(count, 2), "actions": chosen, "time": time}
    return read_log({**given, **others})[0]


def regular(interval: float, steps: int = STEPS, **others: Any) -> LoggedEpisode:
    return logged(interval * np.arange(steps + 1), **others)


def holds(time: Any, step: float | None) -> list[int]:
    (episode,) = on_clock([logged(time)], step)
    return list(episode.holds)


def test_without_times_each_logged_step_is_one_of_the_environment() -> None:
    (episode,) = read_log({"observations": np.zeros((4, 2)), "actions": np.zeros((3, 1))})
    assert on_clock([episode], 9.0)[0] is episode
    assert episode.holds.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("interval", "step"), [(0.05, 0.05), (0.0501, 0.05), (0.0499, 0.05), (0.05, None)])
def test_at_the_environments_rate_each_logged_step_is_one_of_its(interval: float, step: float | None) -> None:
    assert holds(interval * np.arange(1001), step) == [1] * 1000  # also where two clocks differ a little


def test_an_action_of_a_slower_log_lasts_several_steps() -> None:
    found = on_clock([regular(0.1), regular(0.2, steps=3)], 0.02)
    assert [episode.holds.tolist() for episode in found] == [[5] * 6, [10] * 3]


def test_each_interval_takes_the_nearest_whole_number_of_steps_on_the_running_clock() -> None:
    time = np.cumsum([0.0, *np.random.default_rng(0).uniform(0.02, 0.07, 400)])
    steps = np.array(holds(time, 0.01))
    assert np.abs(np.cumsum(steps) * 0.01 - time[1:]).max() <= 0.005 + 1e-9  # half a step, at the end too
    assert {*steps.tolist()} == {2, 3, 4, 5, 6, 7}


def test_stamps_that_jitter_leave_a_step_for_each_row() -> None:
    time = 0.01 * np.arange(300) + np.random.default_rng(0).uniform(-0.001, 0.001, 300)
    assert holds(time, 0.01) == [1] * 299


def test_intervals_of_more_than_five_medians_are_gaps_over_which_the_clock_runs_on() -> None:
    (episode,) = on_clock([logged([0.0, 0.1, 0.2, 0.4, 0.5, 1.1, 1.2])], 0.1)
    assert episode.gaps.tolist() == [False, False, False, False, True, False]
    assert episode.holds.tolist() == [1, 1, 2, 1, 6, 1]


def test_a_step_of_variable_length_divides_each_interval_evenly() -> None:
    (episode,) = on_clock([logged([0.0, 0.01, 0.03, 0.055, 0.0551])], 0.02, exact=True)
    assert episode.holds.tolist() == [1, 1, 2, 1]


def test_in_single_steps_nothing_is_measured_between_two_rows() -> None:
    (episode,) = on_clock([logged([0.0, 0.1, 0.4, 0.5], np.array([[1.0], [2.0], [3.0]]), state=np.arange(4.0))], 0.1)
    found = in_single_steps(episode)
    assert found.actions.ravel().tolist() == [1.0, 2.0, 2.0, 2.0, 3.0]
    assert np.isnan(found.observations).any(axis=1).tolist() == [False, False, True, True, False, False]
    np.testing.assert_array_equal(found.observations[[0, 1, 4, 5]], episode.observations)
    np.testing.assert_array_equal(found.others["state"], [0.0, 1.0, np.nan, np.nan, 2.0, 3.0])
    assert found.time is not None
    np.testing.assert_allclose(found.time, 0.1 * np.arange(6))
    assert found.holds.tolist() == [1] * 5


# ---- faster logs ----


def test_a_faster_log_keeps_the_observations_at_the_environments_steps() -> None:
    given = regular(0.01, steps=8, qpos=np.arange(9.0), rewards=np.arange(8.0), mass=np.float64(2.0))
    (episode,) = on_clock([given], 0.03)
    np.testing.assert_array_equal(episode.observations, given.observations[[0, 3, 6]])
    assert episode.actions.ravel().tolist() == [0, 1]
    assert episode.time is not None
    np.testing.assert_allclose(episode.time, [0.0, 0.03, 0.06])
    assert episode.others["qpos"].tolist() == [0.0, 3.0, 6.0]
    assert episode.others["rewards"].tolist() == [0.0, 3.0]
    assert episode.others["mass"] == 2.0
    assert episode.holds.tolist() == [1, 1]


def test_of_an_irregular_faster_log_the_row_nearest_to_each_step_is_kept() -> None:
    time = [0.0, 0.004, 0.009, 0.0115, 0.017, 0.021, 0.024, 0.029, 0.034]
    (episode,) = on_clock([logged(time, np.zeros((8, 1)))], 0.01)
    assert episode.time is not None
    assert episode.time.tolist() == [0.0, 0.009, 0.021, 0.029]
    assert episode.holds.tolist() == [1, 1, 1]


def test_the_mean_of_what_acted_within_a_step_may_act_if_it_is_asked_for() -> None:
    actions = np.array([[0.0], [3.0], [6.0], [1.0], [1.0], [4.0]])
    (episode,) = on_clock([logged(0.01 * np.arange(7), actions)], 0.03, average_actions=True)
    np.testing.assert_allclose(episode.actions, [[3.0], [2.0]])


# ---- what is refused ----


@pytest.mark.parametrize(
    ("episodes", "step", "message"),
    [
        (
            [regular(0.1), *read_log({"observations": np.zeros((4, 2)), "actions": np.zeros((3, 1))})],
            0.1,
            "expected times, as in episode 0, got none",
        ),
        ([regular(0.1)], 0.07, "expected observations every 0.07 s, a step of the environment"),
        ([regular(0.1)], 0.07, "got one every 0.1 s (median), off by 0.035 s. Name the parameter"),
        ([regular(0.1)], 0.2, "expected the same action in all rows of each step of the environment, got a change in"),
        ([regular(0.1)], 0.2, "row 3, within step 1. Average what acts (`average_actions`)"),
        ([regular(0.1, steps=2)], 0.3, "expected at least 3 actions, which last one step of the environment, got 2"),
    ],
)
def test_a_log_of_another_rate_is_refused_with_both(episodes: Any, step: float, message: str) -> None:
    with pytest.raises(LogError) as refused:
        on_clock(episodes, step)
    assert message in str(refused.value)


def test_discrete_actions_have_no_mean() -> None:
    given = regular(0.1, actions=np.array([0, 1, 0, 1, 0, 1]))
    with pytest.raises(LogError, match=r"got a change in row 1, within step 0\. Make the environment with"):
        on_clock([given], 0.2, average_actions=True)
