from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr import EpisodeRecord, RecordEpisodes
from gym_dr.errors import CheckpointError, ConfigError, NotFiniteError, TrainingError
from gym_dr.training import a2c, ppo, reinforce
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.api import TrainedNetworks
from gym_dr.training.config import A2CConfig, AgentConfig, PPOConfig, ReinforceConfig
from gym_dr.training.networks import linear_layers
from gym_dr.training.optimizers import without_compiler
from gym_dr.training.rollout import RolloutCollector
from tests.training.fake_session import FakeSession
from tests.training.rollouts import batch_of

DEFAULTS: dict[str, Any] = {"hidden_sizes": (8,), "entropy_coef": 0.1, "max_grad_norm": 0.0}
OPTIMIZERS: dict[str, Any] = {
    "make_optimizer": without_compiler(torch.optim.AdamW),
    "actor_lr": 0.4,
    "critic_lr": 0.8,
}
TWO_PARAMS = {"gravity": (-12, -8), "lander_density": (4, 6)}


def agent(envs: Any = None, seed: int = 1, **changes: Any) -> ActorCritic:
    envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync") if envs is None else envs
    memory = {"memory": "gru"} if changes.get("memory_size") else {}
    options = {name: value for name, value in changes.items() if name not in OPTIMIZERS}
    optimizers = {name: changes.get(name, value) for name, value in OPTIMIZERS.items()}
    config = AgentConfig()
    vars(config).update({**DEFAULTS, **memory, **options})
    return ActorCritic(envs, config, seed, "cpu", **optimizers)


def loss_of(made: ActorCritic) -> torch.Tensor:
    return made.actor.network(torch.ones(1, 4)).pow(2).sum() + made.value(torch.ones(1, 4)).pow(2).sum()


def weights(state: Any) -> list[list[float]]:
    names = [name for name in ("actor", "critic", "critic_memory") if name in state]
    return [p.flatten().tolist() for name in names for p in state[name].values()]


def test_a_linear_schedule_takes_learning_rates_and_entropy_bonus_to_0() -> None:
    made = agent()
    rates, coefficients = [], []
    for update in range(4):
        made.anneal("linear", update / 4)
        coefficients.append(made.entropy_coef)
        rates.append([optimizer.param_groups[0]["lr"] for optimizer in (made.actor_optimizer, made.critic_optimizer)])
    assert rates == [[0.4, 0.8], pytest.approx([0.3, 0.6]), [0.2, 0.4], [0.1, 0.2]]
    assert coefficients == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_a_constant_schedule_changes_nothing() -> None:
    made = agent()
    made.anneal("constant", 0.75)
    assert (made.entropy_coef, made.actor_optimizer.param_groups[0]["lr"]) == (0.1, 0.4)


def test_orthogonal_weights_have_orthogonal_rows_or_columns_and_hardly_prefer_an_action() -> None:
    made = agent(init="orthogonal", hidden_sizes=(8, 8))
    first, second, last = (layer.weight for layer in linear_layers(made.actor.network))
    torch.testing.assert_close(first.T @ first, 2.0 * torch.eye(4))  # 8 x 4: columns, of squared length 2
    torch.testing.assert_close(second @ second.T, 2.0 * torch.eye(8))
    torch.testing.assert_close(last @ last.T, 1e-4 * torch.eye(2))
    assert all(not layer.bias.any() for layer in linear_layers(made.critic))


def test_building_an_agent_leaves_torchs_global_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    agent()
    assert torch.equal(torch.rand(1), expected)


def test_other_seeds_give_other_weights() -> None:
    assert weights(agent(seed=1).state()) != weights(agent(seed=2).state())


def test_clipping_bounds_each_networks_gradient() -> None:
    made = agent(max_grad_norm=0.01)
    made.gradient_step(loss_of(made))
    for network in (made.actor, made.critic):
        norm = torch.stack([p.grad.square().sum() for p in network.parameters() if p.grad is not None]).sum().sqrt()
        assert norm.item() == pytest.approx(0.01, rel=1e-3)


def test_a_network_that_the_loss_does_not_use_stays() -> None:
    made = agent()  # whose optimizer would make weights smaller even without a gradient
    before = [p.clone() for p in made.critic.parameters()]
    made.gradient_step(made.actor.network(torch.ones(1, 4)).sum())
    assert all(torch.equal(p, q) for p, q in zip(made.critic.parameters(), before, strict=True))
    assert made.critic_optimizer.state_dict()["state"] == {}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda loss: loss * math.nan, "The loss is not finite: nan"),
        (lambda loss: (loss * 0).sqrt(), "A gradient is not finite"),  # 0, with a slope that is not a number
    ],
    ids=["loss", "gradient"],
)
def test_a_loss_or_gradient_that_is_not_finite_changes_nothing(broken: Callable[[Any], Any], message: str) -> None:
    made = agent()
    before = weights(made.state())
    with pytest.raises(NotFiniteError, match=message):
        made.gradient_step(broken(loss_of(made)))
    assert weights(made.state()) == before


def test_a_weight_that_is_not_finite_is_no_update_that_could_be_skipped() -> None:
    made = agent(make_optimizer=without_compiler(torch.optim.SGD), actor_lr=1e38)
    with pytest.raises(TrainingError, match="A weight is not finite") as error:
        made.gradient_step(1e30 * loss_of(made))
    assert not isinstance(error.value, NotFiniteError)


@pytest.mark.parametrize(
    "missing", ["actor", "critic", "critic_memory", "actor_optimizer", "critic_optimizer", "generator"]
)
def test_saved_state_that_lacks_something_is_refused(missing: str) -> None:
    state = agent(memory_size=5).state()
    del state[missing]
    with pytest.raises(CheckpointError, match="do not fit this configuration"):
        agent(memory_size=5).load_state(state)


@pytest.mark.parametrize(("saved", "made"), [(0, 5), (5, 0), (5, 6)])
def test_a_memory_of_another_size_is_refused(saved: int, made: int) -> None:
    with pytest.raises(CheckpointError, match="'actor' do not fit this configuration"):
        agent(memory_size=made).load_state(agent(memory_size=saved).state())


def test_a_critic_with_context_sees_the_current_draw_and_the_actor_does_not() -> None:
    envs = gym.make_vec("gym_dr/LunarLanderDR-v3", 3, randomization=TWO_PARAMS, num_threads=1)
    made = agent(envs, critic_context=True)
    assert [linear_layers(n)[0].in_features for n in (made.actor.network, made.critic)] == [8, 10]
    records: list[EpisodeRecord] = []
    recorded = RecordEpisodes(envs, records.append)
    collector = RolloutCollector(recorded, 200, "cpu", made.critic_context)
    collector.reset(3)
    rollout = collector.collect(made.behavior)
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
    assert set(a2c.learn(made, batch_of(made, rollout, A2CConfig()), A2CConfig())) == {
        "actor_loss",
        "critic_loss",
        "entropy",
    }
    envs.close()


A2C = A2CConfig(updates=4, rollout_steps=16, minibatches=2, hidden_sizes=(8,))
REINFORCE = ReinforceConfig(updates=4, hidden_sizes=(8,))
PPO = PPOConfig(updates=4, rollout_steps=16, epochs=2, minibatches=2, hidden_sizes=(8,))
MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 5, "sequence_length": 8}


@pytest.mark.parametrize(
    ("train", "config"),
    [(a2c.train, A2C), (ppo.train, PPO), (ppo.train, replace(PPO, **MEMORY)), (reinforce.train, REINFORCE)],
    ids=["a2c", "ppo", "ppo-memory", "reinforce"],
)
def test_the_same_seed_gives_the_same_weights_whatever_torchs_global_state(
    train: Callable[..., None], config: Any
) -> None:
    runs = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        session = FakeSession("gym_dr/LunarLanderContinuousDR-v3", num_envs=2)
        train(session, replace(config, updates=2))
        runs.append((weights(session.state), session.rows))
    assert runs[0] == runs[1]


# ---- Going on from another run


def trained(made: ActorCritic) -> TrainedNetworks:
    return TrainedNetworks(source="runs/a", options=None, state=made.state(), context_ranges=None)


def learned(**changes: Any) -> ActorCritic:
    """An agent whose weights, moments and optimizers are not those of a new one."""
    made = agent(seed=2, memory_size=5, normalize_observations=True, normalize_rewards=True, **changes)
    for optimizer in (made.actor_optimizer, made.critic_optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    assert made.observation_moments is not None
    assert made.reward_moments is not None
    made.observation_moments.update(torch.full((3, 4), 7.0))
    made.reward_moments.update(torch.full((3, 1), 5.0))
    return made


def test_it_goes_on_with_weights_and_moments_but_with_fresh_optimizers_and_its_own_random_numbers() -> None:
    kwargs: dict[str, Any] = {"memory_size": 5, "normalize_observations": True}
    made, other = agent(normalize_rewards=True, **kwargs), learned()
    own = made.generator.get_state()
    made.start_from(trained(other))
    for name in ("actor", "critic", "critic_memory", "reward_moments"):
        torch.testing.assert_close(made.state()[name], other.state()[name], rtol=0.0, atol=0.0)
    assert made.state()["actor"]["network.0.mean"].tolist() == [7.0] * 4
    assert made.reward_scale == other.reward_scale != 1.0
    assert made.actor_optimizer.state_dict()["state"] == made.critic_optimizer.state_dict()["state"] == {}
    assert torch.equal(made.generator.get_state(), own)


def test_what_predicts_the_draw_goes_on_if_both_runs_predict_it() -> None:
    envs = gym.make_vec("gym_dr/LunarLanderDR-v3", 2, randomization=TWO_PARAMS)
    kwargs: dict[str, Any] = {"memory_size": 5, "predict_draw": 0.5}
    other = agent(envs, seed=2, **kwargs)
    made, alone = agent(envs, **kwargs), agent(envs, memory_size=5)
    new = made.state()["predictor"]["weight"].clone()
    made.start_from(trained(alone))
    assert torch.equal(made.state()["predictor"]["weight"], new)
    made.start_from(trained(other))
    assert torch.equal(made.state()["predictor"]["weight"], other.state()["predictor"]["weight"])
    envs.close()


def test_networks_that_do_not_fit_are_refused_and_change_nothing() -> None:
    made, other = agent(), agent(seed=2)
    before = weights(made.state())
    state = {**other.state(), "critic": agent(hidden_sizes=(9,)).state()["critic"]}  # after an actor that fits
    with pytest.raises(ConfigError, match=r"init: runs/a: its observations.*differ: .*'critic' do not fit"):
        made.start_from(replace(trained(other), state=state))
    assert weights(made.state()) == before
