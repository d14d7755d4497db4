"""Steps of many classic-control environments on threads."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.envs.equations.simulation import LEAST


def played(name: str, threads: int) -> list[Any]:
    """What each of some steps returns, with episodes that end in them."""
    envs = gym.make_vec(f"gym_dr/{name}", 3 * LEAST + 5, num_threads=threads, max_episode_steps=6)
    envs.action_space.seed(0)
    seen: list[Any] = [envs.reset(seed=1)[0]]
    for _ in range(14):
        *arrays, info = envs.step(envs.action_space.sample())
        seen += [*arrays, *info["params"].values(), info["draw_index"]]
    envs.close()
    return seen


@pytest.mark.parametrize("name", ["CartPoleDR-v1", "PendulumDR-v1"])
def test_steps_on_any_number_of_threads_are_the_same_to_the_bit(name: str) -> None:
    one = played(name, 1)
    for threads in (2, 3):
        for ours, theirs in zip(one, played(name, threads), strict=True):
            np.testing.assert_array_equal(ours, theirs)
