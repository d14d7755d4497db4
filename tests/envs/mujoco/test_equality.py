from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import Add, Scale
from gym_dr.envs.mujoco.reference import quiet_compiler
from gym_dr.testing.playing import interface
from tests.envs.mujoco.names import NAMES, assert_same, assert_same_episodes, native, single, sync

# every keyword of Gymnasium's classes, at values that change what they do
KEYWORDS: dict[str, list[dict[str, Any]]] = {
    "InvertedPendulum": [{"reset_noise_scale": 0.05, "frame_skip": 3}],
    "InvertedDoublePendulum": [{"healthy_reward": 3.0, "reset_noise_scale": 0.02, "frame_skip": 4}],
    "Hopper": [
        {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.1, "healthy_reward": 0.5, "healthy_z_range": (1.0, 2.0)},
        {"terminate_when_unhealthy": False, "exclude_current_positions_from_observation": False},
        {"healthy_state_range": (-0.5, 0.5), "healthy_angle_range": (-0.1, 0.1), "reset_noise_scale": 0.01},
    ],
    "HalfCheetah": [
        {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.3, "reset_noise_scale": 0.2, "frame_skip": 3},
        {"exclude_current_positions_from_observation": False},
    ],
    "Walker2d": [
        {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.1, "healthy_reward": 0.5, "healthy_z_range": (1.0, 1.5)},
        {"terminate_when_unhealthy": False, "exclude_current_positions_from_observation": False},
        {"healthy_angle_range": (-0.1, 0.1), "reset_noise_scale": 0.05},
    ],
    "Ant": [
        {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.1, "contact_cost_weight": 0.01, "healthy_reward": 0.5},
        {"main_body": "front_left_leg", "healthy_z_range": (0.5, 0.8), "contact_force_range": (-0.5, 0.2)},
        {"include_cfrc_ext_in_observation": False, "exclude_current_positions_from_observation": False},
        {"terminate_when_unhealthy": False, "reset_noise_scale": 0.3},
    ],
    "Swimmer": [
        {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.1, "reset_noise_scale": 0.3},
        {"exclude_current_positions_from_observation": False},
    ],
    "Humanoid": [
        {"forward_reward_weight": 2.0, "ctrl_cost_weight": 0.5, "contact_cost_weight": 1e-4, "healthy_reward": 0.5},
        {"contact_cost_weight": 1.0, "contact_cost_range": (-np.inf, 0.1), "healthy_z_range": (1.3, 1.5)},
        {"include_cinert_in_observation": False, "include_cvel_in_observation": False},
        {"include_qfrc_actuator_in_observation": False, "include_cfrc_ext_in_observation": False},
        {"terminate_when_unhealthy": False, "exclude_current_positions_from_observation": False},
    ],
    "HumanoidStandup": [
        {"uph_cost_weight": 2.0, "ctrl_cost_weight": 0.5, "impact_cost_weight": 1e-4, "reset_noise_scale": 0.1},
        {"include_cinert_in_observation": False, "impact_cost_range": (-np.inf, 0.01)},
        {"exclude_current_positions_from_observation": False, "include_cvel_in_observation": False},
    ],
    "Reacher": [{"reward_dist_weight": 2.0, "reward_control_weight": 0.5}],
    "Pusher": [{"reward_near_weight": 1.0, "reward_dist_weight": 2.0, "reward_control_weight": 0.5}],
}


def gymnasiums(name: str, num_envs: int, **kwargs: Any) -> Any:
    with quiet_compiler():
        return gym.make_vec(f"{name}-v5", num_envs, vectorization_mode="sync", **kwargs)


NEXT, SAME = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
FEW = ("Hopper", "Humanoid")  # in the other mode, whose code all share


@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, NEXT) for name in NAMES]
    + [pytest.param(name, SAME, marks=[] if name in FEW else [pytest.mark.slow]) for name in NAMES],
)
def test_nominal_native_equals_gymnasiums_own(name: str, mode: AutoresetMode) -> None:
    theirs = gymnasiums(name, 3, vector_kwargs={"autoreset_mode": mode}, max_episode_steps=17)
    ours = native(name, 3, randomization="none", autoreset_mode=mode, max_episode_steps=17)
    assert assert_same_episodes(theirs, ours, 25, draws=False) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_randomized_native_equals_sync(name: str) -> None:
    assert assert_same_episodes(sync(name, max_episode_steps=17), native(name, max_episode_steps=17), 25) >= 3


MOVED = {
    "timestep": Scale((0.7, 1.3)),
    "geom_size:*foot*": Scale((0.5, 2.0)),
    "geom_rotation:*foot*": (-0.5, 0.5),
    "body_pos:*foot*": Add((-0.05, 0.05)),
    "pseudo_inertia:*foot*": (-0.2, 0.2),
}


@pytest.mark.parametrize("name", ["Hopper", "HumanoidStandup"])
def test_native_equals_sync_where_parts_move_and_time_steps_differ(name: str) -> None:
    kwargs: Any = {"randomization": MOVED, "max_episode_steps": 17}
    assert assert_same_episodes(sync(name, **kwargs), native(name, **kwargs), 25) >= 3


@pytest.mark.parametrize(("name", "keywords"), [(name, kw) for name in NAMES for kw in KEYWORDS[name]])
def test_every_keyword_of_gymnasiums_means_the_same(name: str, keywords: dict[str, Any]) -> None:
    theirs = gymnasiums(name, 2, max_episode_steps=9, **keywords)
    ours = native(name, 2, randomization="none", max_episode_steps=9, **keywords)
    assert ours.single_observation_space == theirs.single_observation_space
    assert_same_episodes(theirs, ours, 14, draws=False)


@pytest.mark.parametrize("name", ["Hopper", "Ant"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_of_actions_is_kept(name: str, dtype: Any) -> None:
    theirs, ours = gymnasiums(name, 3), native(name, 3, randomization="none")
    theirs.reset(seed=1)
    ours.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-2, 2, ours.action_space.shape).astype(dtype)
    assert_same(theirs.step(actions)[1], ours.step(actions)[1])


HUGE = [np.finfo(np.float32).max, np.float32(1e19), np.float64(1e308), np.float64(-1e155)]


@pytest.mark.parametrize("name", NAMES)
def test_huge_actions_give_what_they_give_in_gymnasiums_environments_but_no_warning(name: str) -> None:
    with quiet_compiler():
        theirs: Any = gym.make(f"{name}-v5").unwrapped  # without the checker, which remarks on infinite rewards
    one, many = interface(single(name, randomization="none")), native(name, 1, randomization="none")
    for huge in HUGE:
        for env in (theirs, one, many):
            env.reset(seed=1)
        action = np.full(theirs.action_space.shape, huge)
        for _ in range(3):
            with np.errstate(over="ignore"):
                expected = theirs.step(action)[:3]
            assert_same(expected, one.step(action)[:3], f"{huge}")
            for left, right in zip(expected, many.step(action[None])[:3], strict=True):
                np.testing.assert_allclose(right[0], left, rtol=1e-9, atol=1e-9, err_msg=f"{huge}")


@pytest.mark.parametrize("name", ["Hopper", "Ant"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_nothing(name: str, threads: int) -> None:
    one, many = native(name, 7, num_threads=1), native(name, 7, num_threads=threads)
    one.reset(seed=3)
    many.reset(seed=3)
    one.action_space.seed(0)
    for _ in range(30):
        actions = one.action_space.sample()
        left, right = one.step(actions), many.step(actions)
        assert left[0].tobytes() == right[0].tobytes()
        assert left[1].tobytes() == right[1].tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_nominal_single_environment_is_gymnasiums_bit_for_bit(name: str) -> None:
    with quiet_compiler():
        theirs = gym.make(f"{name}-v5")
    ours = single(name, randomization="none")
    theirs.action_space.seed(0)
    for seed in (4, None):
        assert ours.reset(seed=seed)[0].tobytes() == theirs.reset(seed=seed)[0].tobytes()
        for _ in range(12):
            action = theirs.action_space.sample()
            left, right = ours.step(action), theirs.step(action)
            assert left[0].tobytes() == right[0].tobytes()
            assert left[1:4] == right[1:4]
            if left[2] or left[3]:
                break


@pytest.mark.slow
@pytest.mark.parametrize("randomization", ["none", "wide"])
@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_steps_are_equal(name: str, randomization: str) -> None:
    if randomization == "none":
        theirs, draws = gymnasiums(name, 4, max_episode_steps=300), False
    else:
        theirs, draws = sync(name, 4, max_episode_steps=300, randomization=randomization), True
    ours = native(name, 4, randomization=randomization, max_episode_steps=300, num_threads=3)
    assert assert_same_episodes(theirs, ours, 1000, draws=draws) >= 12
