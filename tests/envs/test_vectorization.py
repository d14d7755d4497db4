"""Single, sync, async and native environments: the same seeds give the same draws and the same episodes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr.errors import RandomizationError
from gym_dr.randomization.draws import draw

ENV_ID = "gym_dr/LunarLanderDR-v3"
NUM_ENVS = 3


def make(mode: str, num_envs: int = NUM_ENVS, **kwargs: Any) -> Any:
    if mode == "native":  # takes as its own keywords what Gymnasium's classes take as vector_kwargs
        return gym.make_vec(ENV_ID, num_envs, **kwargs.pop("vector_kwargs", {}), **kwargs)
    return gym.make_vec(ENV_ID, num_envs, vectorization_mode=mode, **kwargs)


def trace(envs: Any, steps: int = 160) -> list[tuple[Any, ...]]:
    """Steps with actions that depend on time alone, far enough for several autoresets."""
    observations, info = envs.reset(seed=11)
    rows = [(observations.tobytes(), info["params"]["gravity"].tobytes())]
    for t in range(steps):
        actions = (np.arange(envs.num_envs) + t // 7) % 4
        observations, rewards, terminations, truncations, info = envs.step(actions)
        rows.append(
            (
                observations.tobytes(),
                rewards.tobytes(),
                terminations.tobytes(),
                truncations.tobytes(),
                info["params"]["gravity"].tobytes(),
                info["draw_index"].tobytes(),
            )
        )
    return rows


@pytest.mark.parametrize("mode", ["async", "native"])
def test_all_vector_environments_give_the_same_episodes_and_draws(mode: str) -> None:
    sync, other = make("sync"), make(mode)
    assert trace(sync) == trace(other)
    assert sync.get_attr("draw_index")[0] >= 1  # there were autoresets
    sync.close()
    other.close()


def test_sub_environment_i_is_a_single_environment_seeded_s_plus_i() -> None:
    envs = make("sync")
    vector_obs, vector_info = envs.reset(seed=40)
    for i in range(NUM_ENVS):
        env = gym.make(ENV_ID)
        observation, info = env.reset(seed=40 + i)
        assert (observation == vector_obs[i]).all()
        assert info["params"] == {
            name: values[i] for name, values in vector_info["params"].items() if not name.startswith("_")
        }
    envs.close()


def test_more_sub_environments_change_no_draw() -> None:
    few, many = make("sync", 2), make("sync", 5)
    gravity = many.reset(seed=3)[1]["params"]["gravity"]
    assert (few.reset(seed=3)[1]["params"]["gravity"] == gravity[:2]).all()


def test_another_parameter_changes_no_draw() -> None:
    one = gym.make(ENV_ID, randomization={"gravity": (-11, -9)})
    two = gym.make(ENV_ID, randomization={"gravity": (-11, -9), "wind_power": (0, 20)})
    for _ in range(3):
        assert one.reset(seed=5)[1]["params"]["gravity"] == two.reset(seed=5)[1]["params"]["gravity"]


def test_resetting_some_changes_no_draw_of_the_others() -> None:
    envs, untouched = make("sync", vector_kwargs={"autoreset_mode": "Disabled"}), make("sync")
    envs.reset(seed=8)
    untouched.reset(seed=8)
    _, info = envs.reset(options={"reset_mask": np.array([False, True, False])})
    second = untouched.reset()[1]["params"]["gravity"]
    third = untouched.reset()[1]["params"]["gravity"]
    assert info["params"]["gravity"][1] == second[1]
    _, info = envs.reset()
    assert info["params"]["gravity"].tolist() == [second[0], third[1], second[2]]


def test_any_draw_is_replayed_from_two_integers() -> None:
    env = gym.make(ENV_ID)
    env.reset(seed=7)
    for _ in range(4):
        _, info = env.reset()
    sub: Any = env.unwrapped
    again = draw(sub.randomization, sub.param_space, np.array([7], dtype=np.uint64), info["draw_index"])
    assert {name: info["params"][name] for name in again} == {name: values[0] for name, values in again.items()}


@pytest.mark.parametrize("mode", ["sync", "async", "native"])
def test_nominal_vector_environments_equal_gymnasiums(mode: str) -> None:
    ours = make(mode, randomization="none")
    theirs = gym.make_vec("LunarLander-v3", NUM_ENVS, vectorization_mode="sync")
    assert (ours.reset(seed=2)[0] == theirs.reset(seed=2)[0]).all()
    for t in range(200):
        actions = (np.arange(NUM_ENVS) + t // 5) % 4
        for left, right in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            assert (left == right).all()
    ours.close()
    theirs.close()


def _until_done(envs: Any) -> tuple[Any, ...]:
    for _ in range(300):
        result: tuple[Any, ...] = envs.step(np.zeros(envs.num_envs, dtype=np.int64))
        if (result[2] | result[3]).any():
            return result
    raise AssertionError("no episode ended in 300 steps of falling")


@pytest.mark.parametrize("mode", ["sync", "async", "native"])
def test_next_step_autoreset_row_by_row(mode: str) -> None:
    # the end of an episode | final observation | old draw     | reward -100
    # the step after it     | first observation | the next draw | reward 0, action ignored, not done
    envs = make(mode, 1)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    _, first = envs.reset(seed=1)
    _, reward, terminated, _, info = _until_done(envs)
    assert (reward[0], terminated[0]) == (-100.0, True)
    assert info["params"]["gravity"][0] == first["params"]["gravity"][0]
    assert info["draw_index"].tolist() == [0]
    _, reward, terminated, truncated, info = envs.step(np.array([2]))
    assert (reward[0], terminated[0], truncated[0]) == (0.0, False, False)
    assert info["draw_index"].tolist() == [1]
    assert info["params"]["gravity"][0] != first["params"]["gravity"][0]
    envs.close()


@pytest.mark.parametrize("mode", ["sync", "async", "native"])
def test_same_step_autoreset_row_by_row(mode: str) -> None:
    # the end of an episode | observation of the new one, old one in final_obs | new draw, old one in final_info
    envs = make(mode, 1, vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
    _, first = envs.reset(seed=1)
    observation, reward, terminated, _, info = _until_done(envs)
    assert (reward[0], terminated[0]) == (-100.0, True)
    assert info["final_info"]["params"]["gravity"][0] == first["params"]["gravity"][0]
    assert info["final_info"]["draw_index"].tolist() == [0]
    assert info["draw_index"].tolist() == [1]
    assert info["params"]["gravity"][0] != first["params"]["gravity"][0]
    assert observation[0, 1] > 1.3  # high above the ground again
    assert info["final_obs"][0][1] < 0.5
    envs.close()


@pytest.mark.parametrize("mode", ["sync", "async", "native"])
def test_disabled_autoreset_row_by_row(mode: str) -> None:
    # the end of an episode | nothing is reset until reset(options={"reset_mask": ...})
    envs = make(mode, 2, vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED})
    envs.reset(seed=1)
    _, _, terminated, truncated, info = _until_done(envs)
    done = terminated | truncated
    assert info["draw_index"].tolist() == [0, 0]
    _, info = envs.reset(options={"reset_mask": done})
    expected = done.astype(int).tolist()
    assert np.where(info["_draw_index"], info["draw_index"], 0).tolist() == expected
    in_force = envs.draw_index if mode == "native" else envs.get_attr("draw_index")
    assert list(in_force) == expected
    envs.close()


def test_an_impossible_value_for_one_environment_reaches_the_caller_from_sync() -> None:
    envs = make("sync", 2)
    with pytest.raises(RandomizationError, match="VectorParams"):
        envs.reset(options={"params": {"gravity": np.array([-9.0, -8.0])}})
