from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gym_dr.errors import ConfigError
from gym_dr.training.networks import CategoricalActor, GaussianActor, TwoHeadedGaussianActor, make_actor

OBSERVATIONS = gym.spaces.Box(-1.0, 1.0, (3,))


def spaces(action_space: gym.Space[Any], observation_space: gym.Space[Any] = OBSERVATIONS) -> Any:
    return SimpleNamespace(single_observation_space=observation_space, single_action_space=action_space)


def normal_of(actor: Any, observations: Any) -> Any:
    raw = actor.network(observations)
    if isinstance(actor, TwoHeadedGaussianActor):
        return torch.distributions.Normal(raw[:, :2], torch.log1p(raw[:, 2:].exp()) + 1e-6)
    return torch.distributions.Normal(raw, actor.log_std.exp())


@pytest.mark.parametrize("kind", [CategoricalActor, GaussianActor, TwoHeadedGaussianActor])
def test_log_probabilities_and_entropy_equal_those_of_torchs_distributions(kind: Any) -> None:
    discrete, observations = kind is CategoricalActor, torch.randn(50, 3)
    space: Any = gym.spaces.Discrete(4) if discrete else gym.spaces.Box(-1.0, 1.0, (2,))
    actor = make_actor(spaces(space), (8,), "relu", GaussianActor if discrete else kind)
    assert isinstance(actor, kind)
    if isinstance(actor, GaussianActor):
        actor.log_std.data = torch.tensor([0.3, -0.7])
    if discrete:
        actions = torch.randint(4, (50,))
        reference: Any = torch.distributions.Categorical(logits=actor.network(observations))
    else:
        actions = torch.randn(50, 2)
        reference = torch.distributions.Independent(normal_of(actor, observations), 1)
    log_probs, entropy = actor.log_prob_and_entropy(observations, actions)
    torch.testing.assert_close(log_probs, reference.log_prob(actions))
    torch.testing.assert_close(entropy, reference.entropy())


def test_categorical_samples_have_the_softmax_frequencies() -> None:
    actor = make_actor(spaces(gym.spaces.Discrete(3)), (4,), "relu")
    observation = torch.tensor([[0.2, -0.4, 0.9]])
    noise = actor.noise(1, 20_000, torch.Generator().manual_seed(0))[0]
    sampled = actor.sample(observation.expand(20_000, 3), noise)
    frequencies = torch.bincount(sampled, minlength=3) / 20_000
    expected = actor.network(observation).softmax(-1)[0].detach()
    torch.testing.assert_close(frequencies, expected, atol=0.02, rtol=0.0)  # 3 standard errors are 0.011


def test_noise_follows_from_the_generator_alone() -> None:
    for space in (gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 1.0, (2,))):
        actor = make_actor(spaces(space), (4,), "relu")
        torch.manual_seed(1)
        one = actor.noise(7, 10, torch.Generator().manual_seed(5))
        torch.manual_seed(2)
        assert torch.equal(one, actor.noise(7, 10, torch.Generator().manual_seed(5)))


def test_categorical_samples_are_where_the_summed_probabilities_pass_the_noise() -> None:
    actor = make_actor(spaces(gym.spaces.Discrete(3)), (4,), "relu")
    for parameter in actor.parameters():
        parameter.data.zero_()
    actor.network[-1].bias.data = torch.tensor([0.5, 0.3, 0.2]).log()  # sums: 0.5, 0.8, 1
    noise = torch.tensor([[0.0], [0.49], [0.51], [0.79], [0.81], [0.9999999]])
    assert actor.sample(torch.zeros(6, 3), noise).tolist() == [0, 0, 1, 1, 2, 2]


def test_discrete_actions_start_where_the_space_does() -> None:
    actor = make_actor(spaces(gym.spaces.Discrete(3, start=5)), (4,), "relu")
    assert actor.to_env(torch.tensor([0, 2])).tolist() == [5, 7]


def test_continuous_actions_are_scaled_to_the_bounds_and_clipped() -> None:
    space = gym.spaces.Box(np.array([-2.0, 0.0]), np.array([2.0, 10.0]), dtype=np.float64)
    actor = make_actor(spaces(space), (4,), "relu")
    # -1 is the lower bound, 0 the middle, 1 the upper bound, 3 is clipped to 1
    actions = actor.to_env(torch.tensor([[-1.0, 0.0], [1.0, 3.0]]))
    assert actions.tolist() == [[-2.0, 5.0], [2.0, 10.0]]
    assert actions.dtype == np.float64


def test_scaled_actions_are_in_the_space_even_for_awkward_bounds() -> None:
    space = gym.spaces.Box(np.array([-0.1, 0.3], np.float32), np.array([0.7, 0.30000004], np.float32))
    actor = make_actor(spaces(space), (4,), "relu")
    for action in actor.to_env(torch.randn(500, 2) * 2):
        assert space.contains(action)


@pytest.mark.parametrize(
    ("action_space", "observation_space", "message"),
    [
        (gym.spaces.MultiDiscrete([2, 2]), OBSERVATIONS, "Expected Discrete actions or a bounded Box"),
        (gym.spaces.Box(-np.inf, np.inf, (2,)), OBSERVATIONS, "Expected Discrete actions or a bounded Box"),
        (gym.spaces.Box(-1, 1, (2, 2)), OBSERVATIONS, "Expected Discrete actions or a bounded Box"),
        (gym.spaces.Discrete(2), gym.spaces.Box(0, 1, (4, 4)), "FlattenObservation"),
    ],
)
def test_other_spaces_are_refused(action_space: Any, observation_space: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_actor(spaces(action_space, observation_space), (4,), "relu")


def two_headed(space: gym.spaces.Box) -> TwoHeadedGaussianActor:
    actor = make_actor(spaces(space), (16, 32), "tanh", TwoHeadedGaussianActor)
    assert isinstance(actor, TwoHeadedGaussianActor)
    return actor


def test_the_two_headed_actor_samples_its_mean_and_deviation() -> None:
    actor = two_headed(gym.spaces.Box(-1.0, 1.0, (1,)))
    observation = torch.zeros(1, 3)
    with torch.no_grad():
        mean, raw = actor.network(observation)[0].tolist()
        noise = actor.noise(1, 20_000, torch.Generator().manual_seed(0))[0]
        sampled = actor.sample(observation.expand(20_000, 3), noise)
    deviation = float(np.log1p(np.exp(raw)))
    assert sampled.mean().item() == pytest.approx(mean, abs=0.03)  # 4 standard errors are 0.02
    assert sampled.std().item() == pytest.approx(deviation, rel=0.03)
