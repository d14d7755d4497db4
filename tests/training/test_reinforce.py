from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr.errors import TrainingError
from gym_dr.training.config import ReinforceConfig
from gym_dr.training.reinforce import Reinforce, load_policy, make_batch, train
from gym_dr.training.rollout import Rollout
from tests.training.fake_session import FakeSession

CONFIG = ReinforceConfig(updates=3, hidden_sizes=(8,), baseline="none", gamma=0.5, schedule="constant")


def weights(state: Any) -> list[list[float]]:
    return [p.flatten().tolist() for name in ("actor", "critic") for p in state[name].values()]


def known_episodes() -> Rollout:
    """One sub-environment: an episode of two steps that is truncated, then steps that count in nothing."""
    return Rollout(
        observations=torch.tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]]]),
        actions=torch.tensor([[0], [1], [0], [1]]),
        rewards=np.array([[1.0], [2.0], [0.0], [8.0]], dtype=np.float32),
        terminated=np.zeros((4, 1), dtype=bool),
        truncated=np.array([[False], [True], [False], [False]]),
        valid=np.array([[True], [True], [False], [False]]),
    )


def test_a_batch_holds_the_complete_episodes_and_their_returns() -> None:
    # G_1 = 2; G_0 = 1 + 0.5*2 = 2; the steps after the end are left out
    batch = make_batch(known_episodes(), None, gamma=0.5)
    assert batch.observations.flatten().tolist() == [1.0, 2.0]
    assert batch.returns.tolist() == [2.0, 2.0]
    assert batch.episodes == 1


def test_with_a_baseline_a_truncated_episode_bootstraps_from_its_final_observation() -> None:
    # the final observation is 3: G_1 = 2 + 0.5*3 = 3.5; G_0 = 1 + 0.5*3.5 = 2.75
    batch = make_batch(known_episodes(), lambda observations: observations[..., 0], gamma=0.5)
    assert batch.returns.tolist() == [2.75, 3.5]


def agent(**changes: Any) -> Reinforce:
    return Reinforce(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), replace(CONFIG, **changes), 1, "cpu")


def cart_pole_episodes() -> Rollout:
    torch.manual_seed(0)
    false = np.zeros((4, 2), dtype=bool)
    terminated = false.copy()
    terminated[-1] = True
    return Rollout(
        observations=torch.randn(5, 2, 4),
        actions=torch.randint(2, (4, 2)),
        rewards=np.ones((4, 2), dtype=np.float32),
        terminated=terminated,
        truncated=false,
        valid=~false,
    )


def test_the_loss_is_the_negative_sum_of_log_probability_times_return_per_episode() -> None:
    made, episodes = agent(entropy_coef=0.1), cart_pole_episodes()
    batch = make_batch(episodes, None, gamma=0.5)
    policy = torch.distributions.Categorical(logits=made.actor.network(batch.observations))
    expected = -(policy.log_prob(batch.actions) * batch.returns).sum() / 2 - 0.1 * policy.entropy().mean()
    assert made.update(episodes)["actor_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_a_learned_baseline_moves_towards_the_returns() -> None:
    made, episodes = agent(baseline="learned", lr=0.01), cart_pole_episodes()
    losses = [made.update(episodes)["critic_loss"] for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]


def test_a_learned_baseline_reaches_the_returns_of_endless_episodes_within_a_hundred_updates() -> None:
    made, episodes = agent(baseline="learned", lr=0.003, gamma=0.99), cart_pole_episodes()
    episodes.rewards[:] = 0.0
    episodes.rewards[-1] = 100.0  # what a reward of 1 for ever is worth; the loss is 97 to 100, squared, at first
    losses = [made.update(episodes)["critic_loss"] for _ in range(100)]
    assert losses[0] > 9000.0
    assert losses[-1] < 900.0


def test_the_learning_rate_falls_to_zero_over_the_updates() -> None:
    made = agent(updates=4, lr=0.1, schedule="linear")
    for update, expected in ((0, 0.1), (3, 0.025)):
        made.schedule(update)
        for optimizer in (made.actor_optimizer, made.critic_optimizer):
            assert optimizer.param_groups[0]["lr"] == pytest.approx(expected)


def test_each_networks_gradient_is_clipped() -> None:
    made, episodes = agent(baseline="learned", max_grad_norm=1e-3), cart_pole_episodes()
    made.update(episodes)
    for network in (made.actor, made.critic):
        norm = torch.stack([p.grad.square().sum() for p in network.parameters() if p.grad is not None]).sum().sqrt()
        assert norm == pytest.approx(1e-3, rel=1e-2)


def test_a_loss_that_is_not_finite_leaves_the_policy_alone() -> None:
    made, episodes = agent(), cart_pole_episodes()
    before = [p.clone() for p in made.actor.parameters()]
    episodes.rewards[0, 0] = np.inf
    with pytest.raises(TrainingError, match="not finite"):
        made.update(episodes)
    assert all(torch.equal(a, b) for a, b in zip(before, made.actor.parameters(), strict=True))


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3"])
def test_the_same_seed_gives_the_same_weights_whatever_torchs_global_state(env_id: str) -> None:
    runs = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        session = FakeSession(env_id, num_envs=2)
        train(session, CONFIG)
        runs.append((weights(session.state), session.rows))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("baseline", ["none", "normalize", "learned"])
def test_training_goes_on_from_saved_state_to_the_same_result(baseline: str) -> None:
    config = replace(CONFIG, updates=4, baseline=baseline)
    whole = FakeSession("CartPole-v1", segment=2)
    train(whole, config)
    first = FakeSession("CartPole-v1", segment=2)
    train(first, replace(config, updates=2))
    second = FakeSession("CartPole-v1", segment=2)
    second.restored, second.first_update = dict(first.state), 2
    train(second, config)
    assert weights(second.state) == weights(whole.state)
    assert first.rows + second.rows == whole.rows


def test_every_update_uses_the_same_number_of_episodes_of_each_sub_environment() -> None:
    session = FakeSession("CartPole-v1", num_envs=3)
    train(session, replace(CONFIG, episodes_per_env=2))
    assert [sum(e.env_index == i for e in session.episodes) for i in range(3)] == [6, 6, 6]
    assert sum(row["steps"] for row in session.rows) == sum(e.length for e in session.episodes)


def test_nothing_of_an_update_is_kept() -> None:
    session = FakeSession("CartPole-v1", num_envs=2)

    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())

    counts: list[int] = []
    original = session.log

    def log(update: int, *, steps: int, **metrics: float) -> None:
        original(update, steps=steps, **metrics)
        counts.append(tensors())

    session.log = log  # type: ignore[method-assign]
    train(session, replace(CONFIG, updates=8))
    assert max(counts[2:]) <= counts[1]  # the first update makes the optimizer's state


def test_it_learns_to_balance_a_pole() -> None:
    session = FakeSession("CartPole-v1", num_envs=10)
    train(session, ReinforceConfig(updates=60, lr=0.01))
    # a random policy balances for 22 steps
    assert np.mean([episode.length for episode in session.episodes[-20:]]) > 80


def test_a_loaded_policy_acts_like_the_actor() -> None:
    session = FakeSession("gym_dr/LunarLanderContinuousDR-v3", num_envs=2)
    train(session, CONFIG)
    policy = load_policy(session.state, session.envs, CONFIG)
    actions = policy(session.envs.reset(seed=0)[0])
    assert all(session.envs.single_action_space.contains(action) for action in actions)
