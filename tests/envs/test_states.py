"""States of every native environment are exact over whole episodes, in contact with the ground and beside threads."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.envs.box2d.solver.layout import C_BODY, C_GROUND, C_POINTS, S_BOXES, S_CONTACTS, S_FRESH
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.testing.playing import assert_same

NUM_ENVS = 5
NATIVE = [env.id for env in ENVIRONMENTS.values() if env.vector_entry_point is not None]
ROBOTS = {env.id for env in ENVIRONMENTS.values() if ".mujoco." in env.entry_point} - {"gym_dr/CrazyflieHoverDR-v0"}


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
    # robots share an engine: Ant and Hopper are below, and Crazyflie stands for those of the zoo
    [pytest.param(env_id, 1, marks=pytest.mark.slow if env_id in ROBOTS else ()) for env_id in NATIVE]
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


LANDER, HARDCORE = "gym_dr/LunarLanderDR-v3", "gym_dr/BipedalWalkerHardcoreDR-v3"
STATUS, INTS = "physics/world.status", "physics/world.contact_ints"


@pytest.mark.parametrize("value", [32_000, -1])
@pytest.mark.parametrize(
    ("array", "place"),
    [(STATUS, S_CONTACTS), (STATUS, S_FRESH), (STATUS, S_BOXES), (INTS, C_BODY), (INTS, C_GROUND), (INTS, C_POINTS)],
)
def test_numbers_with_which_compiled_code_finds_its_memory_are_checked(array: str, place: int, value: int) -> None:
    for env_id in (LANDER, HARDCORE):
        refuse(env_id, lambda state: state[array][..., place].fill(value), "expected whole numbers from")


def refuse(env_id: str, spoil: Any, match: str) -> None:
    """Asserts that a spoiled state is refused, and that nothing changes."""
    envs, twin = (gym.make_vec(env_id, 2) for _ in range(2))
    envs.reset(seed=1), twin.reset(seed=1)
    state: dict[str, Any] = envs.get_state()  # type: ignore[attr-defined]
    play(envs, 1, 3), play(twin, 1, 3)
    spoil(state)
    with pytest.raises((EnvStateError, RandomizationError), match=match):
        envs.set_state(state)  # type: ignore[attr-defined]
    assert_same(envs.get_state(), twin.get_state())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("env_id", "spoil", "match"),
    [
        (LANDER, lambda state: state[STATUS][:, -2:].fill(-(10**6)), "wind.*expected whole"),  # places in a table
        # Box2D's loops would not leave nan
        (HARDCORE, lambda state: state["physics/world.rows"].fill(np.nan), "expected numbers, got nan"),
        (HARDCORE, lambda state: state["physics/world.boxes"].fill(np.nan), "expected numbers, got nan"),
        (HARDCORE, lambda state: state["physics/world.contact_floats"].fill(np.nan), "expected numbers, got nan"),
        # values beyond a parameter's bounds
        (
            HARDCORE,
            lambda state: state.update({"draws/pin/stair_steps": np.full(2, 300.0)}),
            "stair_steps.*from 1 to 9",
        ),
        (HARDCORE, lambda state: state.update({"draws/value/stair_steps": np.full(2, -np.inf)}), "stair_steps.*1 to 9"),
        ("gym_dr/CartPoleDR-v1", lambda state: state["seed"].fill("x"), "expected digits"),
    ],
)
def test_impossible_values_are_refused_and_change_nothing(env_id: str, spoil: Any, match: str) -> None:
    refuse(env_id, spoil, match)


def test_a_state_of_other_physics_or_another_mode_is_refused() -> None:
    for one, other in (
        ({"id": "gym_dr/HalfCheetahDR-v5"}, {"id": "gym_dr/Walker2dDR-v5"}),
        ({"id": "gym_dr/LunarLanderDR-v3"}, {"id": "gym_dr/LunarLanderContinuousDR-v3"}),
        ({"id": "gym_dr/HopperDR-v5"}, {"id": "gym_dr/HopperDR-v5", "frame_skip": 8}),
    ):
        left, right = (gym.make_vec(**given, num_envs=2, randomization="none") for given in (one, other))
        left.reset(seed=1), right.reset(seed=1)
        with pytest.raises(EnvStateError):
            right.set_state(left.get_state())  # type: ignore[attr-defined]
    ended, same = (
        gym.make_vec("gym_dr/CartPoleDR-v1", 2, max_episode_steps=2, **k) for k in ({}, {"autoreset_mode": "SameStep"})
    )
    ended.reset(seed=1), same.reset(seed=1)
    play(ended, 0, 2)
    with pytest.raises(EnvStateError, match="same physics, keywords and autoreset mode"):
        same.set_state(ended.get_state())  # type: ignore[attr-defined]


@pytest.mark.parametrize("env_id", ["gym_dr/HopperDR-v5", "gym_dr/CartPoleDR-v1", "gym_dr/InvertedPendulumDR-v5"])
def test_a_state_fits_an_environment_with_another_randomization(env_id: str) -> None:
    drawn, nominal = gym.make_vec(env_id, 3), gym.make_vec(env_id, 3, randomization="none")
    for one, other in ((drawn, nominal), (nominal, drawn)):
        one.reset(seed=1), other.reset(seed=2)
        play(one, 0, 4)
        state: dict[str, Any] = one.get_state()  # type: ignore[attr-defined]
        expected = [row[:4] for row in play(one, 1, 3)]
        other.set_state(state)  # type: ignore[attr-defined]
        assert_same([row[:4] for row in play(other, 1, 3)], expected)


def test_a_generator_that_was_set_by_hand_and_long_seeds_come_with_a_state() -> None:
    env: Any = gym.make("gym_dr/CartPoleDR-v1").unwrapped
    env.np_random = np.random.default_rng(3)
    env.reset()
    state = env.get_state()
    env.set_state(state)
    assert env.np_random_seed == -1
    envs: Any = gym.make_vec("gym_dr/CartPoleDR-v1", 2)
    envs.reset(seed=[10**90, 3])
    envs.set_state(envs.get_state())
    assert envs.np_random_seed == (10**90, 3)
