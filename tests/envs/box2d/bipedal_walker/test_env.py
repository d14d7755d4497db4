"""The Box2D environment against Gymnasium's own, and against itself in other forms."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.box2d import bipedal_walker as stock

from gym_dr.compiled import pcg64
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.env import BipedalWalkerDR
from gym_dr.envs.box2d.bipedal_walker.generate import terrain
from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER_HARDCORE
from gym_dr.errors import EnvStateError, InvalidActionError
from tests.envs.box2d.bipedal_walker.play import POLICIES, play, random_policy, stubborn_policy

NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"  # NumPy 1 has Gymnasium's rewards in float64
gymnasiums = pytest.mark.skipif(not NUMPY_2, reason="Gymnasium rounds rewards to float32 with NumPy 2 alone")


@gymnasiums
@pytest.mark.parametrize("hardcore", [False, True])
def test_nominal_episodes_equal_those_of_fresh_gymnasium_environments(hardcore: bool) -> None:
    ours = BipedalWalkerDR(hardcore=hardcore, randomization="none")
    for seed in range(6):
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


def changed(name: str) -> float:
    param = BIPEDAL_WALKER_HARDCORE[name]
    return 0.5 * (param.nominal + param.high) if param.nominal < param.high else param.low


@pytest.mark.parametrize("name", sorted(BIPEDAL_WALKER_HARDCORE))
def test_every_parameter_changes_the_episode(name: str) -> None:
    nominal = BipedalWalkerDR(hardcore=True, randomization="none")
    with_change = BipedalWalkerDR(hardcore=True, randomization={name: changed(name)})
    if name in ("roughness", *ground.Obstacles._fields):  # of what may lie ahead of where a few steps lead
        worlds: list[Any] = []
        for env in (nominal, with_change):
            worlds.append([])
            for seed in range(4):
                env.reset(seed=seed)
                worlds[-1].append([fixture.shape.vertices for body in env.terrain for fixture in body.fixtures])
        assert worlds[0] != worlds[1]
    else:
        seeds = range(3)
        assert [play(nominal, s, stubborn_policy, 80) for s in seeds] != [
            play(with_change, s, stubborn_policy, 80) for s in seeds
        ]


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


def test_steps_before_a_reset_and_impossible_actions_are_refused() -> None:
    env = BipedalWalkerDR()
    with pytest.raises(EnvStateError, match="reset"):
        env.step(np.zeros(4))
    with pytest.raises(EnvStateError, match="reset"):
        env.push(np.zeros(2))
    env.reset(seed=0)
    for action in (np.zeros(3), [0.0, 0.0, 0.0, np.nan], "up"):
        with pytest.raises(InvalidActionError):
            env.step(action)


def test_a_pickled_environment_plays_the_same() -> None:
    env = BipedalWalkerDR(hardcore=True, randomization="wide")
    copy = pickle.loads(pickle.dumps(env))
    assert play(env, 3, random_policy, 20) == play(copy, 3, random_policy, 20)


def test_an_environment_is_drawn_as_gymnasiums() -> None:
    ours, theirs = BipedalWalkerDR(randomization="none", render_mode="rgb_array"), stock.BipedalWalker("rgb_array")
    for env in (ours, theirs):
        env.reset(seed=2)
    assert (ours.render() == theirs.render()).all()
