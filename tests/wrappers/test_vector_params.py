from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import DrawContext, RandomizeAttributes, RecordEpisodes, ResampleParams, VectorParams
from gym_dr.errors import RandomizationError, UnknownNameError

ENV_ID = "gym_dr/LunarLanderDR-v3"


@pytest.fixture(params=["sync", "async"])
def envs(request: pytest.FixtureRequest) -> Any:
    made = VectorParams(gym.make_vec(ENV_ID, 3, vectorization_mode=request.param))
    yield made
    made.close()


def test_exact_values_reach_only_the_sub_environments_that_are_reset() -> None:
    envs = VectorParams(
        gym.make_vec(ENV_ID, 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"})
    )
    envs.reset(seed=5)
    before = envs.params["gravity"]
    mask = np.array([True, False, False])
    envs.reset(options={"params": {"gravity": -1.0}, "reset_mask": mask})
    assert envs.params["gravity"].tolist() == [-1.0, before[1], before[2]]
    envs.reset()
    assert (envs.params["gravity"] != -1.0).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gravty": -1.0}, "Did you mean 'gravity'"),
        ({"gravity": -13.0}, "from -12 to 0"),
        ({"gravity": [-1.0, -2.0]}, r"shape \(3,\), got shape \(2,\)"),
        ({"gravity": "low"}, "expected numbers"),
        ({"enable_wind": 0.5}, "0 or 1"),
        ([("gravity", -1.0)], "Expected a mapping"),
    ],
)
def test_impossible_values_change_nothing(envs: Any, values: Any, message: str) -> None:
    envs.reset(seed=5)
    before = envs.params
    with pytest.raises((RandomizationError, UnknownNameError), match=message):
        envs.set_params(values)
    with pytest.raises((RandomizationError, UnknownNameError), match=message):
        envs.reset(seed=6, options={"params": values})
    assert all((envs.params[name] == array).all() for name, array in before.items())
    envs.reset(seed=5)
    assert all((envs.params[name] == array).all() for name, array in before.items())


@pytest.mark.parametrize("mask", [[True, False], [1, 0, 1], np.ones((3, 1), dtype=bool)])
def test_impossible_masks_are_refused(envs: Any, mask: Any) -> None:
    with pytest.raises(RandomizationError, match=r"mask of shape \(3,\) and dtype bool"):
        envs.set_params({"gravity": -1.0}, mask=mask)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_environments_without_parameters_are_refused(mode: str) -> None:
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode=mode)
    with pytest.raises(RandomizationError, match="wrap each sub-environment in RandomizeAttributes"):
        VectorParams(envs)
    envs.close()


@pytest.mark.parametrize("make", [gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv])
def test_environments_wrapped_in_randomize_attributes_have_parameters(make: Any) -> None:
    envs = VectorParams(make([lambda: RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.3, 0.9)})] * 2))
    envs.set_params({"length": [0.4, 0.5]})
    _, info = envs.reset(seed=1)
    assert info["params"]["length"].tolist() == [0.4, 0.5]
    envs.close()


def test_a_reset_that_gymnasium_refuses_leaves_no_values_behind(envs: Any) -> None:
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
