"""What a step reports for trainers, from the info of any vector environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from gym_dr.envs.played import CRITIC, Played
from tests.envs.reporting import Reporting

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP


def steps_of(envs: Any, count: int) -> list[Played]:
    envs.reset(seed=1)
    begun, rows = None, []
    for _ in range(count):
        rows.append(Played.of_step(*envs.step(envs.action_space.sample()), begun))
        begun = rows[-1].ended[-1] if envs.metadata["autoreset_mode"] == NEXT_STEP else None
    return rows


def terms_of(played: Played) -> dict[str, Any]:
    return {name: values[0] for name, values in played.signals.items() if name != CRITIC}


@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv])
def test_terms_of_a_step_are_those_of_its_reward_and_0_where_it_resets(make: Any) -> None:
    envs = make([lambda: Reporting(2), lambda: Reporting(3)])
    found = np.stack([[*terms_of(played).values()] for played in steps_of(envs, 4)], axis=1)
    envs.close()
    np.testing.assert_array_equal(found[0], [[1, 1], [2, 2], [0, 3], [1, 0]])  # reward_far
    np.testing.assert_array_equal(found[1], [[-0.5, -0.5], [-0.5, -0.5], [0, -0.5], [-0.5, 0]])  # reward_cost


def test_terms_of_a_last_step_are_kept_where_the_same_step_resets() -> None:
    envs = SyncVectorEnv([lambda: Reporting(2), lambda: Reporting(3)], autoreset_mode=SAME_STEP)
    found = [terms_of(played)["reward_far"].tolist() for played in steps_of(envs, 4)]
    assert found == [[1, 1], [2, 2], [1, 3], [2, 1]]


@pytest.mark.parametrize(
    ("mode", "expected"), [(NEXT_STEP, [[1, 1], [2, 2], [0, 3], [1, 0]]), (SAME_STEP, [[1, 1], [0, 2], [1, 0], [0, 1]])]
)
def test_the_critic_observes_what_the_observation_belongs_to(mode: AutoresetMode, expected: list[list[int]]) -> None:
    envs = SyncVectorEnv([lambda: Reporting(2), lambda: Reporting(3)], autoreset_mode=mode)
    rows = steps_of(envs, 4)
    for played, steps in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(played.signals["critic"], np.stack([steps, np.full(2, 7)], axis=-1)[None])
        np.testing.assert_array_equal(played.signals["critic"][0, :, 0], played.observations[:, 0])


@pytest.mark.parametrize("value", ["far", None, np.zeros(2), [1.0], {"x": 1.0}, True])
def test_what_is_no_number_of_each_environment_is_no_term(value: Any) -> None:
    envs = SyncVectorEnv([lambda: Reporting(2, reward_odd=value)] * 2)
    assert terms_of(steps_of(envs, 1)[0]).keys() == {"reward_far", "reward_cost"}


def test_gymnasiums_own_environments_report_the_terms_of_their_rewards() -> None:
    (played,) = steps_of(gym.make_vec("Hopper-v5", 2, vectorization_mode="sync"), 1)
    terms = terms_of(played)
    assert terms.keys() == {"reward_forward", "reward_ctrl", "reward_survive"}
    np.testing.assert_allclose(sum(terms.values()), played.rewards[0])
