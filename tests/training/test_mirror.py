"""A policy averaged with its mirror image, where the environment declares one, in torch and in compiled code."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv

from gym_dr.compiled.threads import Threads
from gym_dr.envs.mirror import mirror_of
from gym_dr.training import a2c, distill, epochs, ppo, reinforce
from gym_dr.training.actor_critic import ActorCritic, load_policy
from gym_dr.training.behavior import CompiledBehavior, TorchBehavior, draw_noise
from gym_dr.training.config import A2CConfig, DistillConfig, PPOConfig, ReinforceConfig
from gym_dr.training.rollout import RolloutCollector
from tests.envs import sided
from tests.training.rollouts import acted, learned_as_torch_does, learned_from

SMALL: dict[str, Any] = {"rollout_steps": 30, "hidden_sizes": (9, 7), "entropy_coef": 0.1}
EPOCHS: dict[str, Any] = {**SMALL, "epochs": 2, "minibatches": 2}
CASES: dict[str, tuple[Any, Any]] = {
    "ppo": (ppo, PPOConfig(**EPOCHS)),
    "ppo, deviation by observation": (ppo, PPOConfig(**EPOCHS, state_dependent_std=True, activation="elu")),
    "a2c": (a2c, A2CConfig(**SMALL)),
    "distill": (distill, DistillConfig(**EPOCHS)),
    "distill, deviation by observation": (distill, DistillConfig(**EPOCHS, state_dependent_std=True)),
}


def make_envs(num_envs: int = 8) -> Any:
    return SyncVectorEnv([sided.make] * num_envs)


def shaken(agent: ActorCritic) -> ActorCritic:
    """With other weights and moments; the first ones of the last layers are near 0."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in [*agent.actor.parameters(), *agent.critic.parameters()]:
            weights += 0.3 * torch.randn(weights.shape)
    if agent.observation_moments is not None:
        agent.observation_moments.update(torch.randn(50, 4) * 3.0 + 1.0)
    return agent


def agent_of(name: str) -> ActorCritic:
    module, config = CASES[name]
    make = getattr(module, "make_agent", distill.adam_agent)
    return shaken(make(make_envs(), config, 1, "cpu"))


def observed(count: int = 200) -> Any:
    return np.random.default_rng(0).standard_normal((count, 4), np.float32)


@pytest.mark.parametrize("name", CASES)
def test_the_mirror_image_of_an_observation_gets_that_of_the_action(name: str) -> None:
    actor, mirror = agent_of(name).actor, mirror_of(make_envs())
    assert mirror is not None
    seen = observed()
    mirrored = torch.from_numpy(seen[:, mirror.observation_places] * mirror.observation_signs)
    (mean, std), (images, deviations) = (actor.distribution(each) for each in (torch.from_numpy(seen), mirrored))
    torch.testing.assert_close(images, mean[:, mirror.action_places] * torch.from_numpy(mirror.action_signs))
    torch.testing.assert_close(deviations, std[..., mirror.action_places])
    assert not torch.allclose(
        actor.network(torch.from_numpy(seen))[:, :3], mean, rtol=0.1
    )  # the network alone does not do it


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_actor_acts_as_torch_does(name: str) -> None:
    agent, seen = agent_of(name), observed(9)
    compiled, reference = (
        CompiledBehavior(agent.actor, agent.generator, 9),
        TorchBehavior(agent.actor, agent.generator, "cpu", 9),
    )
    compiled.begin()
    noise = draw_noise(compiled, 1, 9)[0]
    for mine, theirs in zip(acted(compiled, seen, noise), acted(reference, seen, noise), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-5)


def learnable(agent: ActorCritic, config: Any) -> Any:
    """A rollout with resets, and labels if they are imitated."""
    collector = RolloutCollector(make_envs(), config.rollout_steps, "cpu")
    collector.reset(seed=5)
    rollout = collector.collect(agent.behavior)
    if isinstance(config, DistillConfig):
        labels = torch.cat([torch.randn(*rollout.valid.shape, 3), torch.rand(*rollout.valid.shape, 3) + 0.1], -1)
        rollout = replace(rollout, labels=labels)
    return learned_from(agent, rollout, config)


@pytest.mark.parametrize("name", CASES)
def test_compiled_gradients_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, config = CASES[name]

    def make() -> tuple[ActorCritic, Any, Any]:
        agent = agent_of(name)
        return agent, learnable(agent, config), config

    learned_as_torch_does(module, make, monkeypatch)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    found = []
    for threads in (1, 3):
        agent = agent_of("ppo")
        agent.threads = Threads(threads)
        found.append((ppo.learn(agent, learnable(agent, CASES["ppo"][1]), CASES["ppo"][1]), agent.state()))
        agent.threads.close()
    assert found[0][0] == found[1][0]
    torch.testing.assert_close(found[0][1], found[1][1], rtol=0.0, atol=0.0)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
def test_what_acts_is_what_learns(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(epochs, "CompiledBehavior", ())
    config = replace(CASES["ppo"][1], epochs=1, minibatches=1)
    agent = agent_of("ppo")
    losses = ppo.learn(agent, learnable(agent, config), config)
    assert losses["approx_kl"] == pytest.approx(0.0, abs=1e-5)


def test_a_saved_policy_takes_the_mirror_image_from_its_environment() -> None:
    agent, seen = agent_of("ppo"), observed(5)
    config = CASES["ppo"][1]
    expected = agent.actor.to_env(agent.actor.most_likely(torch.from_numpy(seen)).detach())
    found: Any = load_policy(agent.state(), make_envs(), config)
    np.testing.assert_allclose(found(seen), expected, atol=1e-5)


def test_reinforce_has_it_too() -> None:
    agent = reinforce.make_agent(make_envs(), ReinforceConfig(), 1, "cpu")
    assert agent.actor.mirror is not None


def test_a_policy_with_memory_has_none_and_says_so() -> None:
    config = PPOConfig(**EPOCHS, memory="gru", sequence_length=10)
    with pytest.warns(UserWarning, match="mirror image .* memory"):
        agent = ppo.make_agent(make_envs(), config, 1, "cpu")
    assert agent.actor.mirror is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ppo.make_agent(gym.make_vec("gym_dr/PendulumDR-v1", 2), config, 1, "cpu")
