from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import DrawContext, RandomizeAttributes, RecordEpisodes, ResampleParams, VectorParams
from gym_dr.errors import RandomizationError

ENV_ID = "gym_dr/LunarLanderDR-v3"


def test_environments_without_parameters_are_refused() -> None:
    with pytest.raises(RandomizationError, match="wrap each sub-environment in RandomizeAttributes"):
        VectorParams(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"))


@pytest.mark.parametrize("make", [gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv])
def test_environments_wrapped_in_randomize_attributes_have_parameters(make: Any) -> None:
    envs = VectorParams(make([lambda: RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.3, 0.9)})] * 2))
    envs.set_params({"length": [0.4, 0.5]})
    _, info = envs.reset(seed=1)
    assert info["params"]["length"].tolist() == [0.4, 0.5]
    envs.close()


def test_a_reset_that_gymnasium_refuses_leaves_no_values_behind() -> None:
    envs = VectorParams(gym.make_vec(ENV_ID, 3, vectorization_mode="sync"))
    with pytest.raises(ValueError, match="Expected a seed for each"):
        envs.reset(seed=[1, 2], options={"params": {"gravity": -2.0}})
    _, info = envs.reset(seed=1)
    assert (info["params"]["gravity"] != -2.0).all()


def test_the_autoreset_mode_is_an_attribute_of_every_wrapper_too() -> None:
    for envs in (
        gym.make_vec(ENV_ID, 2, autoreset_mode="Disabled"),
        VectorParams(gym.make_vec(ENV_ID, 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"})),
    ):
        wrapped: Any = DrawContext(RecordEpisodes(ResampleParams(envs, rollout_steps=1), callback=print), "hidden")
        assert wrapped.autoreset_mode is wrapped.metadata["autoreset_mode"] is AutoresetMode.DISABLED
