"""Arguments of native environments, checked before anything changes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import InvalidActionError, RandomizationError

MASKED: Any = np.ma.array([True, False, True], mask=[True, False, False])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def envs() -> Any:
    return gym.make_vec("gym_dr/PendulumDR-v1", num_envs=3)


@pytest.mark.parametrize("chosen", [[-1], [3], [7], [1.7], [True], [[0]], [0, 0], 0, "a", [None], [True, False, True]])
def test_a_push_of_anything_but_sub_environments_each_once_is_refused_and_pushes_none(envs: Any, chosen: Any) -> None:
    envs.reset(seed=1)
    expected = envs.step(np.zeros((3, 1)))[0]
    envs.reset(seed=1)
    with pytest.raises(InvalidActionError, match="indices"):
        envs.push(np.ones((np.size(chosen), envs.push_size)), chosen)
    np.testing.assert_array_equal(envs.step(np.zeros((3, 1)))[0], expected)


@pytest.mark.parametrize("chosen", [[], [2], np.array([2, 0], np.uint8)])
def test_a_push_changes_the_chosen_sub_environments(envs: Any, chosen: Any) -> None:
    envs.reset(seed=1)
    envs.push(np.ones((len(chosen), envs.push_size)), chosen)
    after = envs.step(np.zeros((3, 1)))[0]
    envs.reset(seed=1)
    moved = (envs.step(np.zeros((3, 1)))[0] != after).any(axis=1)
    assert np.flatnonzero(moved).tolist() == sorted(chosen)


def test_a_masked_mask_is_refused(envs: Any) -> None:
    with pytest.raises(RandomizationError, match="mask"):
        envs.reset(options={"reset_mask": MASKED})
