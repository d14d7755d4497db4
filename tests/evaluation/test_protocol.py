from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import ConfigError
from gym_dr.evaluation.protocol import EVALUATION_SEED, evaluate
from gym_dr.training.api import seed_for

ENV_ID = "gym_dr/LunarLanderDR-v3"


def fall(observations: Any) -> Any:
    return np.zeros(len(observations), dtype=np.int64)


def make(num_envs: int = 3, **kwargs: Any) -> Any:
    return gym.make_vec(ENV_ID, num_envs, vectorization_mode="sync", **kwargs)


def test_episodes_are_shared_out_equally() -> None:
    records = evaluate(fall, make(), 8)
    assert [sum(r.env_index == i for r in records) for i in range(3)] == [3, 3, 2]


def test_short_episodes_get_no_extra_weight() -> None:
    # sub-environment 0 falls fast, the others slowly; taking the first 6 to finish would take more of the fast one
    class Fixed(gym.Wrapper[Any, Any, Any, Any]):
        def reset(self, **kwargs: Any) -> Any:
            gravity = -12.0 if kwargs.get("seed", -1) == EVALUATION_SEED or self.fast else -2.0
            self.fast = gravity == -12.0
            return self.env.reset(options={"params": {"gravity": gravity}}, seed=kwargs.get("seed"))

        fast = False

    records = evaluate(fall, gym.vector.SyncVectorEnv([lambda: Fixed(gym.make(ENV_ID))] * 3), 6)
    assert [r.params["gravity"] for r in records] == [-12.0, -12.0, -2.0, -2.0, -2.0, -2.0]
    assert max(r.length for r in records[:2]) < min(r.length for r in records[2:])


def test_every_policy_meets_the_same_episodes() -> None:
    def hover(observations: Any) -> Any:
        return np.full(len(observations), 2)

    one, two = evaluate(fall, make(), 6), evaluate(hover, make(), 6)
    assert [(r.seed, r.draw_index, r.params) for r in one] == [(r.seed, r.draw_index, r.params) for r in two]
    assert [r.episode_return for r in one] != [r.episode_return for r in two]


def test_evaluating_again_gives_the_same_result() -> None:
    assert evaluate(fall, make(), 5) == evaluate(fall, make(), 5)


def test_evaluation_seeds_are_none_of_training() -> None:
    assert seed_for(0, stream=1) == EVALUATION_SEED
    assert EVALUATION_SEED > 2**61 > seed_for(12345, stream=0)


def test_fewer_than_one_episode_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 episode, got 0"):
        evaluate(fall, make(), 0)
