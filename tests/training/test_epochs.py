"""Epochs in compiled code give the same bits on any number of threads, and begin from what torch has."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import pytest
import torch

from gym_dr.compiled.threads import Threads
from gym_dr.training import a2c, ppo
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.config import A2CConfig, PPOConfig
from gym_dr.training.rollout import RolloutCollector
from tests.training.rollouts import learned_from

MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 5, "sequence_length": 10}
SMALL: dict[str, Any] = {"rollout_steps": 40, "hidden_sizes": (8,)}
# minibatches of more than one share, also not of the same size
CASES: dict[str, tuple[Any, Any]] = {
    "ppo": (ppo, PPOConfig(epochs=2, minibatches=2, **SMALL)),
    "many weights": (ppo, PPOConfig(epochs=2, minibatches=3, rollout_steps=40, hidden_sizes=(70, 70))),
    "ppo, memory": (ppo, PPOConfig(epochs=2, minibatches=3, **SMALL, **MEMORY)),
    "a2c": (a2c, A2CConfig(**SMALL)),
}


def learned(name: str, threads: int) -> tuple[ActorCritic, list[dict[str, float]]]:
    """An agent after two updates."""
    module, config = CASES[name]
    envs = gym.make_vec("gym_dr/CartPoleDR-v1", 8, max_episode_steps=10)
    agent = module.make_agent(envs, config, 1, "cpu")
    agent.threads = Threads(threads)
    collector = RolloutCollector(envs, config.rollout_steps, "cpu")
    collector.reset(seed=5)
    losses = [
        module.learn(agent, learned_from(agent, collector.collect(agent.behavior), config), config) for _ in range(2)
    ]
    agent.threads.close()
    return agent, losses


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    alone, losses = learned(name, 1)
    for threads in (2, 3, 16):
        together, others = learned(name, threads)
        assert losses == others
        torch.testing.assert_close(alone.state(), together.state(), rtol=0.0, atol=0.0)


def test_they_go_on_from_the_weights_and_moments_that_torch_has() -> None:
    first, _ = learned("ppo", 1)
    begun = {name: value.clone() for name, value in first.actor.state_dict().items()}
    other, _ = learned("ppo", 1)
    with torch.no_grad():
        for weights in other.actor.parameters():
            weights += 1.0
    other.load_state(copy.deepcopy(first.state()))
    envs = gym.make_vec("gym_dr/CartPoleDR-v1", 8, max_episode_steps=10)
    for agent in (first, other):
        collector = RolloutCollector(envs, 40, "cpu")
        collector.reset(seed=9)
        _, config = CASES["ppo"]
        ppo.learn(agent, learned_from(agent, collector.collect(agent.behavior), config), config)
    assert any(not torch.equal(begun[name], value) for name, value in first.actor.state_dict().items())
    torch.testing.assert_close(first.state(), other.state(), rtol=0.0, atol=0.0)
