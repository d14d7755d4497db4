"""Meta-World, whose resets write positions of bodies and sites into the model, on the oldest MuJoCo that we take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import RandomizeMujoco, Scale
from tests.integrations.replays import assert_replays
from tests.registered import forgotten_afterwards

pytest.importorskip("metaworld")

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten_afterwards():
        yield


def hammer() -> Any:
    made = gym.make("Meta-World/MT1", env_name="hammer-v3", seed=1, disable_env_checker=True)
    return RandomizeMujoco(made, {"body_mass:hammer": Scale((0.5, 2.0)), "geom_friction": Scale((0.5, 2.0))})


def test_the_hammer_has_the_mass_of_each_draw() -> None:
    env = hammer()
    for seed in (1, None):
        _, info = env.reset(seed=seed)
        env.step(np.zeros(4, np.float32))
        assert env.unwrapped.model.body("hammer").mass[0] == info["params"]["body_mass:hammer"]


def test_a_seed_gives_the_same_episode() -> None:
    assert_replays(hammer)
