"""Classic control: a nominal step is Gymnasium's but for the last bits, and native equals sync with any draw."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

NAMES = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
KEYWORDS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"sutton_barto_reward": True},
    "MountainCar-v0": {"goal_velocity": 0.03},
    "MountainCarContinuous-v0": {"goal_velocity": 0.03},
    "Pendulum-v1": {"g": 9.81},
}
MODES = [mode for mode in AutoresetMode if mode != AutoresetMode.DISABLED]


def ours(name: str, num_envs: int, **kwargs: Any) -> Any:
    return gym.make_vec(f"gym_dr/{name.replace('-', 'DR-')}", num_envs, **kwargs)


def theirs(name: str, num_envs: int, **kwargs: Any) -> Any:
    return gym.make_vec(name, num_envs, vectorization_mode="sync", **kwargs)


def actions_for(envs: Any, steps: int) -> list[Any]:
    """Random actions in runs of a few steps, which get further; throttles and torques beyond the bounds too."""
    rng, space, shape = np.random.default_rng(0), envs.single_action_space, (steps // 5 + 1, envs.num_envs)
    if isinstance(space, gym.spaces.Discrete):
        chosen = rng.integers(0, space.n, shape)
    else:
        chosen = rng.uniform(1.5 * space.low, 1.5 * space.high, (*shape, 1)).astype(np.float32)
    return [chosen[t // 5] for t in range(steps)]


def assert_same_episodes(left: Any, right: Any, steps: int, within: float = 0.0) -> int:
    """Plays both and compares what they return; returns how many episodes ended."""
    np.testing.assert_allclose(left.reset(seed=5)[0], right.reset(seed=5)[0], atol=within, rtol=0)
    ends = 0
    for t, actions in enumerate(actions_for(left, steps)):
        one, other = left.step(actions), right.step(actions)
        for k, what in enumerate(("observation", "reward", "terminated", "truncated")):
            assert one[k].dtype == other[k].dtype
            np.testing.assert_allclose(one[k], other[k], atol=within, rtol=0, err_msg=f"{t}: {what}")
        assert ("final_obs" in one[4]) == ("final_obs" in other[4])
        ends += int((one[2] | one[3]).sum())
    return ends


@pytest.mark.parametrize(
    ("name", "mode"),  # when episodes begin is the same code for all
    [
        pytest.param(name, mode, marks=pytest.mark.slow if mode != MODES[0] and name != NAMES[0] else ())
        for name in NAMES
        for mode in MODES
    ],
)
def test_nominal_native_plays_gymnasiums_own_episodes(name: str, mode: AutoresetMode) -> None:
    # 35: a whole block of lanes and some
    left = theirs(name, 35, vector_kwargs={"autoreset_mode": mode}, max_episode_steps=60)
    right = ours(name, 35, randomization="none", autoreset_mode=mode, max_episode_steps=60)
    assert assert_same_episodes(left, right, 130, within=1e-5) >= 35


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_mean_what_they_mean_to_gymnasium(name: str) -> None:
    left = theirs(name, 8, **KEYWORDS[name])
    assert_same_episodes(left, ours(name, 8, randomization="none", **KEYWORDS[name]), 120, within=1e-5)


@pytest.mark.parametrize("randomization", ["wide", "extreme"])
@pytest.mark.parametrize("name", NAMES)
def test_native_equals_sync_with_any_draw(name: str, randomization: str) -> None:
    kwargs = {"randomization": randomization, "max_episode_steps": 40}
    left = ours(name, 3, vectorization_mode="sync", **kwargs)
    assert assert_same_episodes(left, ours(name, 3, **kwargs), 130) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_a_step_from_any_state_is_gymnasiums(name: str) -> None:
    # far from where episodes begin; three steps, so that the float32 state of the continuous car is met too
    left: Any = gym.make(name).unwrapped
    right: Any = gym.make(f"gym_dr/{name.replace('-', 'DR-')}", randomization="none").unwrapped
    rng, space = np.random.default_rng(1), left.action_space
    low, high = np.array([-2.0, -3.0, -3.0, -3.0]), np.array([2.0, 3.0, 3.0, 3.0])
    if name.startswith("Mountain"):
        low, high = np.array([-1.2, -0.07]), np.array([0.6, 0.07])
    for i in range(150):
        left.reset(seed=i), right.reset(seed=i)
        state = rng.uniform(low, high)[: 2 if name == "Pendulum-v1" else None]
        left.state, right.state = state.copy(), state.copy()
        for _ in range(3):
            action = space.sample()
            one, other = left.step(action), right.step(action)
            np.testing.assert_array_max_ulp(one[0], other[0], 1)
            assert one[1] == pytest.approx(other[1], rel=1e-12, abs=1e-12)
            assert one[2:4] == other[2:4]
            np.testing.assert_allclose(left.state, right.state[: len(left.state)], rtol=1e-12, atol=1e-12)
            if one[2]:
                break
            right.state[: len(left.state)] = left.state
