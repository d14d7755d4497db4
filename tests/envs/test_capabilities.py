from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.wrappers.vector import ClipReward, RecordEpisodeStatistics

from gym_dr import RecordEpisodes, ResampleParams
from gym_dr.envs.capabilities import supports
from gym_dr.wrappers.finite import RequireFinite


class Renamed(RecordEpisodes):
    """Inherits all."""


class Stepping(RecordEpisodes):
    """Does something in each step that rollouts would leave out."""

    def step(self, actions: Any) -> Any:
        return super().step(actions)


@pytest.fixture
def envs() -> Any:
    return gym.make_vec("gym_dr/InvertedPendulumDR-v5", 2)


def test_an_environment_and_our_wrappers_support_rollouts(envs: Any) -> None:
    assert supports(envs, "rollout")
    assert supports(RequireFinite(ResampleParams(envs, rollout_steps=4)), "rollout")


def test_a_subclass_of_a_wrapper_keeps_the_capability(envs: Any) -> None:
    assert supports(Renamed(envs, print), "rollout")


@pytest.mark.parametrize(
    "wrap", [lambda e: ClipReward(e, 0.0, 1.0), RecordEpisodeStatistics, lambda e: Stepping(e, print)]
)
def test_what_a_wrapper_does_in_a_step_is_not_left_out(envs: Any, wrap: Any) -> None:
    assert not supports(wrap(envs), "rollout")
    assert not supports(RequireFinite(wrap(envs)), "rollout")


def test_an_environment_without_it_does_not_have_it() -> None:
    assert not supports(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), "rollout")
    assert not supports(gym.make_vec("gym_dr/InvertedPendulumDR-v5", 2, autoreset_mode="SameStep"), "rollout")
