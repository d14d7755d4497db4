"""Single, sync, async and native environments: the same seeds give the same draws and the same episodes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import RandomizationError

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


@pytest.mark.parametrize("mode", ["sync", "async", "native"])
def test_nominal_vector_environments_equal_gymnasiums(mode: str) -> None:
    pytest.importorskip("Box2D")
    ours = make(mode, randomization="none")
    theirs = gym.make_vec("LunarLander-v3", NUM_ENVS, vectorization_mode="sync")
    assert (ours.reset(seed=2)[0] == theirs.reset(seed=2)[0]).all()
    for t in range(200):
        actions = (np.arange(NUM_ENVS) + t // 5) % 4
        for left, right in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            assert (left == right).all()
    ours.close()
    theirs.close()


def test_an_impossible_value_for_one_environment_reaches_the_caller_from_sync() -> None:
    envs = make("sync", 2)
    with pytest.raises(RandomizationError, match="VectorParams"):
        envs.reset(options={"params": {"gravity": np.array([-9.0, -8.0])}})
