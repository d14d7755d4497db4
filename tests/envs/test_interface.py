"""What pages say about observations, actions and rewards is what the environments show, take and give."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.envs.box2d.lunar_lander import interface as lander
from gym_dr.envs.box2d.lunar_lander import physics
from gym_dr.envs.family import FAMILIES, EnvId
from gym_dr.envs.interface import NAME, Interface, Quantity
from gym_dr.registry import load_object

IDS = [(family.interface, env) for family in FAMILIES.values() for env in family.ids]
MUJOCO = [(path, env) for path, env in IDS if "mujoco" in path and env.reference]


def named(pair: Any) -> str:
    return pair.id if isinstance(pair, EnvId) else "-"


@pytest.mark.parametrize(("path", "env_id"), IDS, ids=named)
def test_every_number_of_an_observation_and_of_an_action_has_a_meaning_and_a_name_of_its_own(
    path: str, env_id: EnvId
) -> None:
    found: Interface = load_object(path)(env_id.id)
    env = gym.make(env_id.id)
    assert env.observation_space.shape == (sum(quantity.size for quantity in found.observation),)
    space = env.action_space
    count = int(space.n) if isinstance(space, gym.spaces.Discrete) else space.shape[0]  # type: ignore[index]
    assert len(found.actions) == count
    names = [quantity.name for quantity in found.observation]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(NAME, name)] == []
    env.close()


@pytest.mark.parametrize(("path", "env_id"), MUJOCO, ids=named)
def test_a_joint_is_observed_where_its_name_stands(path: str, env_id: EnvId) -> None:
    found: Interface = load_object(path)(env_id.id)
    env: Any = gym.make(env_id.id, randomization="none")
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(3):
        seen = env.step(env.action_space.sample())[0]
    at, checked = 0, 0
    for quantity in found.observation:
        if (expected := of_a_joint(quantity, env.unwrapped.data)) is not None:
            assert seen[at] == pytest.approx(expected), quantity
            checked += 1
        at += quantity.size
    assert checked >= 3
    env.close()


def of_a_joint(quantity: Quantity, data: Any) -> float | None:
    """The joint's number that a quantity is; None if it is something else."""
    meaning, _, note = quantity.meaning.partition(",")
    what, _, name = meaning.rpartition(" joint ")
    if not what or "force" in what or "torque" in what:
        return None
    joint = data.joint(name)
    if "velocity" in what:
        speed = float(joint.qvel[0])
        return float(np.clip(speed, -10, 10)) if note else speed
    angle = float(joint.qpos[0])
    if what.startswith("sine"):
        return float(np.sin(angle))
    return float(np.cos(angle)) if what.startswith("cosine") else angle


def test_a_unit_of_the_lander_is_what_1_stands_for() -> None:
    at_rest = physics.observe((10.0, 10.0), (0.0, 0.0), 0.0, 0.0, False, False)
    moving = physics.observe((10.0, 10.0), (5.0, 7.5), 0.0, 2.5, False, False)
    units = [quantity.unit for quantity in lander.interface("gym_dr/LunarLanderDR-v3").observation]
    assert units[2:4] + units[5:6] == ["5 m/s", "7.5 m/s", "2.5 rad/s"]
    assert np.subtract(moving, at_rest).tolist() == pytest.approx([0, 0, 1, 1, 0, 1, 0, 0])
