"""What an environment reports for the critic alone reaches the critic, normalized, and nobody else."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest
import torch
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TransformObservation

import gym_dr
from gym_dr.errors import ConfigError
from gym_dr.training import a2c, distill, ppo, reinforce
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.config import A2CConfig, DistillConfig, PPOConfig, ReinforceConfig
from gym_dr.training.rollout import Rollout, RolloutCollector
from tests.envs import sided
from tests.envs.mujoco.own_robots import legs
from tests.registered import forgotten_afterwards
from tests.training.fake_session import FakeSession
from tests.training.rollouts import learned_as_torch_does, learned_from
from tests.training.test_mirror import shaken

SMALL: dict[str, Any] = {"rollout_steps": 20, "hidden_sizes": (9, 7)}
EPOCHS: dict[str, Any] = {**SMALL, "epochs": 2, "minibatches": 2}
MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 5, "sequence_length": 5}
CASES: dict[str, tuple[Any, Any]] = {
    "ppo": (ppo, PPOConfig(**EPOCHS)),
    "ppo, with the draw": (ppo, PPOConfig(**EPOCHS, critic_context=True)),
    "a2c, not normalized": (a2c, A2CConfig(**SMALL)),
    "distill": (distill, DistillConfig(**EPOCHS)),
    "memory": (ppo, PPOConfig(**EPOCHS, **MEMORY)),
    "memory, with the draw": (ppo, PPOConfig(**EPOCHS, **MEMORY, critic_context=True, predict_draw=0.5)),
}
# a mirror image has no effect on a memory
pytestmark = pytest.mark.filterwarnings("ignore:The mirror image")


def make_envs(num_envs: int = 6) -> Any:
    return SyncVectorEnv([sided.make] * num_envs)


def agent_of(name: str) -> ActorCritic:
    module, config = CASES[name]
    agent = getattr(module, "make_agent", distill.adam_agent)(make_envs(), config, 1, "cpu")
    return shaken(agent)


def collected(agent: ActorCritic, config: Any) -> Rollout:
    collector = RolloutCollector(make_envs(), config.rollout_steps, "cpu", agent.visible)
    collector.reset(seed=5)
    collector.collect(agent.behavior)
    rollout = collector.collect(agent.behavior)
    if isinstance(config, DistillConfig):
        labels = torch.cat([torch.randn(*rollout.valid.shape, 3), torch.rand(*rollout.valid.shape, 3) + 0.1], -1)
        rollout = replace(rollout, labels=labels)
    return rollout


def test_a_rollout_has_what_each_step_and_reset_reported() -> None:
    rollout = collected(agent_of("ppo"), CASES["ppo"][1])
    assert rollout.critic is not None
    legs = rollout.observations[..., 1:3]  # the report is 10 times these, times the mass
    known = (legs > 0.1).all(-1)
    first, second = (rollout.critic / legs / 10.0).unbind(-1)
    torch.testing.assert_close(first[known], second[known])
    assert 0.49 < first[known].min() < first[known].max() < 2.01
    # the mass stays within an episode
    within = torch.from_numpy(rollout.valid) & known[1:] & known[:-1]
    torch.testing.assert_close(first[1:][within], first[:-1][within])


def test_a_robots_compiled_rollout_has_what_its_steps_report() -> None:
    with forgotten_afterwards():
        gym_dr.register_robot("tests/Legs-v0", **legs.TASK)
        found = []
        for mode in ("sync", None):
            envs = gym.make_vec("tests/Legs-v0", 3, vectorization_mode=mode)
            agent, collector = ppo.make_agent(envs, CASES["ppo"][1], 1, "cpu"), RolloutCollector(envs, 30, "cpu")
            found.append(collector.collect(agent.behavior, seed=5).critic)
            envs.close()
    assert agent.critic_size == 3
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_compiled_gradients_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, config = CASES[name]

    def make() -> tuple[ActorCritic, Any, Any]:
        agent = agent_of(name)
        agent.observe_observations(collected(agent, config))
        return agent, learned_from(agent, collected(agent, config), config), config

    learned_as_torch_does(module, make, monkeypatch)


def test_its_moments_are_those_of_valid_steps_and_normalize_it() -> None:
    agent, config = agent_of("ppo, with the draw"), CASES["ppo, with the draw"][1]
    rollout = collected(agent, config)
    agent.observe_observations(rollout)
    assert rollout.critic is not None
    valid = rollout.critic[:-1][torch.from_numpy(rollout.valid)]
    assert agent.critic_moments is not None
    torch.testing.assert_close(agent.critic_moments.mean.float(), valid.mean(0))
    batch = learned_from(agent, rollout, config)
    seen = batch.critic_inputs[:, 4:6]
    torch.testing.assert_close(seen.mean(0), torch.zeros(2), atol=1e-4, rtol=0.0)
    torch.testing.assert_close(seen.std(0, correction=0), torch.ones(2), atol=1e-4, rtol=0.0)
    assert batch.critic_inputs.shape[1] == 7  # the draw comes last
    assert batch.critic_inputs[:, 6].abs().max() <= 0.25


def test_without_normalization_the_critic_sees_the_numbers_themselves() -> None:
    agent, config = agent_of("a2c, not normalized"), CASES["a2c, not normalized"][1]
    rollout = collected(agent, config)
    agent.observe_observations(rollout)
    batch = learned_from(agent, rollout, config)
    assert rollout.critic is not None
    torch.testing.assert_close(batch.critic_inputs[:, 4:], rollout.critic[:-1][torch.from_numpy(rollout.valid)])


def test_a_policy_is_the_same_whatever_the_critic_sees() -> None:
    agent = agent_of("ppo")
    assert agent.actor.network[1].in_features == 4


def test_the_baseline_of_reinforce_does_without() -> None:
    agent = reinforce.make_agent(make_envs(), ReinforceConfig(), 1, "cpu")
    assert agent.critic_size == 0
    assert "critic_moments" not in agent.state()


class Session(FakeSession):
    """On beams."""

    def __init__(self) -> None:
        super().__init__("", segment=2)
        self._make = make_envs


@pytest.mark.parametrize("name", ["ppo", "memory, with the draw"])
def test_a_resumed_training_ends_as_an_uninterrupted_one(name: str) -> None:
    module, config = CASES[name]
    whole, first, second = Session(), Session(), Session()
    module.train(whole, replace(config, updates=4, schedule="constant"))
    module.train(first, replace(config, updates=2, schedule="constant"))
    second.restored, second.first_update = copy.deepcopy(dict(first.state)), 2
    module.train(second, replace(config, updates=4, schedule="constant"))
    assert "critic_moments" in whole.state
    torch.testing.assert_close(dict(second.state), dict(whole.state), rtol=0.0, atol=0.0)


def test_an_environment_that_does_not_report_it_is_refused() -> None:
    envs = SyncVectorEnv([lambda: TransformObservation(Silent(), lambda seen: seen, None)] * 2)
    collector = RolloutCollector(envs, 4, "cpu")
    with pytest.raises(ConfigError, match=r"info\['critic'\] of shape \(2, 2\)"):
        collector.reset(seed=1)


class Silent(sided.Sided):
    """Declares observations for the critic, and reports none."""

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        return super()._seen()[0], {}


def test_environments_without_it_have_none() -> None:
    envs = gym.make_vec("gym_dr/PendulumDR-v1", 2)
    agent, collector = ppo.make_agent(envs, CASES["ppo"][1], 1, "cpu"), RolloutCollector(envs, 4, "cpu")
    collector.reset(seed=1)
    assert collector.collect(agent.behavior).critic is None
    assert agent.critic_moments is None
