"""The mirror image that an environment declares is found through wrappers, and extended to what they add."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from gym_dr import DrawContext, FrameStack
from gym_dr.envs.mirror import mirror_of
from gym_dr.errors import ConfigError
from tests.envs import sided


def mirrored(envs: Any, observations: Any) -> Any:
    found = mirror_of(envs)
    assert found is not None
    return observations[..., found.observation_places] * found.observation_signs


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_it_is_found_in_sub_environments(kind: Any) -> None:
    envs = kind([sided.make] * 2)
    np.testing.assert_array_equal(mirrored(envs, np.array([1.0, 2.0, 3.0, 4.0])), [-1, 3, 2, 4])
    envs.close()


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_environments_without_one_have_none(kind: Any) -> None:
    envs = kind([lambda: gym.make("CartPole-v1")] * 2)
    assert mirror_of(envs) is None
    envs.close()
    assert mirror_of(gym.make_vec("gym_dr/PendulumDR-v1", 2)) is None


def test_frames_change_alike_and_what_follows_them_stays() -> None:
    envs = FrameStack(SyncVectorEnv([sided.make] * 2), stack_observations=2, observe_reward=True)
    shown = DrawContext(envs, "observation", span=0.25)
    np.testing.assert_array_equal(mirrored(shown, np.arange(1, 11)), [-1, 3, 2, 4, -5, 7, 6, 8, 9, 10])


def test_its_own_image_is_the_observation() -> None:
    envs = FrameStack(SyncVectorEnv([sided.make] * 2), stack_observations=3)
    observations = np.random.default_rng(1).normal(size=(5, 12))
    np.testing.assert_array_equal(mirrored(envs, mirrored(envs, observations)), observations)


def test_a_wrapper_that_leaves_observations_out_is_refused() -> None:
    def cut() -> gym.Env[Any, Any]:
        return gym.wrappers.TransformObservation(sided.make(), lambda seen: seen[:2], gym.spaces.Box(-10.0, 10.0, (2,)))

    with pytest.raises(ConfigError, match="at least 4 numbers"):
        mirror_of(SyncVectorEnv([cut] * 2))
