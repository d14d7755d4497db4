"""Functions and objects in place of an environment's id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, RandomizationError
from tests.envs.slide import make
from tests.registered import registered_anew

ID = "tests/Slide-v0"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with registered_anew("tests.envs.slide_ids", monkeypatch):
        yield


def push(observations: Any) -> Any:
    return np.clip(1.0 - observations[:, :1], -1.0, 1.0)


@pytest.mark.parametrize("env", [make, lambda: make(), make()], ids=["registered", "function", "object"])
def test_functions_and_objects_play_the_same_episodes_as_an_id(env: Any, tmp_path: Path) -> None:
    sets = [gym_dr.grid(mass=(0.5, 2.0, 3)), gym_dr.draws(slope=(0.1, 0.3))]
    options: dict[str, Any] = {"episodes": 3, "success": -15.0, "progress": False}
    found = gym_dr.evaluate(push, sets, env=env, output=tmp_path / "one", **options)
    expected = gym_dr.evaluate(push, sets, env=ID, output=tmp_path / "other", **options)
    assert found.episodes.equals(expected.episodes)
    assert [cells.name for cells in found.sets][:2] == ["nominal", "default"]


def test_an_evaluation_of_an_object_goes_on_with_it(tmp_path: Path) -> None:
    slide = make()
    for _ in range(2):
        found = gym_dr.evaluate(push, env=slide, episodes=2, output=tmp_path, progress=False)
    assert len(found.episodes) == 4


def test_what_a_function_makes_may_change_between_evaluations() -> None:
    policy = gym_dr.open_policy("random", env=ID)
    assert policy.digest == gym_dr.open_policy("random", env=ID).digest
    assert policy.digest != gym_dr.open_policy("random", env=make).digest


@pytest.mark.parametrize("env", [lambda: make(), make()], ids=["function", "object"])
def test_functions_and_objects_can_be_recorded(env: Any, tmp_path: Path) -> None:
    logs = [tmp_path / "one", tmp_path / "other"]
    for where, log in zip((env, ID), logs, strict=True):
        gym_dr.record("random", env=where, episodes=3, output=log, format="npz", progress=False)
    one, other = ([np.load(file) for file in sorted(log.iterdir())] for log in logs)
    assert len(one) == 3
    for mine, theirs in zip(one, other, strict=True):
        assert all(np.array_equal(mine[name], theirs[name]) for name in (*mine.files, *theirs.files))


@pytest.mark.parametrize("wrong", [gym.make_vec("CartPole-v1", 2), gym.make("CartPole-v1"), 3])
def test_what_cannot_be_played_is_refused_with_what_to_use(wrong: Any) -> None:
    for call in (
        gym_dr.evaluate,
        lambda *args, env: gym_dr.record(*args, env=env, episodes=1, output="x", format="npz"),
    ):
        with pytest.raises(RandomizationError, match=r"`env`: .*gym_dr\.register"):
            call(push, env=wrong)


def test_a_training_needs_an_id() -> None:
    with pytest.raises(ConfigError, match=r"env: .*gym_dr\.register"):
        gym_dr.train("a2c", env=make)
