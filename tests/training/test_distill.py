"""A student imitates a teacher that is told the draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, Normal, kl_divergence

from gym_dr.training import distill
from gym_dr.training.actor_critic import ActorCritic, adam_agent
from gym_dr.training.api import TrainedNetworks
from gym_dr.training.behavior import CompiledBehavior
from gym_dr.training.config import CONTEXT_SPAN, DistillConfig, PPOConfig
from gym_dr.training.distill import Teacher
from gym_dr.training.networks import Actor, CategoricalActor, GaussianActor, TwoHeadedGaussianActor, make_actor
from gym_dr.training.rollout import Rollout, RolloutCollector
from gym_dr.wrappers.context import DrawContext
from tests.training.hidden import STEPS, session
from tests.training.rollouts import learned_as_torch_does, learned_from

POLE, PENDULUM = "gym_dr/CartPoleDR-v1", "gym_dr/InvertedPendulumDR-v5"
MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 6, "sequence_length": 5}
CONFIG = DistillConfig(
    updates=3,
    rollout_steps=30,
    epochs=2,
    minibatches=3,
    hidden_sizes=(8,),
    entropy_coef=0.1,
    lr=0.01,
    normalize_observations=False,
    normalize_rewards=False,
)
NUM_ENVS = 8
ACTIONS = {
    "discrete": gym.spaces.Discrete(3),
    "one deviation": gym.spaces.Box(-2.0, 2.0, (2,)),
    "deviation by observation": gym.spaces.Box(-2.0, 2.0, (2,)),
}


def make_envs(env_id: str = POLE, **kwargs: Any) -> Any:
    """Episodes of a few steps, of which some terminate and some are truncated."""
    return gym.make_vec(env_id, NUM_ENVS, max_episode_steps=10, **kwargs)


def shaken(network: torch.nn.Module, seed: int = 0) -> Any:
    """The same with other weights; the first ones of the last layers are near 0."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return network


# ---- What is imitated


def actor_of(name: str, seed: int) -> Actor:
    space: Any = ACTIONS[name]
    kind: Any = {"discrete": CategoricalActor, "one deviation": GaussianActor}.get(name, TwoHeadedGaussianActor)
    made: Actor = shaken(kind(4, (8,), space, "tanh"), seed)
    return made


def distribution(actor: Actor, observations: Any) -> Any:
    if isinstance(actor, CategoricalActor):
        return Categorical(logits=actor.network(observations))
    return Independent(Normal(*actor.distribution(observations)), 1)


@pytest.mark.parametrize("name", ACTIONS)
def test_the_divergence_is_that_of_torchs_distributions(name: str) -> None:
    student, teacher, observations = actor_of(name, 1), actor_of(name, 2), torch.randn(50, 4)
    expected = kl_divergence(distribution(teacher, observations), distribution(student, observations))
    found = student.divergence(teacher.labels(observations), observations)
    assert found.shape == (50,)
    assert found.min() > 0.0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ACTIONS)
def test_an_actor_does_not_diverge_from_itself(name: str) -> None:
    actor, observations = actor_of(name, 1), torch.randn(50, 4)
    found = actor.divergence(actor.labels(observations), observations)
    torch.testing.assert_close(found, torch.zeros(50), rtol=0.0, atol=1e-6)


# ---- Learning from labels

LEARNING: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete, relu, critic observes the draw": (POLE, {"activation": "relu", "critic_context": True}),
    "one deviation": (PENDULUM, {}),
    "deviation by observation, normalized": (
        PENDULUM,
        {"state_dependent_std": True, "normalize_observations": True, "normalize_rewards": True},
    ),
    "memory, one deviation, critic observes the draw": (PENDULUM, MEMORY | {"critic_context": True}),
    "memory, deviation by observation, normalized": (
        PENDULUM,
        MEMORY | {"state_dependent_std": True, "normalize_observations": True},
    ),
    "prediction, discrete": (POLE, MEMORY | {"predict_draw": 0.7}),
    "prediction, deviation by observation, critic observes the draw": (
        PENDULUM,
        MEMORY | {"predict_draw": 0.7, "state_dependent_std": True, "critic_context": True},
    ),
}


def student(env_id: str = POLE, **changes: Any) -> tuple[ActorCritic, Any, DistillConfig]:
    config, envs = replace(CONFIG, **changes), make_envs(env_id)
    agent = adam_agent(envs, config, 1, "cpu")
    networks = [agent.actor, agent.critic, agent.critic_memory, agent.predictor]
    shaken(torch.nn.ModuleList(network for network in networks if network is not None))
    return agent, envs, config


def labeled(agent: ActorCritic, envs: Any, config: DistillConfig) -> Rollout:
    """A rollout with labels of a policy that is not the student."""
    collector = RolloutCollector(envs, config.rollout_steps, "cpu", agent.visible)
    collector.reset(seed=5)
    rollout = collector.collect(agent.behavior)
    kind = TwoHeadedGaussianActor if config.state_dependent_std else GaussianActor
    other: Actor = shaken(make_actor(envs, (4,), "tanh", kind), seed=7)
    with torch.no_grad():
        return replace(rollout, labels=other.labels(rollout.observations[:-1]))


@pytest.mark.parametrize("name", LEARNING)
def test_compiled_gradients_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env_id, changes = LEARNING[name]
    rollout = labeled(*student(env_id, **changes))
    # a part of the steps counts in no loss
    rollout = replace(rollout, valid=rollout.valid & (np.random.default_rng(0).random(rollout.valid.shape) < 0.8))

    def make() -> tuple[ActorCritic, Any, DistillConfig]:
        agent, _, config = student(env_id, **changes)
        assert isinstance(agent.behavior, CompiledBehavior)
        agent.observe_rewards(rollout, fresh=True)
        agent.observe_observations(rollout)
        return agent, learned_from(agent, rollout, config), config

    first, _ = learned_as_torch_does(distill, make, monkeypatch)
    assert first["imitation_loss"] > 0.005
    assert ("prediction_loss" in first) == ("predict_draw" in changes)


def test_the_first_loss_is_the_mean_divergence_over_valid_steps() -> None:
    agent, envs, config = student(epochs=1, minibatches=1)
    rollout = labeled(agent, envs, config)
    valid = torch.from_numpy(rollout.valid)
    assert not valid.all()
    assert rollout.labels is not None
    with torch.no_grad():
        divergences = agent.actor.divergence(rollout.labels[valid], rollout.observations[:-1][valid])
    losses = distill.learn(agent, learned_from(agent, rollout, config), config)
    assert losses["imitation_loss"] == pytest.approx(divergences.mean().item(), rel=1e-4)


# ---- The teacher

RANGES = {"masscart": (0.0, 2.0), "length": (0.1, 0.6), "gravity": (5.0, 15.0)}  # not the student's, nor in its order
DRAWN: dict[str, Any] = {"gravity": (9.0, 11.0), "masscart": (0.5, 1.5)}  # and the length is 0.5


def picking(column: int, inputs: int) -> Mapping[str, Any]:
    """Weights of a teacher of CartPole whose logits differ by 2 plus one of its inputs."""
    actor = CategoricalActor(inputs, (1,), gym.spaces.Discrete(2), "relu")
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.zero_()
        actor.network[0].weight[0, column] = 1.0
        actor.network[0].bias[0] = 2.0  # so that the unit is not cut off
        actor.network[2].weight[0, 0] = 1.0
    return {"actor": actor.state_dict()}


def trained(state: Mapping[str, Any], ranges: Any = None, **options: Any) -> TrainedNetworks:
    fitting = {"hidden_sizes": (1,), "activation": "relu", "normalize_observations": False}
    return TrainedNetworks(
        source="runs/teacher",
        options=PPOConfig(**{**fitting, **options}),
        state=state,
        context_ranges=ranges,
    )


def seen_by(teacher: Teacher, agent: ActorCritic, envs: Any, steps: int = 30) -> tuple[Rollout, Any]:
    """A rollout that a student's run keeps, and which number a ``picking`` teacher saw at each step."""
    collector = RolloutCollector(envs, steps, "cpu", (*agent.visible, *teacher.observes))
    collector.reset(seed=3)
    rollout = teacher.label(collector.collect(agent.behavior), len(agent.visible))
    assert rollout.labels is not None
    return rollout, rollout.labels[..., 0] - rollout.labels[..., 1] - 2.0


@pytest.mark.parametrize("options", [{}, {"critic_context": True}], ids=["alone", "with a critic that observes it"])
@pytest.mark.parametrize("name", RANGES)
def test_a_teacher_is_told_the_draw_of_each_steps_own_episode_in_its_own_ranges(
    name: str, options: dict[str, Any]
) -> None:
    # the student observes its draw too, so that its observations say what it was, in the student's ranges
    envs = DrawContext(make_envs(randomization=DRAWN), "observation", span=CONTEXT_SPAN)
    column = list(RANGES).index(name)
    agent, config = adam_agent(envs, replace(CONFIG, **options), 1, "cpu"), replace(CONFIG, **options)
    teacher = Teacher(trained(picking(4 + column, 4 + 3), RANGES), config, envs, "cpu")
    rollout, found = seen_by(teacher, agent, envs)
    draws = rollout.observations[..., 4:]  # of gravity and the mass
    assert (draws[1:] != draws[:-1]).any()  # episodes end within the rollout
    gravity, mass = 10.0 + draws[..., 0] / CONTEXT_SPAN, 1.0 + 0.5 * draws[..., 1] / CONTEXT_SPAN
    expected = {"masscart": mass - 1.0, "length": torch.full_like(mass, 0.6), "gravity": (gravity - 10.0) / 5.0}
    torch.testing.assert_close(found, CONTEXT_SPAN * expected[name][:-1], rtol=0.0, atol=1e-5)
    if options:  # the student's critic sees its own draws in its own ranges
        assert rollout.context is not None
        torch.testing.assert_close(rollout.context, draws, rtol=0.0, atol=1e-6)
    else:
        assert rollout.context is None


@pytest.mark.parametrize("column", [0, 3])
def test_a_teacher_sees_the_observation_as_the_student_does(column: int) -> None:
    envs = make_envs(randomization=DRAWN)
    agent = adam_agent(envs, CONFIG, 1, "cpu")
    teacher = Teacher(trained(picking(column, 4)), CONFIG, envs, "cpu")
    assert teacher.observes == ()
    rollout, found = seen_by(teacher, agent, envs)
    torch.testing.assert_close(found, rollout.observations[:-1, :, column], rtol=0.0, atol=1e-5)


def test_a_teacher_may_observe_a_disturbance_that_the_student_is_spared() -> None:
    envs = make_envs(randomization=DRAWN)
    agent = adam_agent(envs, CONFIG, 1, "cpu")
    # of 0 to 4 steps, so that no delay is the least
    teacher = Teacher(trained(picking(5, 4 + 2), {"gravity": (5, 15), "action_delay": (0, 4)}), CONFIG, envs, "cpu")
    _, found = seen_by(teacher, agent, envs)
    torch.testing.assert_close(found, torch.full_like(found, -CONTEXT_SPAN), rtol=0.0, atol=1e-6)


def test_a_student_goes_on_with_the_same_actions_whatever_its_teacher() -> None:
    states = []
    for column in (0, 1):
        alone = session()
        alone.runs["t"] = trained(picking(column, 2))
        distill.train(alone, replace(CONFIG, updates=1, teacher="t"))
        states.append((alone.rows[0]["imitation_loss"], alone.state["generator"]))
    assert states[0][0] != states[1][0]
    assert torch.equal(states[0][1], states[1][1])


# ---- All of it


def knowing() -> TrainedNetworks:
    """A teacher of ``Hidden`` that takes the right action with a probability of 0.98, once it is told the parameter."""
    actor = CategoricalActor(3, (1,), gym.spaces.Discrete(2), "tanh")
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.zero_()
        actor.network[0].weight[0, 2] = 1000.0  # a step at 0
        actor.network[2].weight[1, 0], actor.network[2].weight[0, 0] = 2.0, -2.0
    return trained({"actor": actor.state_dict()}, {"side": (-1.0, 1.0)}, activation="tanh")


def taught(**options: Any) -> Any:
    made = session()
    made.runs["t"] = knowing()
    small = {"rollout_steps": 40, "updates": 30, "epochs": 4, "minibatches": 4, "lr": 0.02, "teacher": "t"}
    config = replace(CONFIG, **{**small, "entropy_coef": 0.0, "gamma": 0.9, **options})
    distill.train(made, config)
    return made


def test_a_student_with_memory_does_what_its_teacher_was_told_to_and_its_critic_learns_what_that_is_worth() -> None:
    made = taught(critic_context=True, **MEMORY)
    assert made.rows[0]["imitation_loss"] > 0.4
    assert made.rows[-1]["imitation_loss"] < 0.08
    assert np.mean([episode.episode_return for episode in made.episodes[-200:]]) > 0.93 * STEPS
    losses = [row["critic_loss"] for row in made.rows]
    assert np.mean(losses[-5:]) < 0.25 * np.mean(losses[:2])


def test_a_student_without_memory_does_what_is_best_on_average() -> None:
    made = taught()
    # the teacher's p is 1 / (1 + exp(-4)) or the rest; at the steps after the first, q = 1/2 is closest, on average
    p = 1.0 / (1.0 + math.exp(-4.0))
    divergence = math.log(2.0) + p * math.log(p) + (1 - p) * math.log(1 - p)
    assert made.rows[-1]["imitation_loss"] == pytest.approx((STEPS - 1) / STEPS * divergence, abs=0.06)
