"""The native LunarLander is Box2D's, bit for bit (on machines where that can be had, see duel.EXACT)."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderVectorEnv
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.lunar_lander.native.duel import (
    Policy,
    Result,
    duel,
    heuristic_policy,
    random_policy,
    stubborn_policy,
    trained_policy,
    whole_range,
)

POLICIES = (random_policy, heuristic_policy, trained_policy, stubborn_policy)


def check(result: Result) -> None:
    if EXACT:
        assert result.differing == []
        assert result.returns[0] == result.returns[1]
    else:  # the same landings and crashes, up to chaos: most episodes end alike
        near = np.abs(np.subtract(*result.returns)) < 1.0
        assert near.mean() > 0.5


@pytest.mark.parametrize(
    "continuous", [pytest.param(False, marks=pytest.mark.slow), True], ids=["discrete", "continuous"]
)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.__name__)
def test_episodes_of_the_preset_extreme_are_equal(policy: Policy, continuous: bool) -> None:
    check(duel(policy, seed=1000, episodes=5, continuous=continuous, randomization="extreme"))


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "continuous"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.__name__)
def test_episodes_over_the_whole_range_of_every_parameter_are_equal(policy: Policy, continuous: bool) -> None:
    params = whole_range(np.random.default_rng(5), 5)
    check(duel(policy, seed=2000, episodes=5, continuous=continuous, params=params, max_steps=400))


@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
@pytest.mark.parametrize("wind", [False, True])
def test_nominal_episodes_equal_gymnasiums_own(wind: bool) -> None:
    box = gym.make("LunarLander-v3", enable_wind=wind)
    native = LunarLanderVectorEnv(1, randomization={"enable_wind": float(wind)} if wind else "none")
    rng = np.random.default_rng(0)
    for seed in range(4):
        observation, _ = box.reset(seed=seed)
        assert (native.reset(seed=seed)[0][0] == observation).all()
        done = False
        while not done:
            action = int(rng.integers(4))
            observation, reward, terminated, truncated, _ = box.step(action)
            theirs = native.step(np.array([action]))
            assert (theirs[0][0] == observation).all()
            assert (theirs[1][0], theirs[2][0], theirs[3][0]) == (reward, terminated, truncated)
            done = terminated or truncated


@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
def test_fast_spins_and_large_angles_are_equal() -> None:
    # side engine at full power on a light hull without gravity: beyond Box2D's limit on rotation, and past 120 rad
    params = {
        "gravity": np.zeros(4),
        "lander_density": np.ones(4),
        "side_engine_power": np.full(4, 3.0),
        "initial_random": np.zeros(4),
        "enable_wind": np.array([0.0, 1.0, 0.0, 1.0]),
        "leg_spring_torque": np.array([0.0, 0.0, 200.0, 40.0]),
    }
    largest = 0.0

    def spin(rng: np.random.Generator, env: object, observation: np.ndarray) -> int:
        nonlocal largest
        largest = max(largest, abs(float(observation[4])))
        return 1 if abs(observation[0]) < 0.9 else 0

    result = duel(spin, seed=7, episodes=4, params=params, max_steps=600)
    assert result.differing == []
    assert largest > 120.0


@pytest.mark.slow
@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
@pytest.mark.parametrize("part", range(20))
def test_twenty_thousand_episodes_are_equal(part: int) -> None:
    rng = np.random.default_rng(part)
    policy, continuous = POLICIES[part % 4], bool(part // 4 % 2)
    for batch in range(4):
        seed = 10_000_000 + 1_000 * (part * 10 + batch)
        if batch % 2:
            check(duel(policy, seed=seed, episodes=250, continuous=continuous, params=whole_range(rng, 250)))
        else:
            check(duel(policy, seed=seed, episodes=250, continuous=continuous, randomization="extreme"))
