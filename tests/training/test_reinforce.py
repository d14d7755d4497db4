from __future__ import annotations

import gc
import math
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.networks import linear_layers
from gym_dr.training.reinforce import learn, make_agent, train
from gym_dr.training.rollout import Rollout
from tests.training.fake_session import FakeSession
from tests.training.rollouts import cart_pole_rollout

CONFIG = ReinforceConfig(updates=3, hidden_sizes=(8,), baseline="none", gamma=0.5, schedule="constant")


def agent(**changes: Any) -> tuple[ActorCritic, ReinforceConfig]:
    config = replace(CONFIG, **changes)
    return make_agent(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), config, 1, "cpu"), config


def known_losses(baseline: str) -> dict[str, float]:
    """Of an episode of two steps that is truncated, then steps that count in nothing.

    Both actions are equally likely, and the network of the critic answers 1.5 to every observation.
    """
    made, config = agent(baseline=baseline)
    for parameter in (*made.actor.parameters(), *made.critic.parameters()):
        parameter.data.zero_()
    linear_layers(made.critic)[-1].bias.data.fill_(1.5)
    episodes = Rollout(
        observations=torch.zeros(5, 1, 4),
        actions=torch.tensor([[0], [1], [0], [1]]),
        log_probs=torch.full((4, 1), -math.log(2)),
        rewards=np.array([[1.0], [2.0], [0.0], [8.0]], dtype=np.float32),
        terminated=np.zeros((4, 1), dtype=bool),
        truncated=np.array([[False], [True], [False], [False]]),
        valid=np.array([[True], [True], [False], [False]]),
    )
    return learn(made, episodes, config)


def test_the_losses_are_those_of_the_complete_episodes() -> None:
    # gamma 0.5: G_1 = 2, G_0 = 1 + 0.5*2 = 2, and -log(1/2) for each action: 2 log 2 + 2 log 2
    assert known_losses("none") == pytest.approx({"actor_loss": 4 * math.log(2), "entropy": math.log(2)})


def test_with_a_baseline_a_truncated_episode_bootstraps_from_its_final_observation() -> None:
    # values are 1.5 / (1 - gamma) = 3: G_1 = 2 + 0.5*3 = 3.5, G_0 = 1 + 0.5*3.5 = 2.75
    # the critic is off by 0.5 and -0.25: (0.25 + 0.0625) / 2; the actor's weights are the same: 0.25 log 2
    losses = known_losses("learned")
    assert losses["critic_loss"] == pytest.approx(0.15625)
    assert losses["actor_loss"] == pytest.approx(0.25 * math.log(2))


def test_normalized_returns_have_mean_0() -> None:
    assert known_losses("normalize")["actor_loss"] == pytest.approx(0.0)  # both returns are 2


def test_the_loss_is_the_negative_sum_of_log_probability_times_return_per_episode() -> None:
    (made, config), episodes = agent(entropy_coef=0.1), cart_pole_rollout()
    policy = torch.distributions.Categorical(logits=made.actor.network(episodes.observations[:-1]))
    # two episodes of four steps with reward 1, gamma 0.5: G_3 = 1, G_2 = 1 + 0.5 = 1.5, G_1 = 1.75, G_0 = 1.875
    returns = torch.tensor([1.875, 1.75, 1.5, 1.0])[:, None]
    expected = -(policy.log_prob(episodes.actions) * returns).sum() / 2 - 0.1 * policy.entropy().mean()
    assert learn(made, episodes, config)["actor_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_a_learned_baseline_moves_towards_the_returns() -> None:
    (made, config), episodes = agent(baseline="learned", lr=0.01), cart_pole_rollout()
    losses = [learn(made, episodes, config)["critic_loss"] for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]


def test_a_learned_baseline_reaches_the_returns_of_endless_episodes_within_a_hundred_updates() -> None:
    (made, config), episodes = agent(baseline="learned", lr=0.003, gamma=0.99), cart_pole_rollout()
    episodes.rewards[:] = 0.0
    episodes.rewards[-1] = 100.0  # what a reward of 1 for ever is worth; the loss is 97 to 100, squared, at first
    losses = [learn(made, episodes, config)["critic_loss"] for _ in range(100)]
    assert losses[0] > 9000.0
    assert losses[-1] < 900.0


def test_every_update_uses_the_same_number_of_episodes_of_each_sub_environment() -> None:
    session = FakeSession("CartPole-v1", num_envs=3)
    train(session, replace(CONFIG, episodes_per_env=2))
    assert [sum(e.env_index == i for e in session.episodes) for i in range(3)] == [6, 6, 6]
    assert sum(row["steps"] for row in session.rows) == sum(e.length for e in session.episodes)


def test_nothing_of_an_update_is_kept() -> None:
    session = FakeSession("CartPole-v1", num_envs=2)

    def tensors() -> int:
        gc.collect()
        return sum(type(item) in (torch.Tensor, torch.nn.Parameter) for item in gc.get_objects())

    counts: list[int] = []
    original = session.log

    def log(update: int, *, steps: int, **metrics: float) -> None:
        original(update, steps=steps, **metrics)
        counts.append(tensors())

    session.log = log  # type: ignore[method-assign]
    train(session, replace(CONFIG, updates=5))
    assert max(counts[2:]) <= counts[1]  # the first update makes the optimizer's state


@pytest.mark.slow  # its sibling is the contract it_learns_what_is_trivial_...
def test_it_learns_to_balance_a_pole() -> None:
    session = FakeSession("CartPole-v1", num_envs=10)
    train(session, ReinforceConfig(updates=60, lr=0.01))
    # a random policy balances for 22 steps
    assert np.mean([episode.length for episode in session.episodes[-20:]]) > 80
