"""Environments that are only fitted need no presets, no reward and no random start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from tests.fitting import cart_on_rail, only_fitted
from tests.fitting.cart_on_rail import ridden
from tests.registered import forgotten_afterwards


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        cart_on_rail.register()
        only_fitted.register()
        yield


def test_equations_that_return_the_next_state_alone_are_fitted() -> None:
    prior: Any = {"gain": (-5.0, 5.0), "drag": (0.0, 4.0)}
    found = gym_dr.fit(ridden(2.0, 1.0), env=only_fitted.CART, randomize=prior, held_out=0.0, progress=False)
    assert found.parameters["mean"][["gain", "drag"]].tolist() == pytest.approx([2.0, 1.0], rel=0.02)


def test_speeds_of_a_robot_that_are_nan_are_hidden() -> None:
    rng, log = np.random.default_rng(0), []
    env: Any = gym.make(only_fitted.POLE, randomization="none")
    for seed in range(2):
        rows, actions = [env.reset(seed=seed)[0]], np.repeat(rng.uniform(-1.0, 1.0, 10), 10)[:, None]
        rows += [env.step(action)[0] for action in actions]
        observations = np.array(rows) + 5e-4 * rng.standard_normal((len(rows), 1))
        log.append({"observations": observations, "actions": actions, "time": 0.01 * np.arange(len(rows))})
    prior: Any = {"dof_damping:hinge": (0.0, 0.2)}
    found = gym_dr.fit(log, env=only_fitted.POLE, randomize=prior, held_out=0.0, progress=False)
    assert found.parameters["mean"]["dof_damping:hinge"] == pytest.approx(0.05, rel=0.02)
    assert not found.suspicious


@pytest.mark.parametrize("env_id", [only_fitted.CART, only_fitted.POLE])
def test_their_rewards_are_0(env_id: str) -> None:
    env: Any = gym.make(env_id)
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[1:3] == (0.0, False)
    env.close()
