"""The Box2D environment against Gymnasium's own, and against itself in other forms."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.box2d import lunar_lander as stock

import gym_dr
from gym_dr.envs.box2d.lunar_lander.env import LunarLanderDR
from gym_dr.errors import InvalidActionError

IDS = ("gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3")


def play(env: gym.Env[Any, Any], seed: int, act: Callable[[Any, int], Any], steps: int = 600) -> list[tuple[Any, ...]]:
    """Plays one episode; returns every observation, reward and flag as comparable values."""
    observation, _ = env.reset(seed=seed)
    rows: list[tuple[Any, ...]] = [(observation.tobytes(), 0.0, False, False)]
    for t in range(steps):
        observation, reward, terminated, truncated, _ = env.step(act(observation, t))
        rows.append((observation.tobytes(), float(reward), terminated, truncated))
        if terminated or truncated:
            break
    return rows


def random_actions(seed: int, continuous: bool) -> Callable[[Any, int], Any]:
    rng = np.random.default_rng(seed)
    if continuous:
        return lambda _observation, _t: rng.uniform(-1.5, 1.5, 2).astype(np.float32)  # beyond the bounds too
    return lambda _observation, _t: int(rng.integers(4))


def heuristic_actions(env: Any) -> Callable[[Any, int], Any]:
    def act(observation: Any, _t: int) -> Any:
        action = stock.heuristic(env, observation)
        return action.astype(np.float32) if env.unwrapped.continuous else action

    return act


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_nominal_episodes_equal_gymnasiums_bit_for_bit(continuous: bool, render_mode: str | None) -> None:
    theirs = stock.LunarLander(continuous=continuous, render_mode=render_mode)
    ours = LunarLanderDR(continuous=continuous, render_mode=render_mode, randomization="none")
    for seed in range(6 if render_mode is None else 2):
        if seed % 2:
            assert play(ours, seed, heuristic_actions(ours)) == play(theirs, seed, heuristic_actions(theirs))
        else:
            ours_rows = play(ours, seed, random_actions(seed, continuous))
            assert ours_rows == play(theirs, seed, random_actions(seed, continuous))


def test_episodes_after_the_first_equal_gymnasiums_too() -> None:
    # resets without a seed go on with the generator; no draw of ours may take numbers out of it
    theirs, ours = stock.LunarLander(), LunarLanderDR(randomization="none")
    assert (theirs.reset(seed=5)[0] == ours.reset(seed=5)[0]).all()
    for _ in range(5):
        assert (theirs.reset()[0] == ours.reset()[0]).all()
        for action in (0, 1, 2, 3):
            assert (theirs.step(action)[0] == ours.step(action)[0]).all()


@pytest.mark.parametrize("continuous", [False, True])
def test_wind_and_gravity_equal_gymnasiums_keywords(continuous: bool) -> None:
    values = {"gravity": -7.25, "enable_wind": True, "wind_power": 17.0, "turbulence_power": 0.75}
    theirs = stock.LunarLander(continuous=continuous, **values)
    ours = LunarLanderDR(continuous=continuous, randomization=values)
    for seed in range(4):
        assert play(ours, seed, heuristic_actions(ours)) == play(theirs, seed, heuristic_actions(theirs))


def test_engines_legs_and_push_equal_gymnasium_with_other_module_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "MAIN_ENGINE_POWER", 15.5)
    monkeypatch.setattr(stock, "SIDE_ENGINE_POWER", 0.9)
    monkeypatch.setattr(stock, "INITIAL_RANDOM", 1500.0)
    monkeypatch.setattr(stock, "LEG_SPRING_TORQUE", 20.0)
    values = {
        "main_engine_power": 15.5,
        "side_engine_power": 0.9,
        "initial_random": 1500.0,
        "leg_spring_torque": 20.0,
    }
    theirs, ours = stock.LunarLander(), LunarLanderDR(randomization=values)
    for seed in range(4):
        assert play(ours, seed, heuristic_actions(ours)) == play(theirs, seed, heuristic_actions(theirs))


def test_density_and_friction_reach_the_bodies() -> None:
    env = LunarLanderDR(randomization={"lander_density": 10.0, "ground_friction": 0.7})
    env.reset(seed=0)
    nominal = LunarLanderDR(randomization="none")
    nominal.reset(seed=0)
    # twice the density is twice the mass and inertia of the hull (derived by Box2D, float32); the legs keep theirs
    assert env.lander.mass == pytest.approx(2 * nominal.lander.mass, rel=1e-6)
    assert env.lander.inertia == pytest.approx(2 * nominal.lander.inertia, rel=1e-6)
    assert [leg.mass for leg in env.legs] == [leg.mass for leg in nominal.legs]
    # the first fixture is the base line, which is no terrain
    assert [f.friction for f in env.moon.fixtures[1:]] == pytest.approx([0.7] * 10)
    assert env.moon.fixtures[0].friction == pytest.approx(0.2)


def test_other_instances_and_gymnasiums_module_keep_their_physics() -> None:
    before = {key: value for key, value in vars(stock).items() if key.isupper()}
    reference = play(stock.LunarLander(), 3, random_actions(3, False))
    extreme, nominal = LunarLanderDR(randomization="extreme"), LunarLanderDR(randomization="none")
    extreme.reset(seed=1)
    with pytest.raises(InvalidActionError):
        extreme.step(7)
    assert {key: value for key, value in vars(stock).items() if key.isupper()} == before
    assert play(nominal, 3, random_actions(3, False)) == reference
    assert play(stock.LunarLander(), 3, random_actions(3, False)) == reference


@pytest.mark.parametrize("env_id", IDS)
def test_spec_and_pickle_give_the_same_environment_back(env_id: str) -> None:
    env = gym.make(env_id, randomization={"gravity": gym_dr.Uniform(-11, -9)})
    assert env.spec is not None
    for copy in (gym.make(env.spec), pickle.loads(pickle.dumps(env))):
        assert copy.spec == env.spec
        assert copy.unwrapped.randomization == env.unwrapped.randomization  # type: ignore[attr-defined]
        observation, info = copy.reset(seed=8)
        expected, expected_info = env.reset(seed=8)
        assert (observation == expected).all()
        assert info == expected_info
