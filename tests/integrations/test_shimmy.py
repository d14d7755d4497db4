"""dm_control's suite through shimmy: the model is one of its physics, and observations are dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import RandomizeMujoco, Scale
from tests.integrations.replays import assert_replays
from tests.registered import forgotten_afterwards

shimmy = pytest.importorskip("shimmy")
pytest.importorskip("dm_control.suite")

pytestmark = pytest.mark.integration

WALKER, PENDULUM = "dm_control/walker-walk-v0", "dm_control/pendulum-swingup-v0"
MASSES = {"body_mass:*": Scale((0.5, 2.0)), "geom_friction:floor": Scale((0.5, 2.0))}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        gym.register_envs(shimmy)
        yield


def walker() -> Any:
    return RandomizeMujoco(gym.make(WALKER), MASSES)


def test_the_physics_have_the_masses_of_each_draw_and_observations_stay_dictionaries() -> None:
    env = walker()
    for seed in (1, None):
        observation, info = env.reset(seed=seed)
        assert observation.keys() == env.observation_space.keys() == {"orientations", "height", "velocity"}
        model = env.unwrapped.physics.model
        drawn = {name.partition(":")[2]: value for name, value in info["params"].items() if "mass" in name}
        np.testing.assert_array_equal(
            [model.body_mass[model.name2id(name, "body")] for name in drawn], [*drawn.values()]
        )


def test_a_heavier_pendulum_falls_in_the_same_time_but_a_damped_one_does_not() -> None:
    def after(**params: float) -> Any:
        env = RandomizeMujoco(gym.make(PENDULUM), {"body_mass:pole": Scale((0.5, 2)), "dof_damping:hinge": (0, 5)})
        env.reset(seed=3, options={"params": {name.replace("__", ":"): value for name, value in params.items()}})
        for _ in range(20):
            observation, *_ = env.step(np.zeros(1))
        return observation["orientation"]

    light, heavy, damped = after(dof_damping__hinge=0), after(dof_damping__hinge=0, body_mass__pole=2), after()
    np.testing.assert_allclose(light, heavy, atol=1e-6)
    assert abs(light - damped).max() > 1e-3


def test_a_seed_gives_the_same_episode() -> None:
    assert_replays(walker)
