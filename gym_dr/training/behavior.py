"""What chooses actions: an actor's behavior, with torch or, for small networks on the CPU, in one compiled call.

Both use the same noise, drawn from the algorithm's generator for many steps at once, so they give the same actions,
except for rare ones where rounding decides.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from gym_dr.arrays import Floats
from gym_dr.compiled import policy as compiled
from gym_dr.compiled.policy import SmallPolicy
from gym_dr.training.api import Policy, seed_for
from gym_dr.training.networks import STD_FLOOR, Actor, CategoricalActor, GaussianActor, linear_layers
from gym_dr.training.normalization import NormalizeObservations

SMALL = 50_000  # weights; above, torch's matrix products outweigh its call overhead
_POLICY_STEPS = 64  # steps of noise that a trained policy draws at a time


class TorchBehavior:
    """Samples actions of any actor, on any device."""

    def __init__(self, actor: Actor, generator: torch.Generator, device: str) -> None:
        """Samples from ``actor``, whose weights are on ``device``, with noise from ``generator``, on the CPU."""
        self.actor, self.generator, self.device = actor, generator, device

    def begin(self) -> None:
        """Called before each rollout, since weights may have changed; does nothing here."""

    def act(self, observations: Floats, noise: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Actions for observations ``(N, obs)`` float32 and noise ``(N, numbers)``.

        Returns:
            Actions as the network outputs them, ``(N,)`` int64 or ``(N, actions)`` float32, and for the environment.
        """
        with torch.no_grad():
            inputs, by = torch.as_tensor(observations).to(self.device), torch.as_tensor(noise).to(self.device)
            actions = self.actor.sample(inputs, by)
            return actions.cpu().numpy(), self.actor.to_env(actions)


class CompiledBehavior:
    """Samples actions of a small actor on the CPU."""

    def __init__(self, actor: Actor, generator: torch.Generator, num_envs: int) -> None:
        """Samples from ``actor`` for ``num_envs`` observations at a time."""
        self.actor, self.generator = actor, generator
        self._layers = linear_layers(actor.network)
        sizes = [self._layers[0].in_features, *(layer.out_features for layer in self._layers)]
        discrete = isinstance(actor, CategoricalActor)
        gaussian = isinstance(actor, GaussianActor)
        bounds = np.zeros((2, 0)) if discrete else np.stack([cast(Any, actor).space.low, cast(Any, actor).space.high])
        self.policy = SmallPolicy.allocate(
            sizes=sizes,
            tanh=any(isinstance(module, torch.nn.Tanh) for module in actor.network),
            kind=compiled.CATEGORICAL if discrete else compiled.GAUSSIAN if gaussian else compiled.TWO_HEADS,
            low=bounds[0].astype(np.float32),
            high=bounds[1].astype(np.float32),
            floor=STD_FLOOR,
            num_envs=num_envs,
        )
        self._choices = np.zeros(num_envs, np.int64)
        self._raw_actions = np.zeros((num_envs, bounds.shape[1]), np.float32)
        self._env_actions = np.zeros_like(self._raw_actions)

    def begin(self) -> None:
        """Copies the weights, which may have changed since the last rollout."""
        with torch.no_grad():
            weights: list[tuple[torch.Tensor, torch.Tensor]] = [(layer.weight, layer.bias) for layer in self._layers]
            if isinstance(first := self.actor.network[0], NormalizeObservations):
                weights[0] = first.folded(self._layers[0])
            parts = [part.reshape(-1) for weight, bias in weights for part in (weight.t(), bias)]
            self.policy.network.weights[:] = torch.cat(parts).numpy()
            if isinstance(self.actor, GaussianActor):
                self.policy.std[:] = self.actor.log_std.exp().numpy()

    def act(self, observations: Floats, noise: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """See ``TorchBehavior.act``."""
        actions = self._choices, self._raw_actions, self._env_actions
        cast(Any, compiled.act)(self.policy, observations, noise, *actions)
        if isinstance(self.actor, CategoricalActor):
            return self._choices.copy(), self._choices + self.actor.start
        return self._raw_actions.copy(), self._env_actions.astype(self.actor.space.dtype)


Behavior: TypeAlias = TorchBehavior | CompiledBehavior


def make_behavior(actor: Actor, generator: torch.Generator, device: str, num_envs: int) -> Behavior:
    """The fastest behavior of an actor."""
    if device == "cpu" and sum(parameter.numel() for parameter in actor.parameters()) <= SMALL:
        return CompiledBehavior(actor, generator, num_envs)
    return TorchBehavior(actor, generator, device)


def draw_noise(behavior: Behavior, steps: int, num_envs: int) -> Floats:
    """Noise to sample the actions of many steps with, shape ``(steps, num_envs, numbers)`` float32."""
    noise: Floats = behavior.actor.noise(steps, num_envs, behavior.generator).numpy()
    return noise


def trained_policy(actor: Actor, *, deterministic: bool = False) -> Policy:
    """The policy of a trained actor: the mean of continuous actions, samples of discrete ones.

    ``deterministic`` gives the most likely discrete action instead.

    The spread of continuous actions is for exploration. The most likely discrete action is often worse than a sample:
    a half-trained lander would hover forever. Samples come from a generator with a fixed seed, so that an evaluation
    can be repeated.
    """
    if deterministic:
        return _most_likely(actor)
    generator = torch.Generator().manual_seed(seed_for(0, stream=2, index=2))
    behaviors: dict[int, Behavior] = {}  # by the number of observations
    ahead: list[Floats] = []

    def policy(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        num_envs = len(observations)
        if num_envs not in behaviors:
            behaviors[num_envs] = make_behavior(actor, generator, "cpu", num_envs)
            behaviors[num_envs].begin()
        behavior = behaviors[num_envs]
        if not ahead or len(ahead[-1]) != num_envs:
            ahead[:] = draw_noise(behavior, _POLICY_STEPS, num_envs)[::-1]
        noise = ahead.pop()
        if not isinstance(actor, CategoricalActor):
            noise = np.zeros_like(noise)
        _, env_actions = behavior.act(np.ascontiguousarray(observations, np.float32), noise)
        return env_actions

    return policy


def _most_likely(actor: Actor) -> Policy:
    def policy(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        with torch.no_grad():
            inputs = torch.as_tensor(np.ascontiguousarray(observations, np.float32))
            return actor.to_env(actor.most_likely(inputs))

    return policy
