"""States of every native environment are exact over whole episodes, in contact with the ground and beside threads."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import EnvStateError
from gym_dr.testing.playing import assert_same

NUM_ENVS = 5
NATIVE = [env.id for env in ENVIRONMENTS.values() if env.vector_entry_point is not None]


def play(envs: Any, seed: int, steps: int) -> list[Any]:
    """Random actions, held for some steps, which get further."""
    rng, space, rows = np.random.default_rng(seed), envs.action_space, []
    space.seed(seed)
    actions = space.sample()
    for _ in range(steps):
        actions = space.sample() if rng.random() < 0.2 else actions
        rows.append(envs.step(actions))
    return rows


@pytest.mark.filterwarnings("ignore:.*the simulation diverged")  # wide draws may do that, in both
@pytest.mark.parametrize(
    ("env_id", "threads"),
    [(env_id, 1) for env_id in NATIVE]
    + [(f"gym_dr/{name}", 2) for name in ("LunarLanderDR-v3", "AntDR-v5", "HopperDR-v5")],
)
def test_going_on_from_a_state_is_exact_over_whole_episodes(env_id: str, threads: int) -> None:
    kwargs: dict[str, Any] = {"randomization": "wide", "num_threads": threads}
    envs, fresh = (gym.make_vec(env_id, NUM_ENVS, **kwargs) for _ in range(2))
    envs.reset(seed=4)
    for k, steps in enumerate((3, 40, 60)):  # in the air, and where bodies touch
        play(envs, k, steps)
        state: dict[str, Any] = envs.get_state()  # type: ignore[attr-defined]
        expected = play(envs, 10, 50)
        for each in (fresh, envs):
            each.set_state(state)  # type: ignore[attr-defined]
            assert_same(play(each, 10, 50), expected)
    for each in (envs, fresh):
        each.close()


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/HopperDR-v5", "gym_dr/PendulumDR-v1"])
def test_one_state_branches_into_many_futures(env_id: str) -> None:
    envs = gym.make_vec(env_id, NUM_ENVS)
    envs.reset(seed=0)
    play(envs, 0, 20)
    state = {name: values[[3] * NUM_ENVS] for name, values in envs.get_state().items()}  # type: ignore[attr-defined]
    observations = envs.set_state(state)  # type: ignore[attr-defined]
    assert (observations == observations[0]).all()
    assert all((values == values[0]).all() for values in envs.params.values())  # type: ignore[attr-defined]
    ends = play(envs, 1, 10)[-1][0]
    assert len(np.unique(ends, axis=0)) == NUM_ENVS  # under different actions


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/HumanoidDR-v5", "gym_dr/CartPoleDR-v1"])
def test_a_state_goes_through_a_file(env_id: str, tmp_path: Any) -> None:
    envs = gym.make_vec(env_id, 2)
    envs.reset(seed=2**100)  # of more than 64 bits
    play(envs, 0, 5)
    np.savez(tmp_path / "state.npz", **envs.get_state())  # type: ignore[attr-defined]
    expected = play(envs, 1, 5)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        envs.set_state(dict(file))  # type: ignore[attr-defined]
    assert_same(play(envs, 1, 5), expected)
    assert envs.np_random_seed == (2**100, 2**100 + 1)


def test_values_set_by_hand_come_with_a_state() -> None:
    envs, fresh = (gym.make_vec("gym_dr/HopperDR-v5", 2) for _ in range(2))
    envs.set_params({"body_mass:torso": np.array([3.0, 5.0]), "wind.x": 1.0, "density": 2.0})  # type: ignore[attr-defined]
    envs.reset(seed=1)
    state: dict[str, Any] = envs.get_state()  # type: ignore[attr-defined]
    expected = play(envs, 0, 5)
    envs.set_params(None)  # type: ignore[attr-defined]
    for each in (envs, fresh):
        each.set_state(state)  # type: ignore[attr-defined]
        assert_same(play(each, 0, 5), expected)
        assert each.pinned["body_mass:torso"].tolist() == [3.0, 5.0]  # type: ignore[attr-defined]
        assert_same(each.reset()[1]["params"]["density"], np.full(2, 2.0))


@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("physics/world.contact_ints", 32_000),
        ("physics/world.contact_ints", -1),
        ("physics/world.status", 10**9),
        ("physics/world.status", -(10**9)),
    ],
)
def test_numbers_with_which_compiled_code_finds_its_memory_are_checked(array: str, value: int) -> None:
    for env_id in ("gym_dr/LunarLanderDR-v3", "gym_dr/BipedalWalkerHardcoreDR-v3"):
        envs, twin = (gym.make_vec(env_id, 2) for _ in range(2))
        envs.reset(seed=1), twin.reset(seed=1)
        state: dict[str, Any] = envs.get_state()  # type: ignore[attr-defined]
        state[array][...] = value
        with pytest.raises(EnvStateError, match="expected whole numbers from"):
            envs.set_state(state)  # type: ignore[attr-defined]
        assert_same(play(envs, 1, 3), play(twin, 1, 3))


def test_seeds_that_are_none_are_refused() -> None:
    envs = gym.make_vec("gym_dr/CartPoleDR-v1", 2)
    envs.reset(seed=1)
    state: dict[str, Any] = envs.get_state()  # type: ignore[attr-defined]
    state["seed"] = np.array(["one", "-2"], state["seed"].dtype)
    with pytest.raises(EnvStateError, match="expected digits"):
        envs.set_state(state)  # type: ignore[attr-defined]
