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

NUM_ENVS = 200
OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (5,))
DISCRETE: gym.Space[Any] = gym.spaces.Discrete(4, start=2)
BOX: gym.Space[Any] = gym.spaces.Box(np.array([-2.0, 0.1]), np.array([0.5, 7.0]), dtype=np.float64)
ACTORS: list[Any] = [
    pytest.param(DISCRETE, GaussianActor, id="categorical"),
    pytest.param(BOX, GaussianActor, id="gaussian"),
    pytest.param(BOX, TwoHeadedGaussianActor, id="two heads"),
]


def actor_of(space: gym.Space[Any], continuous: Any, activation: str, hidden_sizes: tuple[int, ...] = (32, 17)) -> Any:
    envs = SimpleNamespace(single_observation_space=OBSERVATIONS, single_action_space=space)
    actor = make_actor(envs, hidden_sizes, activation, continuous)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return actor


def both(actor: Any) -> tuple[CompiledBehavior, TorchBehavior]:
    compiled = make_behavior(actor, torch.Generator().manual_seed(1), "cpu", NUM_ENVS)
    assert isinstance(compiled, CompiledBehavior)
    return compiled, TorchBehavior(actor, torch.Generator().manual_seed(1), "cpu")


def assert_alike(compiled: CompiledBehavior, reference: TorchBehavior) -> None:
    observations = 3.0 * np.random.default_rng(0).standard_normal((NUM_ENVS, 5), dtype=np.float32)
    compiled.begin()
    for one, other in zip(draw_noise(compiled, 20, NUM_ENVS), draw_noise(reference, 20, NUM_ENVS), strict=True):
        np.testing.assert_array_equal(one, other)
        (own, env_own), (expected, env_expected) = compiled.act(observations, one), reference.act(observations, other)
        assert (own.dtype, env_own.dtype) == (expected.dtype, env_expected.dtype)
        np.testing.assert_allclose(own, expected, rtol=2e-5, atol=2e-5)  # of whole numbers: equal
        np.testing.assert_allclose(env_own, env_expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(("space", "continuous"), ACTORS)
def test_a_compiled_actor_acts_as_torch_does(space: gym.Space[Any], continuous: Any, activation: str) -> None:
    torch.manual_seed(0)
    assert_alike(*both(actor_of(space, continuous, activation)))


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


def test_saturated_units_are_one_not_more() -> None:
    actor = actor_of(BOX, GaussianActor, "tanh", (3,))
    with torch.no_grad():
        actor.network[0].weight.zero_()
        actor.network[0].bias[:] = torch.tensor([1e9, -50.0, float("inf")])
    assert_alike(*both(actor))


def test_large_networks_and_other_devices_are_torchs() -> None:
    generator = torch.Generator()
    small = actor_of(DISCRETE, GaussianActor, "relu")
    large = actor_of(DISCRETE, GaussianActor, "relu", (256, 256))
    assert sum(parameter.numel() for parameter in large.parameters()) > SMALL
    assert isinstance(make_behavior(large, generator, "cpu", 2), TorchBehavior)
    assert isinstance(make_behavior(small, generator, "cuda", 2), TorchBehavior)


def test_a_policy_acts_for_any_number_of_observations_and_the_same_each_time_it_is_made() -> None:
    torch.manual_seed(0)
    actor = actor_of(DISCRETE, GaussianActor, "relu")
    observations = np.random.default_rng(0).standard_normal((100, 7, 5))  # float64, as MuJoCo has them
    one, other = trained_policy(actor), trained_policy(actor)
    acted = np.array([one(row) for row in observations])
    np.testing.assert_array_equal(acted, [other(row) for row in observations])
    assert set(acted.ravel().tolist()) == {2, 3, 4, 5}
    assert one(observations[0, :3]).shape == (3,)


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
