"""The Box2D environment against Gymnasium's own, and against itself in other forms."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from gymnasium.envs.box2d import bipedal_walker as stock

from gym_dr.compiled import pcg64
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.env import BipedalWalkerDR
from gym_dr.envs.box2d.bipedal_walker.generate import terrain
from tests.envs.box2d.bipedal_walker.play import POLICIES, play, random_policy, stubborn_policy

NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"  # NumPy 1 has Gymnasium's rewards in float64
gymnasiums = pytest.mark.skipif(not NUMPY_2, reason="Gymnasium rounds rewards to float32 with NumPy 2 alone")


@gymnasiums
@pytest.mark.parametrize("hardcore", [False, True])
def test_nominal_episodes_equal_those_of_fresh_gymnasium_environments(hardcore: bool) -> None:
    ours = BipedalWalkerDR(hardcore=hardcore, randomization="none")
    for seed in range(4):
        make_policy = POLICIES[seed % 4]
        theirs = stock.BipedalWalker(hardcore=hardcore)
        assert play(ours, seed, make_policy, 300) == play(theirs, seed, make_policy, 300)


@pytest.mark.parametrize("hardcore", [False, True])
def test_an_episode_depends_on_its_seed_alone(hardcore: bool) -> None:
    env = BipedalWalkerDR(hardcore=hardcore)
    first = [play(env, seed, stubborn_policy, 100) for seed in range(4)]
    assert [play(env, seed, stubborn_policy, 100) for seed in range(4)] == first


@gymnasiums
def test_parameters_equal_gymnasium_with_other_module_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "FRICTION", 0.7)
    monkeypatch.setattr(stock, "INITIAL_RANDOM", 50)
    monkeypatch.setattr(stock, "LIDAR_RANGE", 3.5)
    values = {"ground_friction": 0.7, "initial_random": 50.0, "lidar_range": 3.5}
    ours = BipedalWalkerDR(randomization=values)
    for seed in range(3):
        assert play(ours, seed, stubborn_policy, 100) == play(stock.BipedalWalker(), seed, stubborn_policy, 100)


def test_no_terrain_has_more_boxes_than_there_is_room_for() -> None:
    most = 0
    rng = np.random.default_rng(0)
    corners = {
        "pit_gap": [0.0, 1.0, 2.0],
        "stump_height": [0.0, 1.0],
        "stair_height": [1.0, 2.0],
        "stair_steps": [1.0, 2.0, 3.0, 9.0],
    }
    for seed in range(2000):
        values = {}
        for name, choices in corners.items():
            value = float(rng.choice(choices))
            values |= {name: value} if name == "stair_steps" else {f"{name}_low": value, f"{name}_high": value}
        params = {"roughness": 1.0, **values}
        most = max(most, len(terrain(pcg64.seeded(seed)[None], params, True)[1]))
    assert 30 < most <= ground.MAX_BOXES - 10


def test_obstacles_of_0_are_level_ground() -> None:
    values = dict.fromkeys(ground.Obstacles._fields, 0.0) | {"stair_steps": 3.0, "roughness": 0.0}
    heights, boxes = terrain(pcg64.seeded(3)[None], values, True)
    assert len(boxes) == 0
    assert np.ptp(heights) < 0.05  # the slope swings around level by 0.01 m a step


def test_a_pickled_environment_plays_the_same() -> None:
    env = BipedalWalkerDR(hardcore=True, randomization="wide")
    copy = pickle.loads(pickle.dumps(env))
    assert play(env, 3, random_policy, 20) == play(copy, 3, random_policy, 20)


def test_an_environment_is_drawn_as_gymnasiums() -> None:
    ours, theirs = BipedalWalkerDR(randomization="none", render_mode="rgb_array"), stock.BipedalWalker("rgb_array")
    for env in (ours, theirs):
        env.reset(seed=2)
    assert (ours.render() == theirs.render()).all()
