from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_dr.training import a2c, ppo
from gym_dr.training.actor_critic import load_policy
from gym_dr.training.behavior import CompiledBehavior, TorchBehavior
from gym_dr.training.config import A2CConfig, PPOConfig
from gym_dr.training.networks import linear_layers, make_actor
from gym_dr.training.normalization import SCALE_FLOOR, Moments, NormalizeObservations, NormalizeRewards
from gym_dr.wrappers.context import DrawContext, shown_columns
from tests.training.fake_session import FakeSession
from tests.training.rollouts import acted, known_rollout

CONFIG = PPOConfig(updates=3, rollout_steps=64, epochs=2, minibatches=2, hidden_sizes=(8,), activation="tanh")


@given(
    pieces=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(0.1, 1e3),
)
@settings(max_examples=25, deadline=None)
def test_moments_are_those_of_all_rows_whatever_pieces_they_come_in(
    pieces: list[int], shift: float, scale: float
) -> None:
    rows = np.random.default_rng(1).normal(shift, scale, (sum(pieces), 3))
    moments = Moments(3)
    for piece in np.split(rows, np.cumsum(pieces)[:-1]):
        moments.update(torch.from_numpy(piece))
    assert moments.count.item() == len(rows)
    np.testing.assert_allclose(moments.mean.numpy(), rows.mean(0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.variance.numpy(), rows.var(0), rtol=1e-6, atol=1e-9)


def test_before_the_first_row_observations_pass_as_they_are() -> None:
    inputs = torch.randn(5, 4)
    torch.testing.assert_close(NormalizeObservations(4)(inputs), inputs)


def test_a_column_that_has_never_varied_is_not_blown_up() -> None:
    layer = NormalizeObservations(1)
    layer.update(torch.zeros(1000, 1))
    assert layer(torch.ones(1, 1)).item() == pytest.approx(1.0 / SCALE_FLOOR)


def test_further_columns_pass_as_they_are_and_do_not_count() -> None:
    layer = NormalizeObservations(2)
    layer.update(torch.tensor([[1.0, 10.0, 7.0], [3.0, 30.0, 9.0]]))  # means 2 and 20, deviations 1 and 10
    torch.testing.assert_close(layer(torch.tensor([[3.0, 0.0, 5.0]])), torch.tensor([[1.0, -2.0, 5.0]]))


def test_the_folded_layer_does_what_both_do() -> None:
    torch.manual_seed(0)
    layer, linear = NormalizeObservations(3), torch.nn.Linear(4, 5)
    layer.update(torch.randn(100, 4) * torch.tensor([0.1, 10.0, 1.0, 1.0]) + torch.tensor([5.0, -3.0, 0.0, 0.0]))
    inputs = torch.randn(7, 4)
    weight, bias = layer.folded(linear.weight, linear.bias)
    torch.testing.assert_close(inputs @ weight.T + bias, linear(layer(inputs)), rtol=1e-4, atol=1e-4)


def test_ignored_columns_are_0_whatever_they_are_and_the_others_are_normalized() -> None:
    layer = NormalizeObservations(2)
    layer.ignore([1])
    layer.update(torch.tensor([[1.0, 10.0, 7.0], [3.0, 30.0, 9.0]]))  # of the first, mean 2 and deviation 1
    inputs = torch.tensor([[3.0, 3e38, 5.0], [4.0, -1e-38, 6.0]])
    torch.testing.assert_close(layer(inputs), torch.tensor([[1.0, 0.0, 5.0], [2.0, 0.0, 6.0]]), rtol=0.0, atol=0.0)
    weight, bias = layer.folded(torch.tensor([[2.0, 3.0, 1.0]]), torch.tensor([0.5]))
    torch.testing.assert_close(weight, torch.tensor([[2.0, 0.0, 1.0]]), rtol=0.0, atol=0.0)
    torch.testing.assert_close(bias, torch.tensor([-3.5]), rtol=0.0, atol=0.0)  # 0.5 - 2 * 2


def test_a_policy_that_ignores_a_sensor_learns_and_acts_without_it_after_it_was_saved_too() -> None:
    pole = "gym_dr/CartPoleDR-v1"
    config = replace(CONFIG, ignored_sensors=("x", "3"))  # the fourth number is theta_dot
    session = FakeSession(pole)
    ppo.train(session, config)
    policy = load_policy(session.state, session.envs, CONFIG, deterministic=False)  # what it ignores is saved
    observations = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    noise = observations * [5.0, 0.0, 0.0, -7.0]
    probabilities = [policy.actor.network(torch.from_numpy((observations + x).astype(np.float32))) for x in (0, noise)]
    torch.testing.assert_close(*probabilities, rtol=0.0, atol=0.0)
    weights = linear_layers(policy.actor.network)[0].weight
    begun = ppo.make_agent(session.envs, config, session.seed, "cpu")
    before = linear_layers(begun.actor.network)[0].weight
    assert torch.equal(weights[:, [0, 3]], before[:, [0, 3]])
    assert not torch.isclose(weights[:, [1, 2]], before[:, [1, 2]]).any()


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3"])
def test_compiled_and_torch_policies_normalize_alike(env_id: str) -> None:
    envs = gym.make_vec(env_id, 4, num_threads=1)
    actor = make_actor(envs, (16,), "tanh", normalize_observations=True)
    actor.network[0].update(torch.randn(100, 8) * 3.0 + 1.0)  # type: ignore[operator]  # a module's attribute
    observations = np.random.default_rng(1).normal(1.0, 3.0, (4, 8)).astype(np.float32)
    generator = torch.Generator()
    noise = actor.noise(1, 4, generator)[0].numpy()
    behaviors = CompiledBehavior(actor, generator, 4), TorchBehavior(actor, generator, "cpu", 4)
    behaviors[0].begin()
    for mine, theirs in zip(*(acted(behavior, observations, noise) for behavior in behaviors), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    envs.close()


def slow_deviation(rewards: Any, ends: Any, valid: Any, gamma: float) -> float:
    """As Gymnasium's ``NormalizeReward``: sub-environment by sub-environment, step by step."""
    returns = []
    for i in range(rewards.shape[1]):
        following = 0.0
        for t in range(len(rewards)):
            following = gamma * following + float(rewards[t, i])
            if valid[t, i]:
                returns.append(following)
            if ends[t, i]:
                following = 0.0
    return float(np.std(returns))


@given(seed=st.integers(0, 1000), cut=st.integers(1, 29))
@settings(max_examples=25, deadline=None)
def test_rewards_are_divided_by_the_deviation_of_discounted_returns(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.random((30, 4)) < 0.2
    valid = np.ones_like(ends)
    valid[1:] = ~ends[:-1]  # a step after an end is a reset
    ends &= valid
    valid[1:] = ~ends[:-1]
    rewards = (rng.normal(0.0, 5.0, ends.shape) * valid).astype(np.float32)
    moments = NormalizeRewards(gamma=0.9)
    moments.observe(rewards[:cut], ends[:cut], valid[:cut], fresh=True)
    moments.observe(rewards[cut:], ends[cut:], valid[cut:], fresh=False)  # episodes go on over the cut
    expected = max(slow_deviation(rewards, ends, valid, 0.9), SCALE_FLOOR)
    assert moments.std().item() == pytest.approx(expected, rel=1e-6)


def test_reset_steps_count_in_no_statistic() -> None:
    states = []
    for junk in (0.0, 1e6):
        envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
        envs.single_observation_space = gym.spaces.Box(-9, 9, (1,))
        agent = ppo.make_agent(envs, CONFIG, 1, "cpu")
        rollout = known_rollout()  # its last step of the second sub-environment is a reset
        rollout.observations[1, 1] = junk
        agent.observe_rewards(rollout, fresh=True)
        agent.observe_observations(rollout)
        states.append(agent.state())
    assert states[0]["actor"]["network.0.count"] == 3
    torch.testing.assert_close(states[0], states[1], rtol=0.0, atol=0.0)


def test_statistics_are_constant_within_a_rollout_and_what_is_learned_from_it() -> None:
    session = FakeSession("CartPole-v1")
    seen: list[Any] = []
    learn = ppo.learn

    def watch(agent: Any, batch: Any, config: Any) -> dict[str, float]:
        seen.append(agent.observation_moments.count.item())
        found = learn(agent, batch, config)
        assert agent.observation_moments.count.item() == seen[-1]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ppo, "learn", watch)
        ppo.train(session, CONFIG)
    assert seen == [0, session.rows[0]["steps"], session.rows[0]["steps"] + session.rows[1]["steps"]]


def test_a_loaded_policy_has_the_statistics_and_leaves_them() -> None:
    session = FakeSession("CartPole-v1")
    ppo.train(session, CONFIG)
    before = {name: value.clone() for name, value in session.state["actor"].items()}
    assert before["network.0.count"] == sum(row["steps"] for row in session.rows)
    policy = load_policy(session.state, session.envs, CONFIG)
    for _ in range(3):
        policy(np.ones((4, 4), np.float32))
    torch.testing.assert_close(dict(session.state["actor"]), before, rtol=0.0, atol=0.0)


def test_a2c_normalizes_too() -> None:
    session = FakeSession("CartPole-v1")
    config = A2CConfig(updates=2, rollout_steps=16, hidden_sizes=(8,), normalize_observations=True)
    a2c.train(session, config)
    assert session.state["critic"]["0.count"] == sum(row["steps"] for row in session.rows)
    load_policy(session.state, session.envs, config)(np.zeros((4, 4), np.float32))


def test_draws_in_the_observation_are_not_normalized() -> None:
    native = gym.make_vec("gym_dr/LunarLanderDR-v3", 2, num_threads=1, context="observation")
    wrapped = DrawContext(gym.make_vec("gym_dr/LunarLanderDR-v3", 2, num_threads=1), "observation")
    for envs in (native, wrapped):
        draws = envs.single_observation_space.shape[0] - 8
        assert shown_columns(envs) == draws > 0
        agent = ppo.make_agent(envs, CONFIG, 1, "cpu")
        assert agent.observation_moments is not None
        assert agent.observation_moments.mean.shape == (8,)
        assert linear_layers(agent.critic)[0].in_features == 8 + draws
        envs.close()
