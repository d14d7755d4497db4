"""An algorithm that was written for 0.2 still trains, and is told what to change."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest
import torch

from gym_dr.training import a2c, actor_critic, reinforce
from gym_dr.training.config import A2CConfig, ReinforceConfig
from gym_dr.training.optimizers import without_compiler
from gym_dr.training.rollout import collect_episodes
from tests.training.fake_session import FakeSession

CONFIG = A2CConfig(updates=3, rollout_steps=16, minibatches=2, hidden_sizes=(8,), normalize_observations=True)


def old_name(name: str) -> Any:
    with pytest.warns(DeprecationWarning, match=rf"actor_critic.{name} works until gym_dr 0.4: "):
        return getattr(actor_critic, name)


def test_an_algorithm_on_the_old_loop_trains_as_a2c_does() -> None:
    shared_options, train_on_rollouts = old_name("shared_options"), old_name("train_on_rollouts")

    def make_agent(envs: Any, config: A2CConfig, seed: int, device: str) -> Any:
        optimizer = without_compiler(torch.optim.RMSprop)
        return actor_critic.ActorCritic(envs, seed, device, make_optimizer=optimizer, **shared_options(config))

    config = replace(CONFIG, optimizer_eps=1e-8)  # torch's default
    old, new = FakeSession("CartPole-v1"), FakeSession("CartPole-v1")
    train_on_rollouts(old, config, make_agent, a2c.learn, a2c.LOSSES)
    a2c.train(new, config)
    assert old.rows == new.rows
    assert all(torch.equal(weights, new.state["actor"][name]) for name, weights in old.state["actor"].items())


def test_an_algorithm_with_a_rollout_of_its_own_trains_as_reinforce_does() -> None:
    train_agent = old_name("train_agent")
    config = ReinforceConfig(updates=2, hidden_sizes=(8,))
    old, new = FakeSession("CartPole-v1"), FakeSession("CartPole-v1")
    envs = old.make_envs(None)
    agent = reinforce.make_agent(envs, config, old.seed, old.device)

    def play(seed: int | None) -> Any:
        return collect_episodes(envs, agent.behavior, config.episodes_per_env, seed, old.device)

    train_agent(old, config, agent, play, reinforce.learn, reinforce.losses_of(config))
    reinforce.train(new, config)
    assert old.rows == new.rows


def test_training_update_is_found_where_it_was() -> None:
    assert old_name("training_update") is importlib.import_module("gym_dr.training.update").training_update


def test_an_agents_sampler_is_its_behavior() -> None:
    envs = FakeSession("CartPole-v1").make_envs(16)
    agent = a2c.make_agent(envs, CONFIG, 1, "cpu")
    with pytest.warns(DeprecationWarning, match=r"ActorCritic.sampler works until gym_dr 0.4: use behavior"):
        assert agent.sampler is agent.behavior
    envs.close()


def test_other_names_are_missing_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        actor_critic.nonsense  # type: ignore[attr-defined]  # noqa: B018
