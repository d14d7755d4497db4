"""gym-hil's arm, on a MuJoCo that is older than the one that our own environments need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import RandomizeMujoco, Scale
from tests.integrations.replays import assert_replays
from tests.registered import forgotten_afterwards

pytest.importorskip("gym_hil")

pytestmark = pytest.mark.integration

PICK = "gym_hil/PandaPickCubeBase-v0"


class NoRenderer:
    """In place of MuJoCo's, which the environments make although nobody looks, and which needs a display."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def render(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("mujoco.Renderer", NoRenderer)
    with forgotten_afterwards():
        yield


def arm() -> Any:
    made = gym.make(PICK, disable_env_checker=True)
    return RandomizeMujoco(made, {"body_mass:block": Scale((0.5, 2.0)), "gravity.z": (-11, -9)})


def test_the_block_has_the_mass_of_each_draw() -> None:
    env = arm()
    for seed in (1, None):
        _, info = env.reset(seed=seed)
        env.step(np.zeros(env.action_space.shape, np.float32))
        assert env.unwrapped.model.body("block").mass[0] == info["params"]["body_mass:block"]
        assert env.unwrapped.model.opt.gravity[2] == info["params"]["gravity.z"]


def test_a_seed_gives_the_same_episode() -> None:
    assert_replays(arm)
