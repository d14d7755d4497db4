from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import NotFiniteError
from gym_dr.policies.frozen import Draws, play_batch
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.training.api import seed_for

EVALUATION_SEED = seed_for(0, stream=1)
ENV_ID = "gym_dr/LunarLanderDR-v3"


def fall(observations: Any) -> Any:
    return np.zeros(len(observations), dtype=np.int64)


def make(num_envs: int = 3, **kwargs: Any) -> Any:
    return gym.make_vec(ENV_ID, num_envs, vectorization_mode="sync", **kwargs)


def evaluate(policy: Any, envs: Any, episodes: int, seed: int = EVALUATION_SEED) -> list[EpisodeRecord]:
    """Batch after batch."""
    records: list[EpisodeRecord] = []
    while len(records) < episodes:
        records += play_batch(policy, envs, Draws(episodes=episodes), seed=seed, first=len(records))
    return records


def test_episodes_are_shared_out_equally() -> None:
    records = evaluate(fall, make(), 8)
    assert [sum(r.env_index == i for r in records) for i in range(3)] == [3, 3, 2]


@pytest.mark.filterwarnings("ignore:.*diverged")
def test_a_return_of_a_simulation_that_diverged_is_no_result() -> None:
    envs = gym.make_vec("gym_dr/HalfCheetahDR-v5", 2, randomization="none")

    def push(observations: Any) -> Any:
        return np.full((2, 6), 0.9)

    draws = Draws(episodes=2, values={"actuator_gear": np.array([1.0, 1000.0])})  # of which the second is unstable
    with pytest.raises(NotFiniteError, match="actuator_gear 1000"):
        play_batch(push, envs, draws, seed=3)


def test_short_episodes_get_no_extra_weight() -> None:
    # sub-environment 0 falls fast, the others slowly; taking the first 6 to finish would take more of the fast one
    class Fixed(gym.Wrapper[Any, Any, Any, Any]):
        gravity = -2.0

        def reset(self, **kwargs: Any) -> Any:
            return self.env.reset(options={"params": {"gravity": self.gravity}}, seed=kwargs.get("seed"))

    class Fast(Fixed):
        gravity = -12.0

    envs = gym.vector.SyncVectorEnv([lambda: Fast(gym.make(ENV_ID)), *[lambda: Fixed(gym.make(ENV_ID))] * 2])
    records = evaluate(fall, envs, 6)
    assert [r.params["gravity"] for r in records] == [-12.0, -2.0, -2.0, -12.0, -2.0, -2.0]


def test_every_policy_meets_the_same_episodes() -> None:
    def hover(observations: Any) -> Any:
        return np.full(len(observations), 2)

    def play(policy: Any) -> tuple[list[Any], list[float]]:
        """What identifies the episodes, first observations included, and the returns."""
        seen: list[Any] = []

        class Spy(gym.vector.VectorWrapper):
            def reset(self, **kwargs: Any) -> Any:
                observations, info = self.env.reset(**kwargs)
                seen.append(observations.tobytes())
                return observations, info

        records = evaluate(policy, Spy(gym.make_vec(ENV_ID, 3, vectorization_mode="sync")), 7)
        return [*seen, *((r.seed, r.draw_index, r.params) for r in records)], [r.episode_return for r in records]

    one, two = play(fall), play(hover)
    assert one[0] == two[0]
    assert one[1] != two[1]


def test_evaluation_seeds_are_none_of_training() -> None:
    assert seed_for(0, stream=1) == EVALUATION_SEED
    assert EVALUATION_SEED > 2**61 > seed_for(12345, stream=0)


@pytest.mark.parametrize("reward", [math.nan, -math.inf])
def test_a_return_that_is_not_finite_is_refused_with_its_seed_and_values(reward: float) -> None:
    class Broken(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            observation, _, *rest = self.env.step(action)
            return observation, reward, *rest

    envs = gym.vector.SyncVectorEnv([lambda: gym.make(ENV_ID), lambda: Broken(gym.make(ENV_ID))])
    with pytest.raises(NotFiniteError, match=rf"returned {reward} \(seed 8, .*gravity -"):
        play_batch(fall, envs, Draws(episodes=2), seed=7)
