"""PyFlyt's quadrotor, whose world Bullet builds in each reset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from gym_dr import Param, ParamSpace, RandomizeAttributes
from gym_dr.errors import RandomizationError
from tests.integrations.replays import assert_replays
from tests.registered import forgotten_afterwards

pytest.importorskip("PyFlyt.gym_envs")

pytestmark = pytest.mark.integration

HOVER = "PyFlyt/QuadX-Hover-v4"
SPACE = ParamSpace("quad", [Param(name="mass", nominal=0.027, low=0.01, high=0.1, unit="kg")])
MASSES = {"mass": (0.02, 0.04)}


def set_mass(env: Any, values: dict[str, float]) -> None:
    env.env.changeDynamics(env.env.drones[0].Id, -1, mass=values["mass"])


def read_mass(env: Any) -> dict[str, float]:
    return {"mass": env.env.getDynamicsInfo(env.env.drones[0].Id, -1)[0]}


def hover() -> Any:
    return gym.make(HOVER, disable_env_checker=True)  # which warns of its infos


def quadrotor() -> Any:
    return RandomizeAttributes(hover(), MASSES, SPACE, apply=set_mass, read=read_mass)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten_afterwards():
        yield


def test_bullet_has_the_mass_of_each_draw() -> None:
    env = quadrotor()
    drawn = []
    for seed in range(2):
        _, info = env.reset(seed=seed)
        env.step(env.action_space.sample())
        assert read_mass(env.unwrapped) == pytest.approx(info["params"])
        drawn.append(info["params"]["mass"])
    assert drawn[0] != drawn[1]


def test_a_seed_gives_the_same_episode() -> None:
    assert_replays(quadrotor)


def test_what_reset_builds_anew_is_refused_and_so_is_an_apply_without_effect() -> None:
    env = hover()
    env.reset()
    path = "env.drones[0].drag_coef_pqr"
    space = ParamSpace("quad", [Param(name=path, nominal=1e-4, low=0, high=1)])
    for refused in (
        RandomizeAttributes(env, {path: (0.1, 0.2)}, space),
        RandomizeAttributes(hover(), MASSES, SPACE, apply=lambda env, values: None, read=read_mass),
    ):
        with pytest.raises(RandomizationError):
            refused.reset(seed=1)
