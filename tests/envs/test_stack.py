"""What a wrapper does in a step is not left out by a compiled rollout; tests/contracts has what passes it on."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import ClipReward, RecordEpisodeStatistics

from gym_dr import RecordEpisodes
from gym_dr.compiled.policy import TWO_HEADS, SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.envs.stack import supports
from gym_dr.errors import EnvStateError, InvalidActionError
from gym_dr.wrappers.finite import RequireFinite


class Stepping(RecordEpisodes):
    """Does something in each step that rollouts would leave out."""

    def step(self, actions: Any) -> Any:
        return super().step(actions)


@pytest.fixture
def envs() -> Any:
    return gym.make_vec("gym_dr/InvertedPendulumDR-v5", 2)


@pytest.mark.parametrize(
    "wrap", [lambda e: ClipReward(e, 0.0, 1.0), RecordEpisodeStatistics, lambda e: Stepping(e, print)]
)
def test_what_a_wrapper_does_in_a_step_is_not_left_out(envs: Any, wrap: Any) -> None:
    assert not supports(wrap(envs), "rollout")
    assert not supports(RequireFinite(wrap(envs)), "rollout")


def test_an_environment_without_it_does_not_have_it() -> None:
    assert not supports(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), "rollout")
    assert not supports(gym.make_vec("gym_dr/InvertedPendulumDR-v5", 2, autoreset_mode="SameStep"), "rollout")


def test_a_rollout_before_a_reset_or_of_noise_that_is_no_number_is_refused(envs: Any) -> None:
    low, high = np.full(1, -3.0, np.float32), np.full(1, 3.0, np.float32)
    policy = SmallPolicy.allocate(
        sizes=[4, 2], activation="tanh", kind=TWO_HEADS, low=low, high=high, floor=0.0, num_envs=2
    )
    noise, steps = np.zeros((3, 2, 1), np.float32), Steps.allocate(3, 2, inputs=4, actions=1)
    with pytest.raises(EnvStateError, match="reset"):
        envs.rollout(policy, noise, steps, 0, 3)
    steps.observations[0], _ = envs.reset(seed=0)
    with pytest.raises(InvalidActionError, match="finite"):
        envs.rollout(policy, np.full_like(noise, np.nan), steps, 0, 3)
    assert len(envs.rollout(policy, noise, steps, 0, 3).ended) == 3
