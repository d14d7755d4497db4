from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import RandomizeAttributes, VectorParams
from gym_dr.errors import RandomizationError, UnknownNameError

ENV_ID = "gym_dr/LunarLanderDR-v3"


@pytest.fixture(params=["sync", "async"])
def envs(request: pytest.FixtureRequest) -> Any:
    made = VectorParams(gym.make_vec(ENV_ID, 3, vectorization_mode=request.param))
    yield made
    made.close()


def test_params_are_arrays_of_what_is_in_force(envs: Any) -> None:
    _, info = envs.reset(seed=5)
    assert list(envs.params) == list(envs.param_space)
    assert (envs.params["gravity"] == info["params"]["gravity"]).all()
    assert envs.params["gravity"].shape == (3,)
    assert envs.params["gravity"].dtype == np.float64
    assert envs.draw_index.tolist() == [0, 0, 0]


def test_set_params_takes_effect_at_the_next_reset(envs: Any) -> None:
    envs.reset(seed=5)
    before = envs.params["gravity"]
    envs.set_params({"gravity": [-1.0, -2.0, -3.0], "wind_power": 4.0})
    assert (envs.params["gravity"] == before).all()
    envs.reset()
    assert envs.params["gravity"].tolist() == [-1.0, -2.0, -3.0]
    assert envs.params["wind_power"].tolist() == [4.0] * 3


def test_set_params_keeps_what_was_set_before_and_none_hands_it_back(envs: Any) -> None:
    envs.set_params({"gravity": -1.0})
    envs.set_params({"wind_power": 2.0})
    envs.reset(seed=5)
    assert (envs.params["gravity"][0], envs.params["wind_power"][0]) == (-1.0, 2.0)
    envs.set_params(None)
    drawn = VectorParams(gym.make_vec(ENV_ID, 3, vectorization_mode="sync"))
    drawn.reset(seed=5)
    envs.reset(seed=5)
    assert (envs.params["gravity"] == drawn.params["gravity"]).all()


def test_set_params_with_a_mask_leaves_the_others_alone(envs: Any) -> None:
    envs.reset(seed=5)
    envs.set_params({"gravity": -1.0}, mask=np.array([False, True, False]))
    envs.reset(seed=5)
    gravity = envs.params["gravity"]
    assert gravity[1] == -1.0
    assert gravity[0] != -1.0
    assert gravity[2] != -1.0


def test_values_for_each_sub_environment_hold_for_one_episode(envs: Any) -> None:
    gravity = np.array([-4.0, -5.0, -6.0])
    _, info = envs.reset(seed=5, options={"params": {"gravity": gravity}})
    assert (info["params"]["gravity"] == gravity).all()
    _, info = envs.reset()
    assert (info["params"]["gravity"] != gravity).all()


def test_recorded_draws_of_all_sub_environments_are_replayed(envs: Any) -> None:
    envs.reset(seed=5)
    recorded = envs.params
    envs.reset()
    envs.reset(options={"params": recorded})
    assert all((envs.params[name] == values).all() for name, values in recorded.items())


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
        ({"gravity": float("nan")}, "got nan"),
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


def test_the_callers_options_are_left_alone() -> None:
    envs = VectorParams(
        gym.make_vec(ENV_ID, 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"})
    )
    envs.reset(seed=1)
    options = {"reset_mask": np.array([True, False])}
    envs.reset(options=options)
    assert list(options) == ["reset_mask"]
