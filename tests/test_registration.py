from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.envs.family import ENVIRONMENTS, FAMILIES, EnvFamily, EnvId, add_family, family_of
from gym_dr.envs.mujoco.reference import quiet_compiler

IDS = list(ENVIRONMENTS)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("preset", ["none", "default", "wide", "random", "extreme"])
def test_every_preset_plays_every_id(env_id: str, preset: str) -> None:
    env = gym.make(env_id, randomization=preset)
    env.action_space.seed(0)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        for name, value in info["params"].items():
            env.get_wrapper_attr("param_space")[name].check(value)
        for _ in range(5):
            observation, reward, *_ = env.step(env.action_space.sample())
            assert np.isfinite(observation).all()
            assert np.isfinite(float(reward))


@pytest.mark.parametrize("env_id", [entry.id for entry in ENVIRONMENTS.values() if entry.reference])
def test_spaces_limit_and_threshold_are_gymnasiums(env_id: str) -> None:
    stock = ENVIRONMENTS.get(env_id).reference
    if "box2d" in gym.spec(stock).entry_point:
        pytest.importorskip("Box2D")
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


def test_an_id_keeps_its_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (FAMILIES, ENVIRONMENTS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # type: ignore[attr-defined]
    env = EnvId(
        id="gym_dr/Test-v0", entry_point="gym_dr.envs.box2d.lunar_lander.env:LunarLanderDR", max_episode_steps=7
    )
    try:
        for _ in range(2):  # the second time does nothing
            add_family(EnvFamily(name="Test", ids=(env,)), "tests")
        assert gym.spec(env.id).max_episode_steps == 7
        assert family_of(f"gym_dr:{env.id}") is FAMILIES.get("Test")
    finally:
        gym.envs.registration.registry.pop(env.id, None)


def test_public_names_are_listed_and_exist() -> None:
    assert sorted(gym_dr.__all__) == list(dict.fromkeys(sorted(gym_dr.__all__)))
    values: dict[str, Any] = vars(gym_dr)
    assert all(name in values for name in gym_dr.__all__)
