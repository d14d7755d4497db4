"""Policies get images, dictionaries and tuples as their environment returns them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, LogError
from tests.policies import opened
from tests.wrappers.observed import SPACES, WIDE, id_of, registered


@pytest.fixture(autouse=True)
def _ids() -> Iterator[None]:
    with registered():
        yield


@pytest.mark.parametrize("kind", SPACES)
def test_a_function_gets_what_the_environment_returns(kind: str, tmp_path: Path) -> None:
    given: list[Any] = []

    def stay(observations: Any) -> Any:
        given.append(observations)
        return np.zeros((2, 1))

    opened.evaluate(stay, env=id_of(kind), randomization=WIDE, episodes=2, output=tmp_path / "out")
    batch = gym.vector.utils.batch_space(SPACES[kind], 2)
    assert given[0] in batch
    assert given[-1] in batch


@pytest.mark.parametrize(("kind", "part"), [("dict", "context"), ("tuple", -1)])
def test_a_function_may_observe_the_draw_as_one_more_part(kind: str, part: Any, tmp_path: Path) -> None:
    shown: list[Any] = []

    def look(observations: Any) -> Any:
        shown.append(observations[part])
        return shown[-1]

    policy = gym_dr.open_policy(look, env=id_of(kind), randomization=WIDE, context="observation")
    shown.clear()  # of draws, with which it was tried
    gym_dr.evaluate(policy, [gym_dr.grid(gain=(0.5, 2.0, 2))], episodes=1, output=tmp_path / "out", progress=False)
    assert set(np.concatenate(shown, axis=None).tolist()) >= {-1.0, 1.0}  # of the grid


@pytest.mark.parametrize("kind", [kind for kind in SPACES if kind != "vector"])
def test_what_takes_flat_observations_alone_refuses_others(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="FlattenObservation"):
        gym_dr.train("ppo", env=id_of(kind), randomize=WIDE, run_dir=tmp_path / "run", progress=False)
    with pytest.raises(LogError, match="FlattenObservation"):
        gym_dr.record("random", env=id_of(kind), episodes=1, output=tmp_path / "log", format="npz", progress=False)
    assert not list(tmp_path.iterdir())
