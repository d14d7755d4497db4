"""Native environments: limits, statistics, threads, copies, and arguments of their own."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from gym_dr.errors import ConfigError, EnvStateError, GymDrError, InvalidActionError
from gym_dr.testing.playing import Mode, actions_of, assert_same
from tests.registered import forgotten_afterwards

# one of each kind of backend
NATIVE = [
    f"gym_dr/{name}"
    for name in ("LunarLanderDR-v3", "BipedalWalkerDR-v3", "MountainCarDR-v0", "HopperDR-v5", "AntDR-v5")
] + ["gym_dr/InvertedPendulumDR-v5"]


def native(env_id: str, num_envs: int = 3, **kwargs: Any) -> Any:
    return gym.make_vec(env_id, num_envs, vectorization_mode="vector_entry_point", **kwargs)


# ---- limits and statistics -------------------------------------------------------------------------------------------


@pytest.fixture
def short() -> Iterator[str]:
    """An id whose episodes have three steps."""
    spec: EnvSpec = gym.spec("gym_dr/MountainCarDR-v0")
    with forgotten_afterwards():
        gym.register(
            id="tests/Short-v0",
            entry_point=spec.entry_point,
            vector_entry_point=spec.vector_entry_point,
            kwargs=spec.kwargs,
            max_episode_steps=3,
        )
        yield "tests/Short-v0"


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_no_limit_is_the_limit_of_the_id_as_in_gymnasium(short: str, mode: str) -> None:
    for kwargs, last in (({}, 3), ({"max_episode_steps": None}, 3), ({"max_episode_steps": 2}, 2)):
        with Mode(env_id=short, name=mode).opened(**kwargs) as envs:
            envs.reset(seed=1)
            assert [bool(envs.step(actions_of(envs))[3].all()) for _ in range(last)] == [*[False] * (last - 1), True]


def test_gymnasiums_statistics_without_autoreset_count_each_sub_environments_own_episodes() -> None:
    envs = RecordEpisodeStatistics(native("gym_dr/CartPoleDR-v1", 4, autoreset_mode="Disabled"))
    envs.reset(seed=1)
    lengths, returns = np.zeros(4, int), np.zeros(4)
    for t in range(60):
        _, rewards, terminations, _, info = envs.step(actions_of(envs, t))
        lengths, returns = lengths + 1, returns + rewards
        if terminations.any():
            assert info["episode"]["l"][terminations].tolist() == lengths[terminations].tolist()
            assert info["episode"]["r"][terminations].tolist() == returns[terminations].tolist()
            envs.reset(options={"reset_mask": terminations})
            lengths[terminations], returns[terminations] = 0, 0.0
    assert envs.episode_count > 4


# ---- threads and copies ----------------------------------------------------------------------------------------------


class Meanwhile:
    """Actions; while they are read, another thread makes calls."""

    def __init__(self, actions: Any, calls: Sequence[Callable[[], Any]]) -> None:
        self.actions, self.calls = actions, calls
        self.raised: list[type[Exception] | None] = []

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        thread = threading.Thread(target=self.make_calls)
        thread.start()
        thread.join()
        return np.asarray(self.actions)

    def make_calls(self) -> None:
        for call in self.calls:
            try:
                call()
                self.raised.append(None)
            except Exception as error:
                self.raised.append(type(error))


@pytest.mark.parametrize("env_id", NATIVE)
def test_calls_while_another_thread_is_inside_are_refused_and_change_nothing(env_id: str) -> None:
    envs, twin = native(env_id), native(env_id)
    assert_same(envs.reset(seed=1), twin.reset(seed=1))
    actions, state = actions_of(twin), envs.get_state()
    calls: list[Callable[[], Any]] = [lambda: envs.step(actions), envs.reset, envs.render, envs.get_state, envs.close]
    calls += [lambda: envs.push(np.ones((1, envs.push_size)), np.array([0])), lambda: envs.set_state(state)]
    calls += [lambda: envs.rollout(None, None, None, 0, 1), envs.replay]
    meanwhile = Meanwhile(actions, calls)
    assert_same(envs.step(meanwhile), twin.step(actions))
    assert meanwhile.raised == [EnvStateError] * len(calls)
    assert_same(envs.step(actions), twin.step(actions))
    envs.close(), twin.close()


def test_another_thread_may_go_on_where_one_has_ended_or_was_refused() -> None:
    envs = native("gym_dr/CartPoleDR-v1")
    envs.reset(seed=1)
    with pytest.raises(GymDrError):
        envs.step(None)
    meanwhile = Meanwhile(None, [lambda: envs.step(actions_of(envs)), envs.close])
    meanwhile.make_calls()
    assert meanwhile.raised == [None, None]


@pytest.mark.parametrize("env_id", ["gym_dr/CartPoleDR-v1", "gym_dr/InvertedPendulumDR-v5"])
def test_what_follows_an_interrupted_step_and_a_reset_is_as_ever(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = native(env_id, 12, max_episode_steps=2)

    def episodes() -> list[Any]:
        return [envs.reset(seed=1), *(envs.step(actions_of(envs, k)) for k in range(5))]

    expected, play = episodes(), envs.unwrapped._episodes.play
    begin = play._begin

    def interrupted(due: Any) -> None:
        begin(due)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(play, "_begin", interrupted)
        with pytest.raises(KeyboardInterrupt):  # in a step that begins episodes
            envs.step(actions_of(envs))
    assert_same(episodes(), expected)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_and_pickles_are_refused_for_get_state(copied: Callable[[Any], Any]) -> None:
    envs = native("gym_dr/LunarLanderDR-v3")
    with pytest.raises(EnvStateError, match="get_state"):
        copied(envs)


# ---- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [10**10, 10**12])
@pytest.mark.parametrize("env_id", NATIVE)
def test_more_environments_than_memory_holds_are_refused(env_id: str, num_envs: int) -> None:
    with pytest.raises(ConfigError, match="num_envs"):
        native(env_id, num_envs)


@pytest.mark.parametrize("indices", [[3], [-1], [1.7], [True], 5, "all"])
def test_pictures_of_nobody_are_refused(indices: Any) -> None:
    envs = native("gym_dr/LunarLanderDR-v3", render_mode="rgb_array")
    envs.reset(seed=1)
    with pytest.raises(InvalidActionError, match="indices"):
        envs.render(indices=indices)
