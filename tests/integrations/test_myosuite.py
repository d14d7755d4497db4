"""MyoSuite's hand, whose resets choose another object each time and write its shape and mass into the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import RandomizeMujoco, Scale
from gym_dr.errors import RandomizationError
from tests.integrations.replays import assert_replays
from tests.registered import forgotten_afterwards

pytest.importorskip("myosuite")

pytestmark = pytest.mark.integration

REORIENT = "myoHandReorient8-v0"
SKELETON = {"body_mass:*mc_r": Scale((0.8, 1.2)), "dof_damping": Scale((0.8, 1.2))}


@pytest.fixture(autouse=True)
def _surroundings() -> Iterator[None]:
    with forgotten_afterwards(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        yield


def hand(randomization: Any = SKELETON, **kwargs: Any) -> Any:
    return RandomizeMujoco(gym.make(REORIENT), randomization, **kwargs)


def test_the_skeleton_has_the_masses_of_each_draw() -> None:
    env = hand()
    for seed in (1, None):
        _, info = env.reset(seed=seed)
        drawn = {name.partition(":")[2]: value for name, value in info["params"].items() if ":" in name}
        env.step(env.action_space.sample())
        model = env.unwrapped.model
        np.testing.assert_array_equal([model.body(name).mass[0] for name in drawn], [*drawn.values()])


def test_a_seed_gives_the_same_episode() -> None:
    assert_replays(hand)


@pytest.mark.parametrize("name", ["body_mass:Object", "body_mass"])
def test_a_draw_that_reset_overwrites_is_refused(name: str) -> None:
    env = hand({name: Scale((0.8, 1.2))})
    with pytest.raises(RandomizationError):
        _ = [env.reset(seed=seed) for seed in range(5)]  # some episodes have the object of the one before


def test_a_draw_for_what_reset_writes_may_follow_it() -> None:
    env = hand({"body_mass:Object": (0.1, 0.2)}, after_reset=True)
    for seed in (1, 2):
        _, info = env.reset(seed=seed)
        env.step(env.action_space.sample())
        assert env.unwrapped.model.body("Object").mass[0] == info["params"]["body_mass:Object"]
