"""A vector environment and its wrappers are walked through from the outside to the inside."""

from __future__ import annotations

import gymnasium as gym
from gymnasium.wrappers.vector import NormalizeReward, RecordEpisodeStatistics

from gym_dr.envs.stack import stack_of


def test_wrappers_come_first_the_outermost_before_the_others_and_the_environment_last() -> None:
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    inner = RecordEpisodeStatistics(envs)
    outer = NormalizeReward(inner)
    assert list(stack_of(outer)) == [outer, inner, envs]
    assert list(stack_of(envs)) == [envs]
    outer.close()
