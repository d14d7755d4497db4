"""Distillation: divergences against torch's, compiled epochs against torch's, what the teacher sees, and refusals."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, Normal, kl_divergence

import gym_dr
from gym_dr.errors import ConfigError
from gym_dr.runs.checkpoint import load_newest
from gym_dr.training import distill, ppo
from gym_dr.training.api import TrainedNetworks
from gym_dr.training.batch import advantages_of, minibatches
from gym_dr.training.config import DistillConfig, PPOConfig
from gym_dr.training.epochs import compiled_epochs
from gym_dr.training.networks import GaussianActor, TwoHeadedGaussianActor, make_actor
from gym_dr.training.rollout import RolloutCollector

DISCRETE, CONTINUOUS = "gym_dr/CartPoleDR-v1", "gym_dr/PendulumDR-v1"
SMALL: dict[str, Any] = {"hidden_sizes": (8,), "rollout_steps": 32, "minibatches": 4, "epochs": 1, "lr": 1e-3}
MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 6, "sequence_length": 16}


@contextlib.contextmanager
def made(env: str, **kwargs: Any) -> Iterator[Any]:
    with contextlib.closing(gym.make_vec(env, 4, **{"randomization": "default", **kwargs})) as envs:
        yield envs


# ---- the divergence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, GaussianActor, TwoHeadedGaussianActor])
def test_the_divergence_is_torchs_and_0_from_itself(kind: Any) -> None:
    torch.manual_seed(0)
    with made(CONTINUOUS if kind else DISCRETE) as envs:
        teacher, student = (make_actor(envs, (5,), "tanh", kind or GaussianActor) for _ in range(2))
        observations = torch.randn(7, envs.single_observation_space.shape[0])
    labels, own = (actor.labels(observations).detach() for actor in (teacher, student))
    if kind is None:
        expected = kl_divergence(Categorical(logits=labels), Categorical(logits=own))
    else:
        wanted, got = (Independent(Normal(*both.chunk(2, -1)), 1) for both in (labels, own))
        expected = kl_divergence(wanted, got)
    torch.testing.assert_close(student.divergence(labels, observations), expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(student.divergence(own, observations), torch.zeros(7), rtol=0, atol=1e-6)


# ---- compiled gradients ----------------------------------------------------------------------------------------------


def labeled(module: Any, config: Any, envs: Any) -> tuple[Any, Any]:
    """An agent and a batch of its own rollout, with random labels to imitate if the algorithm does."""
    torch.manual_seed(1)
    agent = module.make_agent(envs, config, 0, "cpu")
    collector = RolloutCollector(envs, config.rollout_steps, "cpu", agent.visible)
    collector.reset(1)
    rollout = agent.recall(collector.collect(agent.behavior))
    if module is distill:
        with torch.no_grad():
            labels = agent.actor.labels(torch.randn(*rollout.rewards.shape, width(agent)))
        rollout = replace(rollout, labels=labels)
    values = agent.values_of(rollout)
    advantages = advantages_of(rollout, values, gamma=0.99, gae_lambda=0.95, reward_scale=0.1)
    return agent, agent.batch_of(rollout, values, advantages)


def width(agent: Any) -> int:
    first = next(layer for layer in agent.actor.network if isinstance(layer, torch.nn.Linear))
    return int(first.in_features)


@pytest.mark.parametrize("critic_context", [True, False], ids=["critic sees the draw", "critic on its own"])
@pytest.mark.parametrize(
    "memory", [{}, MEMORY, MEMORY | {"predict_draw": 0.7}], ids=["memoryless", "gru", "predicting"]
)
@pytest.mark.parametrize("two_heads", [False, True])
@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
@pytest.mark.parametrize("algorithm", [distill, ppo])
def test_compiled_epochs_are_torchs(
    algorithm: ModuleType, env: str, two_heads: bool, memory: dict[str, Any], critic_context: bool
) -> None:
    cls = DistillConfig if algorithm is distill else PPOConfig
    options = {**SMALL, **memory, "critic_context": critic_context, "state_dependent_std": two_heads}
    config = cls(entropy_coef=0.01, **options)
    with made(env) as envs:
        agent, batch = labeled(algorithm, config, envs)
    before, rows = copy.deepcopy(agent.state()), minibatches(len(batch), 4, agent.generator)
    with compiled_epochs(agent, batch, config) as epoch:
        losses = np.array(epoch(rows))
    compiled = copy.deepcopy(agent.state())
    agent.load_state(before)
    module: Any = algorithm
    with module.torch_epochs(agent, batch, config) as epoch:
        expected = np.array(epoch(rows))
    if algorithm is distill:
        losses = losses[:, [0, 1, 2, 5]]
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-5)
    state = agent.state()
    for part in ("actor", "critic", "critic_memory", "predictor"):
        for name, weights in state.get(part, {}).items():
            torch.testing.assert_close(compiled[part][name], weights, rtol=1e-4, atol=2e-6)


# ---- the teacher -----------------------------------------------------------------------------------------------------


def test_a_teacher_sees_its_draws_after_the_observation_and_the_student_does_not() -> None:
    """A teacher whose only weight is on its draw: gravity from 5 to 15 m/s^2 becomes -0.25 to 0.25."""
    ranges = {"gravity": (5.0, 15.0)}
    options = PPOConfig(hidden_sizes=(1,), activation="relu", normalize_observations=False)
    student = DistillConfig(**SMALL)
    with made(DISCRETE, randomization={"gravity": (6.0, 14.0)}) as envs:
        state = {
            "network.0.weight": torch.tensor([[0.0, 0.0, 0.0, 0.0, 1.0]]),
            "network.0.bias": torch.tensor([1.0]),  # keeps relu open
            "network.2.weight": torch.tensor([[0.0], [8.0]]),
            "network.2.bias": torch.tensor([0.0, -8.0]),
        }
        known = TrainedNetworks(
            source="teacher", algorithm="ppo", options=options, state={"actor": state}, context_ranges=ranges
        )
        teacher = distill.Teacher(known, student, envs, "cpu")
        agent = distill.make_agent(envs, student, 0, "cpu")
        collector = RolloutCollector(envs, 32, "cpu", (*agent.visible, *teacher.observes))
        collector.reset(3)
        gravity = envs.params["gravity"].copy()
        rollout = teacher.label(collector.collect(agent.behavior), len(agent.visible))
    assert rollout.context is None
    assert rollout.labels is not None
    logits = rollout.labels[0, :, 1] - rollout.labels[0, :, 0]
    np.testing.assert_allclose(logits, 8.0 * 0.25 * (gravity - 10.0) / 5.0, rtol=1e-4, atol=1e-5)


def test_runs_that_cannot_teach_are_refused(tmp_path: Path) -> None:
    tiny = {"updates": 1, "num_envs": 2, "rollout_steps": 32, "minibatches": 2, "eval_episodes": 0, "progress": False}
    remembers = gym_dr.train("ppo", env=DISCRETE, run_dir=tmp_path / "remembers", memory="gru", **tiny)
    discrete = gym_dr.train("ppo", env=DISCRETE, run_dir=tmp_path / "discrete", **tiny)
    for env, given, message in (
        (DISCRETE, {}, "teacher: expected a run's folder"),
        (DISCRETE, {"teacher": str(tmp_path)}, "teacher: expected a run's folder"),
        (DISCRETE, {"teacher": str(remembers.path)}, "has a memory; expected a policy without one"),
        (CONTINUOUS, {"teacher": str(discrete.path)}, "observations or actions are not the student's"),
    ):
        with pytest.raises(ConfigError, match=message):
            gym_dr.train("distill", env=env, run_dir=tmp_path / "student", overwrite=True, **given, **tiny)


# ---- going on from a run ---------------------------------------------------------------------------------------------


def test_init_goes_on_from_another_runs_weights_and_refuses_other_networks(tmp_path: Path) -> None:
    tiny = {"env": DISCRETE, "num_envs": 2, "rollout_steps": 32, "minibatches": 2, "eval_episodes": 0}
    tiny |= {"progress": False, "memory": "gru", "memory_size": 4}
    first = gym_dr.train("ppo", run_dir=tmp_path / "first", updates=2, **tiny)
    # a learning rate that changes nothing shows what the run starts from
    again = gym_dr.train("ppo", run_dir=tmp_path / "again", updates=1, lr=1e-12, init=str(first.path), **tiny)
    old, new = (load_newest(run.folder)["state"] for run in (first, again))
    for part in ("actor", "critic", "critic_memory"):
        for name, weights in old[part].items():
            if name.rpartition(".")[2] not in ("count", "mean", "variance"):  # moments of observations have gone on
                torch.testing.assert_close(new[part][name], weights, rtol=0, atol=1e-6)
    for given, message in (
        ({"memory_size": 5}, "has memory_size 4, and this run 5"),
        ({"hidden_sizes": (3,)}, r"has hidden_sizes \(64, 64\), and this run \(3,\)"),
        ({"init": "orthogonl"}, "init: expected torch, orthogonal or a run's folder, got 'orthogonl'"),
    ):
        with pytest.raises(ConfigError, match=message):
            gym_dr.train("ppo", run_dir=tmp_path / "no", updates=1, **{**tiny, "init": str(first.path), **given})
        assert not (tmp_path / "no").exists()
