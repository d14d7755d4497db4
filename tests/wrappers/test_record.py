from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from packaging.version import Version

from gym_dr import DisturbVector, DrawContext, EpisodeRecord, RecordEpisodes
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER, PRESETS
from gym_dr.errors import ConfigError
from gym_dr.randomization.sampler import draw
from gym_dr.testing.playing import SEED, play
from tests.envs.reporting import Reporting

ENV_ID = "gym_dr/LunarLanderDR-v3"
MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)


@functools.cache
def record(
    mode: AutoresetMode, steps: int = 400, wrap: Any = lambda envs: envs, native: bool = False
) -> tuple[EpisodeRecord, ...]:
    records: list[EpisodeRecord] = []
    kwargs = {"autoreset_mode": mode}
    if not native:
        kwargs = {"vectorization_mode": "sync", "vector_kwargs": kwargs}
    play(RecordEpisodes(wrap(gym.make_vec(ENV_ID, 3, **kwargs)), records.append), steps)
    return tuple(records)


@pytest.mark.parametrize("mode", MODES)
def test_every_finished_episode_is_recorded_with_its_return_and_length(mode: AutoresetMode) -> None:
    statistics: list[Any] = []

    def keep(envs: Any) -> Any:
        statistics.append(RecordEpisodeStatistics(envs, buffer_length=1000))
        return statistics[0]

    records = record(mode, wrap=keep)
    assert len(records) >= 9
    # Gymnasium's wrapper misses masked resets, whose mask SyncVectorEnv eats, and before 1.4 first steps with SAME_STEP
    misses = [AutoresetMode.DISABLED, *[AutoresetMode.SAME_STEP] * (Version(gym.__version__) < Version("1.4"))]
    if mode in misses:
        assert all(record.length > 20 for record in records)
        return
    assert [r.episode_return for r in records] == pytest.approx(list(statistics[0].return_queue))
    assert [r.length for r in records] == list(statistics[0].length_queue)


@pytest.mark.parametrize("mode", MODES)
def test_each_record_names_the_draw_that_was_in_force(mode: AutoresetMode) -> None:
    for item in record(mode):
        assert item.seed == SEED + item.env_index
        values = draw(PRESETS["default"], LUNAR_LANDER, np.array([item.seed], dtype=np.uint64), item.draw_index)
        assert {name: item.params[name] for name in values} == {name: v[0] for name, v in values.items()}


def test_termination_and_truncation_are_told_apart() -> None:
    records: list[EpisodeRecord] = []
    envs = RecordEpisodes(gym.make_vec(ENV_ID, 2, vectorization_mode="sync", max_episode_steps=20), records.append)
    play(envs, 25)
    assert [(r.length, r.terminated) for r in records] == [(20, False), (20, False)]


def test_environments_without_draws_are_recorded_without_values() -> None:
    records: list[EpisodeRecord] = []
    envs = RecordEpisodes(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), records.append)
    envs.reset(seed=1)
    while not records:
        envs.step(np.ones(2, dtype=np.int64))
    assert (records[0].params, records[0].draw_index) == ({}, -1)
    assert records[0].episode_return == records[0].length


def test_episodes_beyond_a_quota_are_not_recorded_until_a_reset() -> None:
    records: list[EpisodeRecord] = []
    envs = RecordEpisodes(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), records.append)

    def play_some() -> set[int]:
        records.clear()
        for _ in range(60):
            envs.step(np.ones(2, dtype=np.int64))
        return {r.env_index for r in records}

    envs.reset(seed=1)
    envs.quota[0] = 0
    assert play_some() == {1}
    envs.reset()
    assert play_some() == {0, 1}


@pytest.mark.parametrize("mode", MODES)
def test_native_environments_are_recorded_as_sync_ones_are(mode: AutoresetMode) -> None:
    assert record(mode, native=True) == record(mode)


@pytest.mark.parametrize("mode", MODES)
def test_terms_of_the_reward_are_summed_over_the_steps_of_an_episode(mode: AutoresetMode) -> None:
    records: list[EpisodeRecord] = []
    envs = SyncVectorEnv([lambda: Reporting(2), lambda: Reporting(3)], autoreset_mode=mode)
    play(RecordEpisodes(envs, records.append), 9)
    assert len(records) > 4
    for r in records:
        length = r.env_index + 2
        assert r.reward_terms == {"reward_far": length * (length + 1) / 2, "reward_cost": -0.5 * length}
        assert sum(r.reward_terms.values()) == r.episode_return


def test_a_term_that_is_reported_now_and_then_is_0_in_other_steps() -> None:
    records: list[EpisodeRecord] = []
    envs = SyncVectorEnv([lambda: Reporting(2, at_end=True)])
    play(RecordEpisodes(envs, records.append), 6)
    assert [r.reward_terms["reward_end"] for r in records] == [1.0, 1.0]


@pytest.mark.parametrize("mode", MODES)
def test_terms_of_native_environments_are_those_of_sync_ones_and_sum_up_to_the_return(mode: AutoresetMode) -> None:
    found: list[list[EpisodeRecord]] = []
    for native in (True, False):
        kwargs: dict[str, Any] = {"autoreset_mode": mode}
        if not native:
            kwargs = {"vectorization_mode": "sync", "vector_kwargs": kwargs}
        found.append([])
        envs = gym.make_vec("gym_dr/HopperDR-v5", 3, max_episode_steps=5, **kwargs)
        play(RecordEpisodes(envs, found[-1].append), 12)
    assert len(found[0]) == len(found[1]) >= 6
    for one, other in zip(*found, strict=True):
        assert one.reward_terms.keys() == {"reward_forward", "reward_ctrl", "reward_survive"}
        assert one.reward_terms == pytest.approx(other.reward_terms, abs=1e-9)
        assert sum(one.reward_terms.values()) == pytest.approx(one.episode_return)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda envs: RecordEpisodes(envs, print),
        lambda envs: DisturbVector(envs, {"obs_noise": 0.1}),
        lambda envs: DrawContext(envs, "hidden"),
    ],
)
def test_wrappers_that_read_info_are_refused_around_one_that_makes_it_a_list(wrap: Any) -> None:
    envs = gym.make_vec(ENV_ID, 2)
    listed = DictInfoToList(envs)  # kept: collected, it closes what it wraps before Gymnasium 1.3
    with pytest.raises(ConfigError, match="DictInfoToList"):
        wrap(listed)
    _, infos = DictInfoToList(wrap(envs)).reset(seed=1)
    assert len(infos) == 2
