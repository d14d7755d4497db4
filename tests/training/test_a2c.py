from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr.errors import CheckpointError
from gym_dr.training import a2c
from gym_dr.training.a2c import learn, make_agent, train
from gym_dr.training.actor_critic import ActorCritic, load_policy
from gym_dr.training.batch import advantages_of, make_batch
from gym_dr.training.config import A2CConfig
from gym_dr.training.rollout import RolloutCollector
from tests.training.fake_session import FakeSession
from tests.training.rollouts import batch_of, cart_pole_rollout, learned_as_torch_does, learned_from

CONFIG = A2CConfig(
    updates=3, rollout_steps=16, hidden_sizes=(8,), schedule="constant", normalize_advantages=False, reward_scale=1.0
)


def agent(**changes: Any) -> ActorCritic:
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    return make_agent(envs, replace(CONFIG, **changes), 1, "cpu")


def test_the_losses_are_those_of_the_paper() -> None:
    made, rollout = agent(entropy_coef=0.1), cart_pole_rollout()
    values = made.value(rollout.observations).detach()
    factors: Any = {"gamma": CONFIG.gamma, "gae_lambda": CONFIG.gae_lambda, "reward_scale": 1.0}
    batch = make_batch(rollout, values, advantages_of(rollout, values, **factors))
    policy = torch.distributions.Categorical(logits=made.actor.network(batch.observations))
    expected_policy = -(batch.advantages * policy.log_prob(batch.actions)).mean()
    expected_actor = expected_policy - 0.1 * policy.entropy().mean()
    expected_critic = ((batch.returns - made.critic(batch.critic_inputs).squeeze(-1)) ** 2).mean()
    losses = learn(made, batch_of(made, rollout, CONFIG), CONFIG)
    assert losses["actor_loss"] == pytest.approx(expected_actor.item(), rel=1e-5)
    assert losses["critic_loss"] == pytest.approx(expected_critic.item(), rel=1e-5)
    assert losses["entropy"] == pytest.approx(policy.entropy().mean().item(), rel=1e-5)


LEARNING: dict[str, dict[str, Any]] = {
    "one minibatch": {},
    "minibatches, advantages normalized": {"minibatches": 3, "normalize_advantages": True},
    "adam, tanh": {"optimizer": "adam", "activation": "tanh"},
    "memory": {"memory": "gru", "memory_size": 6, "sequence_length": 2, "minibatches": 2},
}


@pytest.mark.parametrize("name", LEARNING)
def test_compiled_gradients_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[ActorCritic, Any, A2CConfig]:
        made = agent(entropy_coef=0.1, **LEARNING[name])
        collector = RolloutCollector(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), 16, "cpu")
        collector.reset(seed=1)
        config = replace(CONFIG, **LEARNING[name])
        return made, learned_from(made, collector.collect(made.behavior), config), config

    learned_as_torch_does(a2c, make, monkeypatch)


def test_steps_counted_are_those_that_were_played() -> None:
    session = FakeSession("CartPole-v1", num_envs=8)
    train(session, replace(CONFIG, updates=2, rollout_steps=64))
    resets = len(session.episodes)
    total = sum(row["steps"] for row in session.rows)
    # every finished episode costs one reset step, but for those that ended with the very last step
    assert 2 * 64 * 8 - resets <= total <= 2 * 64 * 8 - resets + 8


@pytest.mark.slow  # its sibling is the contract it_learns_what_is_trivial_...
def test_it_learns_to_balance_a_pole() -> None:
    session = FakeSession("CartPole-v1", num_envs=8)
    config = A2CConfig(updates=150, rollout_steps=32, gamma=0.98, actor_lr=0.003, normalize_advantages=True)
    train(session, config)
    # a random policy balances for 22 steps
    assert np.mean([episode.length for episode in session.episodes[-20:]]) > 80


def test_a_loaded_policy_acts_like_the_actor() -> None:
    session = FakeSession("CartPole-v1")
    train(session, CONFIG)
    observations = np.zeros((5000, 4), dtype=np.float32)
    share = load_policy(session.state, session.envs, CONFIG)(observations).mean()
    made = agent()
    made.actor.load_state_dict(session.state["actor"])
    expected = made.actor.network(torch.zeros(1, 4)).softmax(-1)[0, 1].item()
    assert share == pytest.approx(expected, abs=0.03)  # 4 standard errors of 5000 coin flips


def test_weights_of_another_size_are_refused() -> None:
    session = FakeSession("CartPole-v1")
    train(session, CONFIG)
    with pytest.raises(CheckpointError, match="'actor' do not fit"):
        load_policy(session.state, session.envs, replace(CONFIG, hidden_sizes=(9,)))
    with pytest.raises(CheckpointError, match="'actor' do not fit"):
        load_policy({}, session.envs, CONFIG)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_it_trains_on_cuda() -> None:
    session = FakeSession("gym_dr/LunarLanderContinuousDR-v3")
    session.device = "cuda"
    train(session, CONFIG)
    assert all(p.device.type == "cuda" for p in session.state["actor"].values())
    assert all(np.isfinite(row["critic_loss"]) for row in session.rows)
