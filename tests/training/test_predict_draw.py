"""A head that predicts the draw from what a policy remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest
import torch

from gym_dr.training import a2c, ppo
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.batch import Sequences
from gym_dr.training.config import A2CConfig, PPOConfig
from gym_dr.training.rollout import RolloutCollector
from tests.training.hidden import VARIANCE, session
from tests.training.rollouts import learned_as_torch_does, learned_from

CONFIG = PPOConfig(
    updates=25,
    rollout_steps=40,
    sequence_length=20,
    epochs=4,
    minibatches=4,
    hidden_sizes=(8,),
    memory="gru",
    memory_size=8,
    predict_draw=1.0,
    lr=0.01,
)


def made(env_id: str = "gym_dr/CartPoleDR-v1", **changes: Any) -> tuple[ActorCritic, Any, Any]:
    """An agent in episodes of a few steps, a rollout of it, and the configuration."""
    config = replace(CONFIG, epochs=2, predict_draw=0.7, entropy_coef=0.1, **changes)
    envs = gym.make_vec(env_id, 8, max_episode_steps=10)
    agent = ppo.make_agent(envs, config, 1, "cpu")
    torch.manual_seed(2)
    with torch.no_grad():
        for group in (*agent.actor_optimizer.param_groups, *agent.critic_optimizer.param_groups):
            for parameter in group["params"]:
                parameter += 0.2 * torch.randn(parameter.shape)
    collector = RolloutCollector(envs, config.rollout_steps, "cpu", agent.visible)
    collector.reset(seed=5)
    return agent, collector.collect(agent.behavior), config


LEARNING: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("gym_dr/CartPoleDR-v1", {}),
    "one deviation, critic observes the draw": ("gym_dr/InvertedPendulumDR-v5", {"critic_context": True}),
    "deviation by observation": ("gym_dr/InvertedPendulumDR-v5", {"state_dependent_std": True}),
}


@pytest.mark.parametrize("name", LEARNING)
def test_ppos_compiled_gradients_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env_id, changes = LEARNING[name]

    def make() -> tuple[ActorCritic, Any, Any]:
        agent, rollout, config = made(env_id, **changes)
        return agent, learned_from(agent, rollout, config), config

    learned_as_torch_does(ppo, make, monkeypatch)


def test_a_head_that_predicts_nothing_errs_by_the_draws_squares() -> None:
    agent, rollout, config = made(minibatches=1)
    assert agent.predictor is not None
    assert rollout.context is not None
    with torch.no_grad():
        for parameter in agent.predictor.parameters():
            parameter.zero_()
    expected = rollout.context[:-1][torch.from_numpy(rollout.valid)].pow(2).mean().item()
    losses = ppo.learn(agent, learned_from(agent, rollout, config), replace(config, epochs=1))
    assert losses["prediction_loss"] == pytest.approx(expected, rel=1e-4)


def test_what_is_predicted_at_a_step_is_the_draw_of_its_episode() -> None:
    agent, rollout, config = made()
    sequences = learned_from(agent, rollout, config)
    assert isinstance(sequences, Sequences)
    assert sequences.draws is not None
    same = (sequences.draws[1:] == sequences.draws[:-1]).all(-1)
    assert torch.equal(~same, sequences.starts[1:])  # it changes where an episode starts, and only there
    assert (~same).any()


TRAININGS: dict[str, tuple[Callable[..., None], Any]] = {
    "ppo": (ppo.train, CONFIG),
    "a2c": (
        a2c.train,
        A2CConfig(
            updates=150,
            rollout_steps=40,
            sequence_length=20,
            hidden_sizes=(8,),
            memory="gru",
            memory_size=8,
            predict_draw=10.0,
            actor_lr=0.02,
        ),
    ),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_metrics_have_a_column_of_its_loss_only_if_the_draw_is_predicted(name: str) -> None:
    train, config = TRAININGS[name]
    for weight in (0.0, 0.1):
        seen = session()
        train(seen, replace(config, updates=1, predict_draw=weight))
        assert (list(seen.rows[0])[-1] == "prediction_loss") == (weight > 0)


@pytest.mark.parametrize("name", ["ppo", pytest.param("a2c", marks=pytest.mark.slow)])
def test_the_head_finds_a_parameter_that_one_step_reveals(name: str) -> None:
    train, config = TRAININGS[name]
    seen = session()
    train(seen, config)
    losses = [row["prediction_loss"] for row in seen.rows]
    assert losses[-1] < 0.05 * VARIANCE  # at all steps, of which three in four show nothing


def test_the_head_finds_nothing_where_nothing_is_revealed() -> None:
    blind = session(shows=False)
    ppo.train(blind, CONFIG)
    losses = [row["prediction_loss"] for row in blind.rows]
    assert sum(losses[-10:]) / 10 == pytest.approx(VARIANCE, rel=0.2)
