from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr import EpisodeRecord, RecordDraws
from gym_dr.errors import CheckpointError, RandomizationError, TrainingError
from gym_dr.training.a2c import A2C, load_policy, make_batch, train
from gym_dr.training.config import A2CConfig
from gym_dr.training.networks import linear_layers
from gym_dr.training.rollout import Rollout, RolloutCollector
from tests.training.fake_session import FakeSession

CONFIG = A2CConfig(
    updates=3, rollout_steps=16, hidden_sizes=(8,), schedule="constant", normalize_advantages=False, reward_scale=1.0
)


def weights(state: Any) -> list[list[float]]:
    return [p.flatten().tolist() for name in ("actor", "critic") for p in state[name].values()]


def known_rollout() -> Rollout:
    """Two steps, two sub-environments; the second one's second step is a reset."""
    return Rollout(
        observations=torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]),
        actions=torch.tensor([[0, 1], [1, 0]]),
        rewards=np.array([[1.0, 2.0], [3.0, 0.0]], dtype=np.float32),
        terminated=np.array([[False, True], [False, False]]),
        truncated=np.zeros((2, 2), dtype=bool),
        valid=np.array([[True, True], [True, False]]),
    )


VALUES = known_rollout().observations[..., 0]  # a critic that repeats the observation


def test_reset_steps_are_left_out_of_the_batch() -> None:
    batch = make_batch(known_rollout(), VALUES, CONFIG)
    assert batch.observations.flatten().tolist() == [1.0, 2.0, 3.0]
    assert batch.actions.tolist() == [0, 1, 1]


def test_advantages_and_returns_of_a_known_rollout() -> None:
    # values are the observations; gamma 0.5, lambda 1
    # env 0: delta_1 = 3 + 0.5*5 - 3 = 2.5; delta_0 = 1 + 0.5*3 - 1 = 1.5; A_0 = 1.5 + 0.5*2.5 = 2.75
    # env 1: terminates at once: 2 - 2 = 0
    config = replace(CONFIG, gamma=0.5, gae_lambda=1.0)
    batch = make_batch(known_rollout(), VALUES, config)
    assert batch.advantages.tolist() == [2.75, 0.0, 2.5]
    assert batch.returns.tolist() == [3.75, 2.0, 5.5]  # advantage + value


def test_rewards_are_scaled_for_the_advantages() -> None:
    # env 0 as above with rewards 0.1 and 0.3: delta_1 = 0.3 + 2.5 - 3 = -0.2; delta_0 = 0.1 + 1.5 - 1 = 0.6
    config = replace(CONFIG, gamma=0.5, gae_lambda=1.0, reward_scale=0.1)
    batch = make_batch(known_rollout(), VALUES, config)
    assert batch.advantages.tolist() == pytest.approx([0.5, -1.8, -0.2])


def test_normalised_advantages_have_mean_0_and_deviation_1() -> None:
    config = replace(CONFIG, normalize_advantages=True)
    batch = make_batch(known_rollout(), VALUES, config)
    assert batch.advantages.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert batch.advantages.std(correction=0).item() == pytest.approx(1.0, rel=1e-5)


def agent(seed: int = 1, **changes: Any) -> A2C:
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    return A2C(envs, replace(CONFIG, **changes), seed, "cpu")


def cart_pole_rollout() -> Rollout:
    torch.manual_seed(0)
    return Rollout(
        observations=torch.randn(5, 2, 4),
        actions=torch.randint(2, (4, 2)),
        rewards=np.ones((4, 2), dtype=np.float32),
        terminated=np.zeros((4, 2), dtype=bool),
        truncated=np.zeros((4, 2), dtype=bool),
        valid=np.ones((4, 2), dtype=bool),
    )


def test_the_losses_are_those_of_the_paper() -> None:
    made, rollout = agent(entropy_coef=0.1), cart_pole_rollout()
    batch = make_batch(rollout, made.value(rollout.observations).detach(), made.config)
    policy = torch.distributions.Categorical(logits=made.actor.network(batch.observations))
    expected_policy = -(batch.advantages * policy.log_prob(batch.actions)).mean()
    expected_actor = expected_policy - 0.1 * policy.entropy().mean()
    expected_critic = ((batch.returns - made.critic(batch.critic_inputs).squeeze(-1)) ** 2).mean()
    losses = made.update(rollout)
    assert losses["actor_loss"] == pytest.approx(expected_actor.item(), rel=1e-5)
    assert losses["critic_loss"] == pytest.approx(expected_critic.item(), rel=1e-5)
    assert losses["entropy"] == pytest.approx(policy.entropy().mean().item(), rel=1e-5)


def test_the_actors_gradient_does_not_flow_into_the_critic() -> None:
    made, rollout = agent(), cart_pole_rollout()
    batch = make_batch(rollout, made.value(rollout.observations).detach(), made.config)
    log_probs, _ = made.actor.log_prob_and_entropy(batch.observations, batch.actions)
    (batch.advantages * log_probs).mean().backward()
    assert all(p.grad is None for p in made.critic.parameters())
    assert all(p.grad is not None for p in made.actor.parameters())


def test_a_linear_schedule_takes_learning_rates_and_entropy_bonus_to_0() -> None:
    made = agent(updates=4, schedule="linear", entropy_coef=0.1, actor_lr=0.4, critic_lr=0.8)
    rates, weights_of_entropy = [], []
    for update in range(4):
        made.schedule(update)
        weights_of_entropy.append(made.entropy_coef)
        rates.append([optimizer.param_groups[0]["lr"] for optimizer in (made.actor_optimizer, made.critic_optimizer)])
    assert rates == [[0.4, 0.8], pytest.approx([0.3, 0.6]), [0.2, 0.4], [0.1, 0.2]]
    assert weights_of_entropy == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_orthogonal_weights_have_orthogonal_rows_or_columns_and_hardly_prefer_an_action() -> None:
    made = agent(init="orthogonal", hidden_sizes=(8, 8))
    first, second, last = (layer.weight for layer in linear_layers(made.actor.network))
    torch.testing.assert_close(first.T @ first, 2.0 * torch.eye(4))  # 8 x 4: columns, of squared length 2
    torch.testing.assert_close(second @ second.T, 2.0 * torch.eye(8))
    torch.testing.assert_close(last @ last.T, 1e-4 * torch.eye(2))
    assert all(not layer.bias.any() for layer in linear_layers(made.critic))


def test_a_critic_with_context_sees_the_draw_in_force_and_the_actor_does_not() -> None:
    envs = gym.make_vec(
        "gym_dr/LunarLanderDR-v3", 3, randomization={"gravity": (-12, -8), "wind_power": (0, 20)}, num_threads=1
    )
    config = replace(CONFIG, critic_context=True, rollout_steps=200)
    made = A2C(envs, config, 1, "cpu")
    assert [linear_layers(n)[0].in_features for n in (made.actor.network, made.critic)] == [8, 10]
    records: list[EpisodeRecord] = []
    recorded = RecordDraws(envs, records.append)
    collector = RolloutCollector(recorded, 200, "cpu", made.shown)
    collector.reset(3)
    rollout = collector.collect(made.sampler)
    assert rollout.context is not None
    assert rollout.context.shape == (201, 3, 2)
    # gravity in -12 to -8 becomes -0.25 to 0.25; at an episode's end its own draw is still in force
    gravity = rollout.context[..., 0].numpy() * 8.0 - 10.0
    ends = np.argwhere(rollout.terminated | rollout.truncated)
    assert len(ends) == len(records) >= 3
    for (t, i), record in zip(ends, records, strict=True):
        assert record.env_index == i
        np.testing.assert_allclose(gravity[t + 1, i], record.params["gravity"], rtol=1e-6)  # the final observation
        if t + 2 <= 200:
            assert abs(gravity[t + 2, i] - gravity[t + 1, i]) > 1e-6  # after the reset step
    assert set(made.update(rollout)) == {"actor_loss", "critic_loss", "entropy"}
    envs.close()


def test_stepping_and_playing_show_the_critic_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = []
    for plays in (True, False):
        monkeypatch.setattr("gym_dr.training.rollout.supports", lambda envs, capability, plays=plays: plays)
        envs = gym.make_vec("gym_dr/LunarLanderDR-v3", 3, num_threads=1)
        made = A2C(envs, replace(CONFIG, critic_context=True), 1, "cpu")
        collector = RolloutCollector(envs, 300, "cpu", made.shown)
        collector.reset(3)
        contexts.append(collector.collect(made.sampler).context)
        envs.close()
    assert torch.equal(*contexts)


def test_a_critic_with_context_needs_draws() -> None:
    envs = gym.make_vec("gym_dr/LunarLanderDR-v3", 2, randomization="none")
    with pytest.raises(RandomizationError, match="Randomize one"):
        A2C(envs, replace(CONFIG, critic_context=True), 1, "cpu")
    envs.close()


def test_clipping_bounds_each_networks_gradient() -> None:
    made = agent(max_grad_norm=0.01)
    made.update(cart_pole_rollout())
    for network in (made.actor, made.critic):
        norm = torch.sqrt(sum((p.grad**2).sum() for p in network.parameters() if p.grad is not None))
        assert norm.item() == pytest.approx(0.01, rel=1e-3)


def test_a_loss_that_is_not_finite_leaves_the_networks_alone() -> None:
    made, rollout = agent(), cart_pole_rollout()
    before = [p.clone() for p in made.actor.parameters()]
    rollout.rewards[0, 0] = np.inf
    with pytest.raises(TrainingError, match="not finite"):
        made.update(rollout)
    assert all(torch.equal(a, b) for a, b in zip(before, made.actor.parameters(), strict=True))


def test_the_same_seed_gives_the_same_weights_whatever_torchs_global_state() -> None:
    runs = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        session = FakeSession("gym_dr/LunarLanderDR-v3")
        train(session, CONFIG)
        runs.append((weights(session.state), session.rows))
    assert runs[0] == runs[1]


def test_other_seeds_give_other_weights() -> None:
    assert weights(agent(1).state()) != weights(agent(2).state())


def test_building_an_agent_leaves_torchs_global_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    agent()
    assert torch.equal(torch.rand(1), expected)


def test_training_goes_on_from_saved_state_to_the_same_result() -> None:
    config = replace(CONFIG, updates=4)
    whole = FakeSession("gym_dr/LunarLanderDR-v3", segment=2)
    train(whole, config)
    first = FakeSession("gym_dr/LunarLanderDR-v3", segment=2)
    train(first, replace(config, updates=2))
    second = FakeSession("gym_dr/LunarLanderDR-v3", segment=2)
    second.restored, second.first_update = dict(first.state), 2
    train(second, config)
    assert weights(second.state) == weights(whole.state)
    assert first.rows + second.rows == whole.rows


def test_steps_counted_are_those_that_were_played() -> None:
    session = FakeSession("CartPole-v1", num_envs=8)
    train(session, replace(CONFIG, updates=2, rollout_steps=64))
    resets = len(session.episodes)
    total = sum(row["steps"] for row in session.rows)
    # every finished episode costs one reset step, but for those that ended with the very last step
    assert 2 * 64 * 8 - resets <= total <= 2 * 64 * 8 - resets + 8


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderContinuousDR-v3", "Pendulum-v1"])
def test_continuous_actions_train(env_id: str) -> None:
    session = FakeSession(env_id)
    train(session, CONFIG)
    assert all(np.isfinite(row["actor_loss"]) for row in session.rows)
    policy = load_policy(session.state, session.envs, CONFIG)
    actions = policy(session.envs.reset(seed=0)[0])
    assert all(session.envs.single_action_space.contains(action) for action in actions)


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
