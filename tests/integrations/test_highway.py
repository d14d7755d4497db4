"""highway-env, whose parameters are entries of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from gym_dr import Integer, Param, ParamSpace, RandomizeAttributes
from gym_dr.errors import RandomizationError
from tests.integrations.replays import assert_replays, episode
from tests.registered import forgotten_afterwards

highway_env = pytest.importorskip("highway_env")

pytestmark = pytest.mark.integration

DENSITY, LANES = 'config["vehicles_density"]', 'config["lanes_count"]'
SPACE = ParamSpace(
    "highway",
    [
        Param(name=DENSITY, nominal=1.0, low=0.1, high=5.0),
        Param(name=LANES, nominal=4, low=1, high=8, kind="int"),
    ],
)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        gym.register_envs(highway_env)
        yield


def road(**randomization: Any) -> Any:
    return RandomizeAttributes(
        gym.make("highway-v0"), randomization or {DENSITY: (0.5, 2.0), LANES: Integer(2, 6)}, SPACE
    )


def test_the_road_has_the_lanes_of_each_draw() -> None:
    env, lanes = road(), set()
    for seed in range(4):
        _, info = env.reset(seed=seed)
        graph = env.unwrapped.road.network.graph
        assert len(graph["0"]["1"]) == info["params"][LANES]
        lanes.add(info["params"][LANES])
    assert len(lanes) > 1


def test_more_traffic_begins_closer() -> None:
    sparse, dense = (episode(lambda n=n: road(**{DENSITY: n}), steps=0)[1] for n in (0.5, 3.0))
    assert (abs(dense[1:, 1]) < abs(sparse[1:, 1])).all()


def test_a_seed_gives_the_same_episode() -> None:
    assert_replays(road)


def test_what_reset_builds_anew_is_refused() -> None:
    env = gym.make("highway-v0")
    env.reset(seed=1)
    space = ParamSpace("car", [Param(name="vehicle.target_speed", nominal=25.0, low=0, high=50)])
    with pytest.raises(RandomizationError):
        RandomizeAttributes(env, {"vehicle.target_speed": (10, 20)}, space).reset(seed=1)
