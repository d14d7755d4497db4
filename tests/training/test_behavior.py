"""Compiled actors give what torch gives, and take over new weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr.training.behavior import (
    SMALL,
    CompiledBehavior,
    TorchBehavior,
    draw_noise,
    make_behavior,
    trained_policy,
)
from gym_dr.training.networks import GaussianActor, TwoHeadedGaussianActor, make_actor
from tests.training.rollouts import acted

NUM_ENVS = 200
OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (5,))
DISCRETE: gym.Space[Any] = gym.spaces.Discrete(4, start=2)
BOX: gym.Space[Any] = gym.spaces.Box(np.array([-2.0, 0.1]), np.array([0.5, 7.0]), dtype=np.float64)
ACTORS: list[Any] = [
    pytest.param(DISCRETE, GaussianActor, id="categorical"),
    pytest.param(BOX, GaussianActor, id="gaussian"),
    pytest.param(BOX, TwoHeadedGaussianActor, id="two heads"),
]


def actor_of(
    space: gym.Space[Any],
    continuous: Any,
    activation: str,
    hidden_sizes: tuple[int, ...] = (32, 17),
    memory_size: int = 0,
) -> Any:
    envs = SimpleNamespace(single_observation_space=OBSERVATIONS, single_action_space=space)
    actor = make_actor(envs, hidden_sizes, activation, continuous, memory_size=memory_size)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return actor


def both(actor: Any) -> tuple[CompiledBehavior, TorchBehavior]:
    compiled = make_behavior(actor, torch.Generator().manual_seed(1), "cpu", NUM_ENVS)
    assert isinstance(compiled, CompiledBehavior)
    return compiled, TorchBehavior(actor, torch.Generator().manual_seed(1), "cpu", NUM_ENVS)


def assert_alike(compiled: CompiledBehavior, reference: TorchBehavior) -> None:
    observations = 3.0 * np.random.default_rng(0).standard_normal((NUM_ENVS, 5), dtype=np.float32)
    compiled.begin()
    for one, other in zip(draw_noise(compiled, 20, NUM_ENVS), draw_noise(reference, 20, NUM_ENVS), strict=True):
        np.testing.assert_array_equal(one, other)
        found, expected = acted(compiled, observations, one), acted(reference, observations, other)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.dtype == theirs.dtype
            # of whole numbers: equal. Some deviations are so small that an action's last digit counts in its density,
            # which the next test compares exactly
            tolerance = 3e-2 if theirs is expected[1] else 2e-5
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu"])
@pytest.mark.parametrize(("space", "continuous"), ACTORS)
def test_a_compiled_actor_acts_as_torch_does(space: gym.Space[Any], continuous: Any, activation: str) -> None:
    torch.manual_seed(0)
    assert_alike(*both(actor_of(space, continuous, activation)))


@pytest.mark.parametrize(("space", "continuous"), ACTORS)
def test_compiled_log_probabilities_are_those_of_the_noise(space: gym.Space[Any], continuous: Any) -> None:
    torch.manual_seed(0)
    actor = actor_of(space, continuous, "relu")
    compiled, _ = both(actor)
    observations = np.random.default_rng(0).standard_normal((NUM_ENVS, 5), dtype=np.float32)
    noise = draw_noise(compiled, 1, NUM_ENVS)[0]
    compiled.begin()
    actions, log_probs, _, _ = acted(compiled, observations, noise)
    actor.double()
    with torch.no_grad():
        inputs = torch.from_numpy(observations).double()
        if isinstance(space, gym.spaces.Discrete):
            expected = actor.network(inputs).log_softmax(-1)[torch.arange(NUM_ENVS), torch.from_numpy(actions)]
        else:
            std = actor.distribution(inputs)[1]
            expected = torch.distributions.Normal(0.0, 1.0).log_prob(torch.from_numpy(noise)) - std.log()
            expected = expected.sum(-1)
    np.testing.assert_allclose(log_probs, expected.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("hidden_sizes", [(1,), (64, 64), (5, 4, 3)])
def test_networks_may_have_any_layers(hidden_sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    assert_alike(*both(actor_of(DISCRETE, GaussianActor, "tanh", hidden_sizes)))


def test_new_weights_count_from_the_next_rollout_on() -> None:
    torch.manual_seed(0)
    actor = actor_of(BOX, GaussianActor, "tanh")
    compiled, reference = both(actor)
    assert_alike(compiled, reference)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter += 0.1
    assert_alike(compiled, reference)


@pytest.mark.parametrize(("space", "continuous"), ACTORS)
def test_a_compiled_memory_remembers_as_torchs_does(space: gym.Space[Any], continuous: Any) -> None:
    torch.manual_seed(0)
    compiled, reference = both(actor_of(space, continuous, "tanh", memory_size=6))
    rng = np.random.default_rng(0)
    compiled.begin()
    for _ in range(12):
        observations = rng.standard_normal((NUM_ENVS, 5), dtype=np.float32)
        noise, starts = draw_noise(reference, 1, NUM_ENVS)[0], rng.random(NUM_ENVS) < 0.2
        found = acted(compiled, observations, noise, starts), acted(reference, observations, noise, starts)
        for mine, theirs in zip(*found, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=5e-5)
        for mine, theirs in zip(compiled.remembered, reference.remembered, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("kind", [0, 1], ids=["compiled", "torch"])
@pytest.mark.parametrize(("space", "continuous"), ACTORS)
def test_at_the_start_of_an_episode_all_is_forgotten(space: gym.Space[Any], continuous: Any, kind: int) -> None:
    torch.manual_seed(0)
    behavior = both(actor_of(space, continuous, "tanh", memory_size=6))[kind]
    observations = np.random.default_rng(0).standard_normal((NUM_ENVS, 5), dtype=np.float32)
    noise, starts = draw_noise(behavior, 1, NUM_ENVS)[0], np.ones(NUM_ENVS, np.bool_)
    behavior.begin()
    found = []
    for junk in (0.0, -0.7, np.nan):  # a rollout whose observations were not finite may be skipped
        behavior.restore(*(np.full_like(part, junk) for part in behavior.remembered))
        found.append((*acted(behavior, observations, noise, starts), *behavior.remembered))
    for other in found[1:]:
        for expected, part in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_saturated_units_are_one_not_more() -> None:
    actor = actor_of(BOX, GaussianActor, "tanh", (3,))
    with torch.no_grad():
        actor.network[0].weight.zero_()
        actor.network[0].bias[:] = torch.tensor([1e9, -50.0, float("inf")])
    assert_alike(*both(actor))


def test_large_networks_large_memories_and_other_devices_are_torchs() -> None:
    generator = torch.Generator()
    small = actor_of(DISCRETE, GaussianActor, "relu")
    large = actor_of(DISCRETE, GaussianActor, "relu", (256, 256))
    remembering = actor_of(DISCRETE, GaussianActor, "relu", memory_size=130)
    assert sum(parameter.numel() for parameter in large.parameters()) > SMALL
    for actor, device in ((large, "cpu"), (remembering, "cpu"), (small, "meta")):
        assert isinstance(make_behavior(actor, generator, device, 2), TorchBehavior)


def test_a_policy_acts_for_any_number_of_observations_and_the_same_each_time_it_is_made() -> None:
    torch.manual_seed(0)
    actor = actor_of(DISCRETE, GaussianActor, "relu")
    observations = np.random.default_rng(0).standard_normal((100, 7, 5))  # float64, as MuJoCo has them
    one, other = trained_policy(actor), trained_policy(actor)
    acted = np.array([one(row) for row in observations])
    np.testing.assert_array_equal(acted, [other(row) for row in observations])
    assert set(acted.ravel().tolist()) == {2, 3, 4, 5}
    assert one(observations[0, :3]).shape == (3,)


@pytest.mark.parametrize("memory_size", [0, 3])
def test_a_seed_decides_on_sampled_actions(memory_size: int) -> None:
    policy: Any = trained_policy(actor_of(DISCRETE, GaussianActor, "tanh", memory_size=memory_size))
    starts = [np.ones(NUM_ENVS, np.bool_)] * (memory_size > 0)
    found = []
    for seed in (1, 2, 1):
        policy.reseed(seed)
        found.append(policy(np.zeros((NUM_ENVS, 5), np.float32), *starts).tolist())
    assert found[0] == found[2] != found[1]


def test_a_continuous_policy_acts_by_its_mean() -> None:
    torch.manual_seed(0)
    actor = actor_of(BOX, GaussianActor, "relu")
    observations = torch.randn(7, 5)
    with torch.no_grad():
        expected = actor.to_env(actor.network(observations))
    np.testing.assert_allclose(trained_policy(actor)(observations.numpy()), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("space", "continuous"), ACTORS)
def test_a_deterministic_policy_takes_the_most_likely_action_each_time(space: gym.Space[Any], continuous: Any) -> None:
    torch.manual_seed(0)
    actor = actor_of(space, continuous, "tanh")
    observations = np.random.default_rng(0).standard_normal((7, 5))
    policy = trained_policy(actor, deterministic=True)
    with torch.no_grad():
        outputs = actor.network(torch.as_tensor(observations, dtype=torch.float32)).numpy()
    if isinstance(space, gym.spaces.Discrete):
        expected = outputs.argmax(1) + space.start
    else:  # the mean, the first half of two heads, as the environment takes it
        expected = actor.to_env(torch.as_tensor(outputs[:, : actor.size]))
    np.testing.assert_array_equal(policy(observations), expected)
    np.testing.assert_array_equal(policy(observations), expected)
