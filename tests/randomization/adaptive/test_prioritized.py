"""PLR replays what its scores and its staleness say, and a replay is the draw itself."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from gym_dr import EpisodeRecord
from gym_dr.errors import ConfigError, RandomizationWarning
from gym_dr.randomization.adaptive.prioritized import (
    Prioritized,
    PrioritizedOptions,
    l1_value_loss,
    positive_value_loss,
    replay_weights,
)
from gym_dr.randomization.draws import draw
from tests.randomization.adaptive.synthetic import SPACE, SQUARE, play_at_once

KEYS = np.arange(3000, dtype=np.uint64), np.full(3000, 7)


def plr(**options: Any) -> Prioritized:
    return Prioritized(
        SPACE, SQUARE, PrioritizedOptions(**{"max_levels": 20, "min_levels": 10, "cohort": 1, **options})
    )


def episode(seed: int, score: float | None, **params: float) -> EpisodeRecord:
    drawn = draw(SQUARE, SPACE, np.array([seed], np.uint64), np.array([0]))
    values = {**{name: float(v[0]) for name, v in drawn.items()}, **params}
    return EpisodeRecord(
        env_index=0, seed=seed, draw_index=0, params=values, episode_return=0.0, length=1, terminated=True, score=score
    )


def brute_force_weights(scores: list[float], staleness: list[float], beta: float, rho: float) -> list[float]:
    ranks = []
    for i, score in enumerate(scores):
        before = [j for j, other in enumerate(scores) if other > score or (other == score and j < i)]
        ranks.append(1 + len(before))
    powers = [(1.0 / rank) ** (1.0 / beta) for rank in ranks]
    by_score = [power / sum(powers) for power in powers]
    if sum(staleness) == 0:
        return by_score
    return [(1 - rho) * s + rho * c / sum(staleness) for s, c in zip(by_score, staleness, strict=True)]


@pytest.mark.parametrize(("beta", "rho"), [(0.1, 0.1), (1.0, 0.0), (0.5, 1.0)])
def test_weights_are_those_of_a_brute_force_computation(beta: float, rho: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores = rng.integers(0, 6, 9).astype(float)  # with equal ones
        staleness = rng.integers(0, 50, 9).astype(float) * rng.integers(0, 2)
        weights = replay_weights(scores, staleness, temperature=beta, staleness_coef=rho)
        expected = brute_force_weights(scores.tolist(), staleness.tolist(), beta, rho)
        np.testing.assert_allclose(weights, expected, rtol=1e-12)
        assert weights.sum() == pytest.approx(1.0)


def test_weights_by_hand() -> None:
    # ranks 2, 1, 3, so 1/2, 1, 1/3 of 11/6 by score; staleness 0, 1, 3 of 4
    weights = replay_weights(np.array([5.0, 9.0, 1.0]), np.array([0.0, 1.0, 3.0]), temperature=1.0, staleness_coef=0.5)
    np.testing.assert_allclose(weights, [3 / 22, 6 / 22 + 1 / 8, 2 / 22 + 3 / 8])


def test_scores_are_mean_sizes_of_advantages() -> None:
    advantages = np.array([1.0, -3.0, 2.0])
    assert l1_value_loss(advantages).mean() == 2.0
    assert positive_value_loss(advantages).mean() == 1.0


def test_draws_are_fresh_until_there_are_enough_levels() -> None:
    sampler = plr()
    sampler.update([episode(seed, 1.0) for seed in range(9)])
    assert sampler.fresh(*KEYS).all()
    expected = draw(SQUARE, SPACE, *KEYS)
    assert all((values == expected[name]).all() for name, values in sampler.draw(*KEYS).items())


def test_replayed_draws_are_draws_at_the_levels_keys_as_often_as_their_weights_say() -> None:
    sampler = plr(temperature=1.0, staleness_coef=0.3)
    sampler.update([episode(seed, float(seed % 4)) for seed in range(12)])
    seeds, index = sampler.sources(*KEYS)
    replayed = ~sampler.fresh(*KEYS)
    assert replayed.mean() == pytest.approx(0.5, abs=0.04)
    assert (seeds[~replayed] == KEYS[0][~replayed]).all()
    assert (index[~replayed] == 7).all()
    expected = draw(SQUARE, SPACE, seeds, index)
    assert all((values == expected[name]).all() for name, values in sampler.draw(*KEYS).items())
    counts = np.bincount(seeds[replayed].astype(np.int64), minlength=12)[:12] / replayed.sum()
    # the standard deviation of a share p of 1500 is at most 0.013
    np.testing.assert_allclose(counts, sampler.weights(), atol=0.04)
    assert (index[replayed] == 0).all()


def test_an_episode_on_a_known_level_renews_its_score_and_its_staleness() -> None:
    sampler = plr(staleness_coef=1.0, min_levels=1)
    sampler.update([episode(seed, 1.0) for seed in range(3)])
    np.testing.assert_allclose(sampler.weights(), [2 / 3, 1 / 3, 0.0])  # 2, 1 and 0 episodes ago
    replay = dataclasses.replace(episode(0, 5.0), seed=99, draw_index=4)  # the values of level 0 at another key
    (row,) = sampler.update([replay])
    assert (row["levels"], row["replayed"], row["score_mean"]) == (3, 1.0, 7 / 3)
    np.testing.assert_allclose(sampler.weights(), [0.0, 2 / 3, 1 / 3])


def test_no_episode_counts_as_a_replay_before_there_are_enough_levels_even_if_a_draw_comes_again() -> None:
    sampler = plr(min_levels=3)
    known = [episode(seed, 1.0) for seed in range(2)]
    sampler.update(known)
    assert sampler.level_of(known[0].params) is None
    (row,) = sampler.update([known[0]])
    assert row["replayed"] == 0.0
    sampler.update([episode(2, 1.0)])
    assert sampler.level_of(known[0].params) == (0, 0)
    (row,) = sampler.update([known[0]])
    assert row["replayed"] == 1.0


def test_a_full_buffer_gives_up_the_level_that_is_least_likely_to_be_replayed_for_one_that_scores_more() -> None:
    sampler = plr(max_levels=3, min_levels=1, staleness_coef=0.0)
    sampler.update([episode(0, 5.0), episode(1, 2.0), episode(2, 7.0)])
    sampler.update([episode(3, 1.0)])
    assert sampler.levels == [(0, 0), (1, 0), (2, 0)]
    sampler.update([episode(4, 3.0)])
    assert sampler.levels == [(0, 0), (4, 0), (2, 0)]
    sampler.update([episode(1, 9.0)])  # forgotten, and so new
    assert sampler.levels == [(0, 0), (1, 0), (2, 0)]


def test_replays_count_before_fresh_draws_of_the_same_update_which_take_places_in_the_order_of_weights() -> None:
    sampler = plr(max_levels=3, min_levels=1, staleness_coef=0.0)
    sampler.update([episode(0, 5.0), episode(1, 2.0), episode(2, 7.0)])
    replay = dataclasses.replace(episode(1, 9.0), seed=99)  # its own key has other values
    # 5, 9, 7: 3.0 is too low for the place of level 0; 6.0 takes it, 8.0 takes that of level 2, and 7.5 finds 9 next
    sampler.update([episode(3, 3.0), replay, episode(4, 6.0), episode(5, 8.0), episode(6, 7.5)])
    assert sampler.levels == [(4, 0), (1, 0), (5, 0)]


def test_few_draws_that_are_never_enough_for_a_replay_cause_a_warning() -> None:
    sampler = plr(min_levels=2, max_levels=20)
    sampler.update([episode(0, 1.0)] * 19)
    with pytest.warns(RandomizationWarning, match="first 20 episodes had only 1 different draws"):
        sampler.update([episode(0, 1.0)])


def test_episodes_wait_until_there_are_enough_to_look_at_them_also_in_a_file() -> None:
    sampler, restored = plr(cohort=3, min_levels=1), plr(cohort=3, min_levels=1)
    assert sampler.update([episode(0, 1.0), episode(1, 2.0)]) == []
    restored.load_state(json.loads(json.dumps(sampler.state())))
    (row,) = restored.update([episode(2, 3.0)])
    assert (row["episodes"], row["levels"], restored.version) == (3, 3, 1)


def test_values_set_by_hand_are_no_level() -> None:
    sampler = plr()
    assert sampler.update([episode(1, 1.0, x=0.123)]) == []
    assert sampler.levels == []


@pytest.mark.parametrize("score", [None, float("nan")])
def test_episodes_without_scores_are_refused_before_anything_is_learned(score: float | None) -> None:
    sampler = plr()
    with pytest.raises(ConfigError, match="finite score with every episode"):
        sampler.update([episode(0, 1.0), episode(1, score)])
    assert sampler.levels == []


def test_the_levels_with_the_highest_scores_come_back() -> None:
    # the score is x: of 1000 fresh draws the ten best are above 0.97, and rank 1 to 3 have almost all of the weight
    sampler = plr(max_levels=200, staleness_coef=0.0)
    rows = play_at_once(sampler, lambda params: params["x"], updates=4, episodes=500)
    drawn = sampler.draw(*KEYS)["x"]
    assert (drawn[~sampler.fresh(*KEYS)] > 0.97).mean() > 0.99
    assert 1.0 < float(rows[-1]["effective_levels"]) < 2.0


def test_its_levels_go_through_a_file() -> None:
    sampler, restored = plr(), plr()
    play_at_once(sampler, lambda params: params["x"], updates=2, episodes=30)
    restored.load_state(json.loads(json.dumps(sampler.state())))
    assert (restored.weights() == sampler.weights()).all()
    for made in (sampler, restored):
        made.update([episode(7, 0.3), episode(8, 0.9)])
    assert restored.state() == sampler.state()


@pytest.mark.parametrize(
    "bad",
    [
        {"replay_probability": 1.0},
        {"temperature": 0.0},
        {"staleness_coef": 1.1},
        {"min_levels": 2000},
    ],
)
def test_impossible_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(bad))}: expected"):
        PrioritizedOptions(**bad)  # type: ignore[arg-type]
