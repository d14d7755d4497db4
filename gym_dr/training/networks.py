"""Networks for flat observations: critics, and actors for discrete and continuous actions.

The methods of an actor with memory take features in place of observations: the observation, followed by the memory's
state (``Sequences.kept_steps``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gym_dr.compiled.network import MirrorImage
from gym_dr.envs.mirror import MirrorMap
from gym_dr.errors import ConfigError
from gym_dr.training.memory import PLAIN, GRUMemory
from gym_dr.training.normalization import NormalizeObservations
from gym_dr.wrappers.context import shown_columns

STD_FLOOR = 1e-6  # keeps the standard deviation of TwoHeadedGaussianActor above 0

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "elu": nn.ELU}


def mlp(inputs: int, hidden_sizes: Sequence[int], outputs: int, activation: str) -> nn.Sequential:
    """A multilayer perceptron with torch's initialization and a linear last layer."""
    sizes = [inputs, *hidden_sizes]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after, **PLAIN), _ACTIVATIONS[activation]()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs, **PLAIN))


class RememberingActor(nn.Module):
    """Base of all actors, with their memory, if any.

    Attributes:
        network: Takes observations or features.
        code_size: A, the numbers of one action in ``coded``.
        memory: None without memory.
        mirror: What outputs are averaged with; None if the environment declares no mirror image.
    """

    def __init__(self, network: nn.Sequential, code_size: int) -> None:
        """Takes the network; ``make_actor`` adds a memory."""
        super().__init__()
        self.network, self.code_size = network, code_size
        self.memory: GRUMemory | None = None
        self.mirror: MirrorImage | None = None

    def outputs(self, observations: Tensor) -> Tensor:
        """What the network, maybe averaged with its mirror image, makes of observations or features."""
        own: Tensor = self.network(observations)
        if self.mirror is None:
            return own
        places, signs, own_places, own_signs = (torch.from_numpy(part).to(own.device) for part in self.mirror)
        image: Tensor = self.network(observations[..., places] * signs)
        return 0.5 * (own + image[..., own_places] * own_signs)

    def memory_inputs(self, observations: Tensor, previous: Tensor) -> Tensor:
        """Inputs of the memory: normalized observations ``(..., obs)`` and the previous actions ``(..., A)``."""
        first = self.network[0]
        seen = first(observations) if isinstance(first, NormalizeObservations) else observations
        return torch.cat([seen, previous], -1)


class CategoricalActor(RememberingActor):
    """Discrete actions with probabilities softmax(network(observation))."""

    def __init__(self, inputs: int, hidden_sizes: Sequence[int], space: gym.spaces.Discrete, activation: str) -> None:
        """Builds the network for a ``Discrete`` action space."""
        super().__init__(mlp(inputs, hidden_sizes, int(space.n), activation), int(space.n))
        self.start, self.choices = int(space.start), int(space.n)

    def coded(self, actions: Tensor) -> Tensor:
        """Sampled actions ``(...)`` as memory sees them, ``(..., A)`` float32."""
        return nn.functional.one_hot(actions, self.choices).float()

    def noise(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Noise for ``steps`` calls of ``sample``: uniform on [0, 1), shape ``(steps, num_envs, 1)``."""
        return torch.rand((steps, num_envs, 1), generator=generator, **PLAIN)

    def sample(self, observations: Tensor, noise: Tensor) -> Tensor:
        """Random actions ``(N,)``, counted from 0, for observations ``(N, obs)`` and noise ``(N, 1)``.

        Each is the first action whose cumulative probability is above the noise.
        """
        reached = self.outputs(observations).softmax(-1).cumsum(-1)
        return (noise >= reached[..., :-1]).sum(-1)

    def most_likely(self, observations: Tensor) -> Tensor:
        """The actions ``(N,)`` of highest probability, counted from 0, for observations ``(N, obs)``."""
        return self.outputs(observations).argmax(-1)

    def log_prob_and_entropy(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of sampled actions and entropies, both ``(B,)``, for observations ``(B, obs)``."""
        log_probs = self.outputs(observations).log_softmax(-1)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1), entropy

    def labels(self, observations: Tensor) -> Tensor:
        """What a student imitates: log-probabilities of all actions, shape ``(..., n)``."""
        return self.outputs(observations).log_softmax(-1)

    def divergence(self, labels: Tensor, observations: Tensor) -> Tensor:
        """Kullback-Leibler divergences of this actor from the one with these ``labels``, shape ``(B,)``."""
        return (labels.exp() * (labels - self.labels(observations))).sum(-1)

    def to_env(self, actions: Tensor) -> npt.NDArray[Any]:
        """Sampled actions as the environment takes them."""
        return np.asarray(actions.cpu().numpy() + self.start)


class _NormalActor(RememberingActor):
    """Base of actors whose continuous actions are independently normal."""

    def __init__(self, network: nn.Sequential, space: gym.spaces.Box) -> None:
        """Takes the network for a one-dimensional ``Box`` action space."""
        size = int(np.prod(space.shape))
        super().__init__(network, size)
        self.space, self.size = space, size

    def distribution(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations for observations ``(N, obs)``."""
        raise NotImplementedError

    def set_std(self, std: float) -> None:
        """Sets the initial standard deviation, up to the output of untrained layers; 1 is half of an action's range."""
        raise NotImplementedError

    def log_of(self, std: Tensor) -> Tensor:
        """Logarithms of standard deviations from ``distribution``."""
        return std.log()

    def labels(self, observations: Tensor) -> Tensor:
        """What a student imitates: means, then standard deviations, shape ``(..., 2 * actions)``."""
        mean, std = self.distribution(observations)
        return torch.cat([mean, std.expand_as(mean)], -1)

    def divergence(self, labels: Tensor, observations: Tensor) -> Tensor:
        """Kullback-Leibler divergences of this actor from the one with these ``labels``, shape ``(B,)``."""
        (mean, std), (wanted, spread) = self.distribution(observations), labels.chunk(2, dim=-1)
        ratios = (spread**2 + (wanted - mean) ** 2) / std**2
        return (self.log_of(std) - spread.log() + 0.5 * (ratios - 1.0)).sum(-1)

    def noise(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Noise for ``steps`` calls of ``sample``: standard normal, shape ``(steps, num_envs, actions)``."""
        return torch.randn((steps, num_envs, self.size), generator=generator, **PLAIN)

    def sample(self, observations: Tensor, noise: Tensor) -> Tensor:
        """Random actions ``(N, actions)``, not clipped, for observations ``(N, obs)`` and noise ``(N, actions)``."""
        mean, std = self.distribution(observations)
        return mean + std * noise

    def most_likely(self, observations: Tensor) -> Tensor:
        """The means ``(N, actions)``, not clipped, for observations ``(N, obs)``."""
        return self.distribution(observations)[0]

    def log_prob_and_entropy(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of sampled actions and entropies, both ``(B,)``, for observations ``(B, obs)``."""
        mean, std = self.distribution(observations)
        log_probs = (-0.5 * ((actions - mean) / std) ** 2 - self.log_of(std) - 0.5 * math.log(2.0 * math.pi)).sum(-1)
        entropy = (self.log_of(std) + 0.5 * math.log(2.0 * math.pi * math.e)).sum(-1)
        return log_probs, entropy.expand(len(actions))


class GaussianActor(_NormalActor):
    """Continuous actions, Normal(network(observation), exp(log_std)), mapped from [-1, 1] to the space's bounds.

    The standard deviation is a learned parameter, the same for all observations. Actions are clipped to the bounds for
    the environment only, so log-probabilities remain those of the normal distribution.
    """

    low: Tensor
    high: Tensor

    def __init__(self, inputs: int, hidden_sizes: Sequence[int], space: gym.spaces.Box, activation: str) -> None:
        """Builds the network for a one-dimensional ``Box`` action space."""
        super().__init__(mlp(inputs, hidden_sizes, int(np.prod(space.shape)), activation), space)
        self.log_std = nn.Parameter(torch.zeros(self.size, **PLAIN))
        self.register_buffer("low", torch.as_tensor(space.low, **PLAIN), persistent=False)
        self.register_buffer("high", torch.as_tensor(space.high, **PLAIN), persistent=False)

    def distribution(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        return self.outputs(observations), self.log_stds().exp()

    def log_stds(self) -> Tensor:
        """Logarithms of the standard deviations ``(actions,)``, averaged with those of the mirror image."""
        if self.mirror is None:
            return self.log_std
        return 0.5 * (self.log_std + self.log_std[torch.from_numpy(self.mirror.output_places)])

    def set_std(self, std: float) -> None:
        nn.init.constant_(self.log_std, math.log(std))

    def log_of(self, std: Tensor) -> Tensor:
        return self.log_stds()

    def coded(self, actions: Tensor) -> Tensor:
        """Sampled actions ``(..., actions)`` as memory sees them, in [-1, 1]."""
        return actions.clamp(-1.0, 1.0)

    def to_env(self, actions: Tensor) -> npt.NDArray[Any]:
        """Sampled actions as the environment takes them."""
        unit = 0.5 * (actions.clamp(-1.0, 1.0) + 1.0)
        scaled = torch.clamp(self.low + unit * (self.high - self.low), self.low, self.high)
        return scaled.cpu().numpy().astype(self.space.dtype)


class TwoHeadedGaussianActor(_NormalActor):
    """Continuous actions from shared layers with two heads: the mean, and the standard deviation through a softplus.

    The policy of Gymnasium's REINFORCE tutorial. Actions are in the environment's units and clipped to the bounds for
    the environment only.
    """

    def __init__(self, inputs: int, hidden_sizes: Sequence[int], space: gym.spaces.Box, activation: str) -> None:
        """Builds the network for a one-dimensional ``Box`` action space."""
        # the last layer holds both heads
        super().__init__(mlp(inputs, hidden_sizes, 2 * int(np.prod(space.shape)), activation), space)

    def distribution(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = self.outputs(observations).chunk(2, dim=-1)
        return mean, nn.functional.softplus(raw) + STD_FLOOR

    def set_std(self, std: float) -> None:
        wanted = torch.as_tensor(0.5 * std * (self.space.high - self.space.low), **PLAIN)
        with torch.no_grad():  # inverse of the softplus
            linear_layers(self.network)[-1].bias[self.size :] = wanted + (-torch.expm1(-wanted)).log()

    def coded(self, actions: Tensor) -> Tensor:
        """Sampled actions ``(..., actions)`` as memory sees them, in [-1, 1]."""
        low, high = (torch.as_tensor(b, device="cpu").to(actions) for b in (self.space.low, self.space.high))
        return (2.0 * (actions - low) / (high - low) - 1.0).clamp(-1.0, 1.0)

    def to_env(self, actions: Tensor) -> npt.NDArray[Any]:
        """Sampled actions as the environment takes them."""
        clipped: npt.NDArray[Any] = np.clip(actions.cpu().numpy(), self.space.low, self.space.high)
        return clipped.astype(self.space.dtype)


Actor: TypeAlias = CategoricalActor | GaussianActor | TwoHeadedGaussianActor


def make_actor(
    envs: Any,
    hidden_sizes: Sequence[int],
    activation: str,
    continuous: type[GaussianActor] | type[TwoHeadedGaussianActor] = GaussianActor,
    normalize_observations: bool = False,
    memory_size: int = 0,
    init: str = "torch",
    mirror: MirrorMap | None = None,
) -> Actor:
    """The actor for a vector environment's spaces.

    Args:
        envs: The vector environment.
        hidden_sizes: Units of the hidden layers.
        activation: "relu", "tanh" or "elu", between layers.
        continuous: The class of actors for continuous actions.
        normalize_observations: Whether the network's first layer is ``NormalizeObservations``.
        memory_size: Size of the memory; 0 for none.
        init: Initial weights of the memory; see ``GRUMemory``.
        mirror: What the policy without memory is averaged with; None for nothing.

    Raises:
        ConfigError: The networks do not support the spaces.
    """
    inputs = observation_size(envs)
    space = envs.single_action_space
    actor: Actor
    if isinstance(space, gym.spaces.Discrete):
        actor = CategoricalActor(inputs + memory_size, hidden_sizes, space, activation)
    elif isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.is_bounded():
        actor = continuous(inputs + memory_size, hidden_sizes, space, activation)
    else:
        raise ConfigError(f"Expected Discrete actions or a bounded Box of one dimension, got {space}.")
    if normalize_observations:
        actor.network.insert(0, NormalizeObservations(inputs - shown_columns(envs)))
    if memory_size:
        actor.memory = GRUMemory(inputs + actor.code_size, memory_size, init)
    elif mirror is not None:
        size, outputs = len(mirror.action_places), linear_layers(actor.network)[-1].out_features
        places = np.append(mirror.action_places, mirror.action_places + size)[:outputs]
        signs = np.append(mirror.action_signs, np.ones(size, np.float32))[:outputs]  # standard deviations have none
        actor.mirror = MirrorImage(mirror.observation_places, mirror.observation_signs, places, signs)
    return actor


def observation_size(envs: Any) -> int:
    """The length of one observation.

    Raises:
        ConfigError: Observations are not flat vectors of numbers.
    """
    space = envs.single_observation_space
    if not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1):
        raise ConfigError(
            f"Expected observations in a Box of one dimension, got {space}. "
            "Flatten them in a function for gym_dr.register, for example with gymnasium.wrappers.FlattenObservation."
        )
    return int(space.shape[0])


def activation_of(network: nn.Sequential) -> str:
    """The name of an ``mlp``'s activation."""
    return next(name for name, kind in _ACTIVATIONS.items() if any(isinstance(layer, kind) for layer in network))


def linear_layers(network: nn.Sequential) -> list[nn.Linear]:
    """The layers of an ``mlp`` with weights, from input to output."""
    return [layer for layer in network if isinstance(layer, nn.Linear)]


def orthogonal(network: nn.Sequential, last_gain: float) -> None:
    """Initializes weights orthogonally and biases with 0.

    Saxe et al. 2014, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks".

    Args:
        network: Made by ``mlp``; changed in place.
        last_gain: Gain of the last layer; the other layers have the square root of 2.
    """
    layers = linear_layers(network)
    for layer in layers:
        nn.init.orthogonal_(layer.weight, last_gain if layer is layers[-1] else math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
