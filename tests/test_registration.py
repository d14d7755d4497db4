from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.envs.families import BUILTIN
from gym_dr.envs.family import ENVIRONMENTS, FAMILIES, EnvFamily, EnvId, add_family, family_of
from gym_dr.envs.mujoco.stock import quiet_compiler

IDS = list(ENVIRONMENTS)


# of worker processes the sibling is the first id
MADE = [
    pytest.param(env_id, mode, marks=[pytest.mark.slow] if mode == "async" and env_id != IDS[0] else [])
    for env_id in IDS
    for mode in (None, "sync", "async")
]


@pytest.mark.parametrize(("env_id", "mode"), MADE)
def test_every_id_is_made_and_stepped(env_id: str, mode: str | None) -> None:
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode=mode)
    observations, info = envs.reset(seed=1)
    assert observations in envs.observation_space
    assert info["params"]
    envs.action_space.seed(1)
    for _ in range(3):
        observations, *_ = envs.step(envs.action_space.sample())
    assert observations in envs.observation_space
    envs.close()


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("preset", ["none", "default", "wide", "random", "extreme"])
def test_every_preset_plays_every_id(env_id: str, preset: str) -> None:
    env = gym.make(env_id, randomization=preset)
    env.action_space.seed(0)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        for name, value in info["params"].items():
            env.unwrapped.param_space[name].check(value)  # type: ignore[attr-defined]
        for _ in range(5):
            observation, reward, *_ = env.step(env.action_space.sample())
            assert np.isfinite(observation).all()
            assert np.isfinite(float(reward))


@pytest.mark.parametrize("env_id", [entry.id for entry in ENVIRONMENTS.values() if entry.stock])
def test_spaces_limit_and_threshold_are_gymnasiums(env_id: str) -> None:
    stock = ENVIRONMENTS.get(env_id).stock
    with quiet_compiler():
        ours, theirs = gym.make(env_id), gym.make(stock)
    assert stock == env_id.removeprefix("gym_dr/").replace("DR-", "-")
    assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
    assert ours.spec is not None
    assert theirs.spec is not None
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold


def test_ids_exist_after_gymnasium_imports_the_module() -> None:
    code = "import gymnasium; print(gymnasium.make('gym_dr:gym_dr/LunarLanderDR-v3').spec.id)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "gym_dr/LunarLanderDR-v3"


def test_adding_a_family_twice_does_nothing() -> None:
    spec = gym.spec(IDS[0])
    add_family(BUILTIN[0], "gym_dr")
    assert gym.spec(IDS[0]) is spec


def test_an_id_keeps_its_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (FAMILIES, ENVIRONMENTS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # type: ignore[attr-defined]
    env = EnvId(
        id="gym_dr/Test-v0", entry_point="gym_dr.envs.box2d.lunar_lander.env:LunarLanderDR", max_episode_steps=7
    )
    try:
        add_family(EnvFamily(name="Test", ids=(env,)), "tests")
        assert gym.spec(env.id).max_episode_steps == 7
        assert family_of(f"gym_dr:{env.id}") is FAMILIES.get("Test")
    finally:
        gym.envs.registration.registry.pop(env.id, None)


def test_public_names_are_listed_and_exist() -> None:
    assert sorted(gym_dr.__all__) == list(dict.fromkeys(sorted(gym_dr.__all__)))
    values: dict[str, Any] = vars(gym_dr)
    assert all(name in values for name in gym_dr.__all__)
