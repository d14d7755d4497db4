"""Which episodes are evidence, when, and what is said of those that are not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gym_dr.errors import RandomizationWarning
from gym_dr.randomization.adaptive.adr import Adr, AdrOptions
from gym_dr.randomization.adaptive.learning import STALLED
from gym_dr.randomization.sampler import SAMPLERS, TrainingInfo
from gym_dr.randomization.spec import Randomization
from tests.randomization.adaptive.synthetic import LINE, SPACE, SQUARE, Player, below_06, play_at_once


def adr(num_envs: int, support: Randomization = LINE, **options: Any) -> Adr:
    fixed = {"success": 1.0, "start": LINE, "bound_episodes": 10**6, **options}  # the whole box, and never moves
    return Adr(SPACE, support, AdrOptions(**fixed), TrainingInfo(num_envs=num_envs))


def twice_as_long_where_high(params: Any) -> int:
    return 10 if params["x"] < 0.5 else 20


def test_episodes_that_are_longer_where_they_fail_do_not_bias_the_success_rate() -> None:
    # x is below 0.5 (success, 10 steps) as often as above (failure, 20 steps). In its first 20 steps a sub-environment
    # ends two short episodes (probability 1/4), a short one with a long one under way (1/4), or a long one (1/2): on
    # average 2/4 + 1/4 = 3/4 successes and 1/2 failures, a share of 3/5. A cohort sees the true half.
    sampler = adr(400, cohort=400)
    player = Player(sampler, 400, lambda params: float(params["x"] < 0.5), twice_as_long_where_high)
    ended = player.steps(20)
    assert np.mean([record.episode_return for record in ended]) == pytest.approx(0.6, abs=0.05)
    (row,) = sampler.update(ended)
    # the standard deviation of a share of 400 is 0.025
    assert row["success_rate"] == pytest.approx(0.5, abs=0.06)
    first = [record.episode_return for record in ended if record.draw_index == 0]
    assert row["success_rate"] == np.mean(first)
    assert row["episodes"] == 400


def test_a_cohort_waits_for_the_last_of_its_episodes_and_the_next_has_those_that_began_meanwhile() -> None:
    sampler = adr(2, cohort=3)  # so two of each sub-environment
    player = Player(sampler, 2, below_06)
    one = player.steps(5)
    zero = [record for record in one if record.env_index == 0]
    other = [record for record in one if record.env_index == 1]
    assert sampler.update(zero) == []
    assert sampler.update(other[:1]) == []
    (row,) = sampler.update(other[1:2])
    assert (row["episodes"], row["return_mean"]) == (4, np.mean([r.episode_return for r in zero[:2] + other[:2]]))
    assert len(sampler.update(other[2:4])) == 1


@pytest.mark.parametrize("name", ["adr", "doraemon", "spdl"])
def test_a_row_has_the_numbers_of_the_version_that_drew_its_episodes(name: str) -> None:
    kind = SAMPLERS.get(name)
    options = kind.make_options({"success": 1.0, "cohort": 200, "start": Randomization({"x": (0.2, 0.4)})})
    sampler: Any = kind.for_space(SPACE, LINE, options, TrainingInfo(num_envs=200))
    shown, rows = {}, []
    for _ in range(4):
        shown[sampler.version] = sampler.describe(sampler.shape)
        rows += play_at_once(sampler, below_06, updates=1, episodes=200)
    assert len(rows) == 4
    assert len(shown) > 1
    for row in rows:
        assert row == row | shown[row["version"]]


def test_it_does_not_matter_how_many_finished_between_two_updates() -> None:
    rows = []
    for chunk in (1, 8, 60):
        sampler = adr(6, cohort=12)
        player = Player(sampler, 6, below_06, twice_as_long_where_high)
        player.train(120 // chunk, chunk)
        rows.append(player.rows)
    assert len(rows[0]) > 2
    assert rows[0][:3] == rows[1][:3] == rows[2][:3]


def test_an_episode_that_straddles_an_update_is_no_evidence_for_the_version_after_it() -> None:
    sampler = adr(1, SQUARE, cohort=1, bound_episodes=1, start="nominal", bound_probability=0.99, bound_step=0.1)
    player = Player(sampler, 1, lambda params: 1.0)
    old = player.steps(30)
    update = next(i for i, _ in enumerate(old) if sampler.update(old[i : i + 1]) and sampler.version == 1)
    assert sampler.update(old[update + 1 : update + 11]) == []  # drawn by version 0
    assert len(sampler.update(player.steps(1))) == 1


def test_a_checkpoint_that_cuts_an_episode_off_gives_its_place_to_the_next() -> None:
    sampler = adr(2, cohort=4)
    player = Player(sampler, 2, below_06)
    first = player.steps(1)
    player.index += 1  # both lose an episode
    restored = adr(2, cohort=4)
    sampler.update(first)
    restored.load_state(json.loads(json.dumps(sampler.state())))
    rest = player.steps(1)
    (row,) = restored.update(rest)
    assert row["return_mean"] == np.mean([record.episode_return for record in first + rest])


def test_episodes_under_values_set_by_hand_are_no_evidence() -> None:
    sampler = adr(10, cohort=10)
    records = Player(sampler, 10, below_06).steps(STALLED)
    pinned = [record._replace(params={"x": 0.25}) for record in records]
    assert sampler.update(pinned) == []
    assert len(sampler.update(records[:10])) == 1


def test_one_sub_environment_without_evidence_holds_up_the_others() -> None:
    sampler = adr(3, cohort=3)
    records = Player(sampler, 3, below_06).steps(STALLED)
    mixed = [r._replace(params={"x": 0.25}) if r.env_index == 1 else r for r in records]
    assert sampler.update(mixed) == []


def test_evidence_from_another_number_of_sub_environments_is_dropped_but_not_what_was_learned() -> None:
    # four have played one of two episodes each; in a cohort of six, two sub-environments play three each
    sampler, fewer = adr(4, cohort=8, bound_episodes=2), adr(2, cohort=6)
    player = Player(sampler, 4, below_06)
    player.train(updates=3, steps=2)
    assert sampler.version > 0
    assert sampler.update(player.steps(1)) == []
    fewer.load_state(json.loads(json.dumps(sampler.state())))
    np.testing.assert_array_equal(fewer.shape, sampler.shape)
    (row,) = fewer.update(Player(fewer, 2, below_06).steps(3))
    assert row["episodes"] == 6


def test_filling_buffers_is_no_stall() -> None:
    # of 5 episodes a cohort, 5 x 0.5 / 2 are at each of the two ends on average; buffers of 10**6 are never full
    rows = play_at_once(adr(5, cohort=5), below_06, updates=2 * STALLED, episodes=5)
    assert {row["did"] for row in rows if float(row["success_rate"]) > 0.0} >= {"collects"}


def test_a_threshold_that_is_never_reached_causes_warnings() -> None:
    sampler = adr(5, cohort=5, success=2.0, start="nominal")
    play_at_once(sampler, below_06, updates=STALLED - 1, episodes=5)
    with pytest.warns(RandomizationWarning, match=r"not changed for 20 x 5 episodes.*0% succeeded \(a return of 2"):
        sampler.update(Player(sampler, 5, below_06).steps(1))


def test_nothing_is_said_when_nothing_is_left_to_learn() -> None:
    play_at_once(adr(5, cohort=5), lambda params: 1.0, updates=STALLED + 1, episodes=5)
