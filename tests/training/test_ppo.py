from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest
import torch

from gym_dr.errors import NotFiniteError, TrainingError
from gym_dr.training import epochs, ppo
from gym_dr.training.actor_critic import ActorCritic, load_policy
from gym_dr.training.config import PPOConfig
from gym_dr.training.networks import STD_FLOOR, CategoricalActor
from gym_dr.training.ppo import LOSSES, learn, make_agent, train
from gym_dr.training.returns import gae
from gym_dr.training.rollout import Rollout, RolloutCollector
from tests.training.fake_session import FakeSession
from tests.training.rollouts import batch_of, learned_as_torch_does, learned_from

CONFIG = PPOConfig(
    updates=3,
    rollout_steps=16,
    epochs=2,
    minibatches=4,
    hidden_sizes=(8,),
    schedule="constant",
    normalize_observations=False,
    normalize_rewards=False,
)
Weights = dict[str, npt.NDArray[np.float64]]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("CartPole-v1", {}),
    "discrete, relu": ("CartPole-v1", {"activation": "relu"}),
    "values clipped": ("CartPole-v1", {"value_clip": 0.05}),
    "advantages as they are": ("CartPole-v1", {"normalize_advantages": False}),
    "continuous": ("Pendulum-v1", {}),
    "deviation by observation": ("Pendulum-v1", {"state_dependent_std": True}),
    "normalized": ("Pendulum-v1", {"normalize_observations": True, "normalize_rewards": True}),
}


def fixed_rollout(envs: Any, steps: int = 6) -> Rollout:
    """A rollout with ends and reset steps, of noise."""
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    terminated, truncated = np.zeros((2, steps, 2), bool)
    valid = ~terminated
    terminated[1, 0], truncated[3, 1] = True, True
    valid[2, 0], valid[4, 1] = False, False
    discrete = isinstance(envs.single_action_space, gym.spaces.Discrete)
    return Rollout(
        observations=torch.randn(steps + 1, 2, envs.single_observation_space.shape[0]),
        actions=torch.randint(2, (steps, 2)) if discrete else torch.randn(steps, 2, 1),
        log_probs=torch.zeros(steps, 2),
        rewards=(rng.normal(size=(steps, 2)) * valid).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        valid=valid,
    )


def made(name: str, **changes: Any) -> tuple[ActorCritic, Rollout, PPOConfig]:
    env_id, options = CASES[name]
    small: dict[str, Any] = {"epochs": 1, "minibatches": 1, "hidden_sizes": (3,), "entropy_coef": 0.1}
    config = replace(CONFIG, **{**small, **options, **changes})
    envs = gym.make_vec(env_id, 2, vectorization_mode="sync")
    agent, rollout = make_agent(envs, config, 1, "cpu"), fixed_rollout(envs)
    with torch.no_grad():  # the first weights of the last layers are near 0
        for parameter in [*agent.actor.parameters(), *agent.critic.parameters()]:
            parameter += 0.3 * torch.randn(parameter.shape)
    agent.observe_rewards(rollout, fresh=True)
    agent.observe_observations(rollout)
    return agent, rollout, config


# ---- The reference: plain Python in float64, a transition at a time, with nothing of what it checks but gae.


def network(weights: Weights, prefix: str, x: Any, activation: str) -> Any:
    """A multilayer perceptron by the names that torch gives its weights."""
    layers = sorted({name.rsplit(".", 1)[0] for name in weights if name.startswith(prefix) and name.endswith(".bias")})
    if f"{prefix}0.mean" in weights:
        x = (x - weights[f"{prefix}0.mean"]) / np.maximum(np.sqrt(weights[f"{prefix}0.variance"]), 0.01)
    for layer in layers:
        x = weights[f"{layer}.weight"] @ x + weights[f"{layer}.bias"]
        if layer != layers[-1]:
            x = np.tanh(x) if activation == "tanh" else np.maximum(x, 0.0)
    return x


def log_prob_and_entropy(weights: Weights, x: Any, action: Any, config: PPOConfig) -> tuple[float, float]:
    out = network(weights, "actor.network.", x, config.activation)
    if np.ndim(action) == 0:
        probabilities = np.exp(out) / np.exp(out).sum()
        return math.log(probabilities[action]), float(-sum(p * math.log(p) for p in probabilities))
    if config.state_dependent_std:
        mean, std = out[:1], np.log1p(np.exp(out[1:])) + STD_FLOOR
    else:
        mean, std = out, np.exp(weights["actor.log_std"])
    log_prob = sum(
        -((a - m) ** 2) / (2 * s**2) - math.log(s * math.sqrt(2 * math.pi))
        for a, m, s in zip(action, mean, std, strict=True)
    )
    return float(log_prob), float(sum(0.5 + 0.5 * math.log(2 * math.pi * s**2) for s in std))


def slow_losses(weights: Weights, old: Weights, rollout: Rollout, config: PPOConfig) -> tuple[float, float]:
    """Losses of actor and critic with ``weights``, of a rollout played with ``old``, as one minibatch."""
    observations = rollout.observations.double().numpy()
    values = np.array([[network(old, "critic.", x, config.activation)[0] for x in row] for row in observations])
    scale = 1.0 / max(math.sqrt(old["reward_moments.variance"][0]), 0.01) if "reward_moments.mean" in old else 1.0
    estimated = gae(
        (rollout.rewards * scale).astype(np.float64),  # type: ignore[arg-type]  # float64, to be exact
        values[:-1],
        values[1:],
        rollout.terminated,
        rollout.truncated,
        rollout.valid,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
    )
    counted = list(zip(*np.nonzero(rollout.valid), strict=True))
    advantages = np.array([estimated[step] for step in counted])
    if config.normalize_advantages:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    actor_loss = critic_loss = 0.0
    for step, advantage in zip(counted, advantages, strict=True):
        x, action = observations[:-1][step], rollout.actions.numpy()[step]
        log_prob, entropy = log_prob_and_entropy(weights, x, action, config)
        ratio = math.exp(log_prob - log_prob_and_entropy(old, x, action, config)[0])
        clipped = min(max(ratio, 1 - config.clip_range), 1 + config.clip_range)
        actor_loss -= min(ratio * advantage, clipped * advantage) + config.entropy_coef * entropy
        value = network(weights, "critic.", x, config.activation)[0]
        target = values[:-1][step] + estimated[step]
        error = (value - target) ** 2
        if config.value_clip:
            moved = min(max(value - values[:-1][step], -config.value_clip), config.value_clip)
            error = max(error, (values[:-1][step] + moved - target) ** 2)
        critic_loss += error
    return actor_loss / len(counted), critic_loss / len(counted)


def weights_of(agent: ActorCritic) -> Weights:
    state = agent.state()
    names = [name for name in ("actor", "critic", "reward_moments") if name in state]
    return {f"{name}.{key}": value.double().numpy().copy() for name in names for key, value in state[name].items()}


def slow_gradients(weights: Weights, old: Weights, rollout: Rollout, config: PPOConfig) -> Weights:
    """By central differences, weight by weight."""
    found = {}
    for name, values in weights.items():
        if name.rsplit(".")[-1] not in ("weight", "bias", "log_std"):
            continue
        found[name] = np.zeros_like(values)
        for index in np.ndindex(values.shape):
            sides = []
            for change in (1e-5, -1e-5):
                moved = {**weights, name: values.copy()}
                moved[name][index] += change
                sides.append(sum(slow_losses(moved, old, rollout, config)))
            found[name][index] = (sides[0] - sides[1]) / 2e-5
    return found


# ---- What is checked


@pytest.fixture
def by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "CompiledBehavior", ())


def second_step(agent: ActorCritic, rollout: Rollout, config: PPOConfig) -> tuple[dict[str, float], Weights, Weights]:
    """Two epochs of one minibatch, of which the second has ratios other than 1.

    Returns:
        The losses of the second, the weights that it saw, and the gradients that it found.
    """
    seen: list[tuple[Weights, Weights]] = []
    step = agent.gradient_step

    def watch(loss: torch.Tensor) -> None:
        before = weights_of(agent)
        step(loss)
        grads = {
            f"{name}.{key}": parameter.grad.double().numpy().copy()
            for name, module in (("actor", agent.actor), ("critic", agent.critic))
            for key, parameter in module.named_parameters()
            if parameter.grad is not None
        }
        seen.append((before, grads))

    agent.gradient_step = watch  # type: ignore[method-assign]  # a spy
    both = learn(agent, batch_of(agent, rollout, config), replace(config, epochs=2))
    assert len(seen) == 2
    return both, *seen[1]


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_are_those_of_the_reference(name: str, by_torch: None) -> None:
    agent, rollout, config = made(name, max_grad_norm=0.0, lr=0.15, clip_range=0.1)  # so far that ratios are clipped
    old = weights_of(agent)
    both, weights, gradients = second_step(agent, rollout, config)
    first, second = slow_losses(old, old, rollout, config), slow_losses(weights, old, rollout, config)
    assert both["actor_loss"] == pytest.approx((first[0] + second[0]) / 2, rel=1e-4, abs=1e-5)
    assert both["critic_loss"] == pytest.approx((first[1] + second[1]) / 2, rel=1e-4)
    assert both["clip_fraction"] > 0.0
    expected = slow_gradients(weights, old, rollout, config)
    assert expected.keys() == gradients.keys()
    for key, gradient in expected.items():
        np.testing.assert_allclose(gradients[key], gradient, rtol=2e-3, atol=2e-5, err_msg=key)


@pytest.mark.parametrize(
    ("name", "steps"), [*((name, 6) for name in CASES), ("discrete", 100), ("normalized", 100)]
)  # less and more than a block
def test_compiled_gradients_are_those_of_torch(name: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[ActorCritic, Any, PPOConfig]:
        agent, _, config = made(name, epochs=2, lr=0.01, hidden_sizes=(16, 8), minibatches=1 if steps > 6 else 2)
        rollout = fixed_rollout(gym.make_vec(CASES[name][0], 2, vectorization_mode="sync"), steps)
        return agent, batch_of(agent, rollout, config), config

    learned_as_torch_does(ppo, make, monkeypatch)


def test_the_first_minibatch_of_an_update_has_ratios_of_1() -> None:
    agent, _, config = made("continuous")
    collector = RolloutCollector(gym.make_vec("Pendulum-v1", 2, vectorization_mode="sync"), 6, "cpu")
    collector.reset(seed=1)
    losses = learn(agent, learned_from(agent, collector.collect(agent.behavior), config), config)
    assert losses["approx_kl"] == pytest.approx(0.0, abs=1e-6)
    assert losses["clip_fraction"] == 0.0


def count_steps(agent: ActorCritic, rollout: Rollout, config: PPOConfig) -> float:
    learn(agent, batch_of(agent, rollout, config), config)
    return float(next(iter(agent.actor_optimizer.state.values()))["step"])


def test_every_epoch_has_all_minibatches() -> None:
    agent, rollout, config = made("discrete", epochs=3, minibatches=5)  # 10 steps count
    assert count_steps(agent, rollout, config) == 15


def test_no_epoch_follows_one_that_went_too_far() -> None:
    agent, rollout, config = made("discrete", epochs=5, minibatches=2, lr=0.1, target_kl=0.01)
    assert 2 <= count_steps(agent, rollout, config) < 10


def test_a_reward_that_is_not_finite_leaves_the_networks_alone() -> None:
    agent, rollout, config = made("discrete")
    before = weights_of(agent)
    rollout.rewards[0, 0] = np.inf
    with pytest.raises(NotFiniteError):
        learn(agent, batch_of(agent, rollout, config), config)
    assert all(np.array_equal(before[name], value) for name, value in weights_of(agent).items())


def test_weights_that_are_not_finite_end_the_training() -> None:
    agent, rollout, config = made("discrete", lr=1e38)
    with pytest.raises(TrainingError, match="A weight is not finite"):
        learn(agent, batch_of(agent, rollout, config), replace(config, epochs=3))


def test_continuous_actions_train_with_deviations_by_observation_and_torchs_weights() -> None:
    session = FakeSession("gym_dr/LunarLanderContinuousDR-v3")
    options: dict[str, Any] = {"state_dependent_std": True, "activation": "relu", "init": "torch"}
    config = replace(CONFIG, normalize_observations=True, normalize_rewards=True, **options)
    train(session, config)
    assert all(np.isfinite(row[name]) for row in session.rows for name in LOSSES)
    policy = load_policy(session.state, session.envs, config)
    actions = policy(session.envs.reset(seed=0)[0])
    assert all(session.envs.single_action_space.contains(action) for action in actions)


@pytest.mark.parametrize("state_dependent_std", [False, True])
def test_continuous_actions_begin_with_the_initial_deviation(state_dependent_std: bool) -> None:
    config = replace(CONFIG, initial_std=0.3, state_dependent_std=state_dependent_std)
    agent = make_agent(gym.make_vec("Pendulum-v1", 1, vectorization_mode="sync"), config, 1, "cpu")
    assert not isinstance(agent.actor, CategoricalActor)
    _, std = agent.actor.distribution(torch.zeros(1, 3))
    expected = 0.6 if state_dependent_std else 0.3  # torques are -2..2, to which the other actor's are scaled later
    assert std.item() == pytest.approx(expected, rel=0.01)


def test_it_learns_to_balance_a_pole() -> None:
    session = FakeSession("CartPole-v1", num_envs=8)
    train(session, PPOConfig(updates=30, rollout_steps=64, epochs=4, minibatches=4, gamma=0.98, lr=0.003))
    # a random policy balances for 22 steps
    assert np.mean([episode.length for episode in session.episodes[-20:]]) > 80


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("changes", [{}, {"memory": "gru", "memory_size": 8, "sequence_length": 8}])
def test_it_trains_on_cuda(changes: dict[str, Any]) -> None:
    session = FakeSession("gym_dr/LunarLanderContinuousDR-v3")
    session.device = "cuda"
    train(session, replace(CONFIG, normalize_observations=True, normalize_rewards=True, **changes))
    assert all(p.device.type == "cuda" for p in session.state["actor"].values())
    assert all(np.isfinite(row["critic_loss"]) for row in session.rows)
