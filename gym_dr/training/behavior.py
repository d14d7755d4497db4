"""Behaviors choose an actor's actions: with torch or, for small networks on the CPU, in one compiled call.

Both use the same noise, drawn from the algorithm's generator for many steps at once, so they give the same actions
except where rounding decides, which is rare.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from gym_dr.arrays import Floats, Mask
from gym_dr.compiled import policy as compiled
from gym_dr.compiled.policy import SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.errors import ConfigError
from gym_dr.training.api import EpisodeStarts, Policy, seed_for
from gym_dr.training.config import AS_IN_TRAINING
from gym_dr.training.memory import PLAIN
from gym_dr.training.networks import STD_FLOOR, Actor, CategoricalActor, GaussianActor, activation_of, linear_layers
from gym_dr.training.normalization import NormalizeObservations

SMALL = 50_000  # weights; above, torch's matrix products outweigh its call overhead
_POLICY_STEPS = 64  # steps of noise that a trained policy draws at a time


class TorchBehavior:
    """Samples actions of any actor, on any device.

    Attributes:
        units: H, the numbers that the actor remembers; 0 without memory.
    """

    def __init__(
        self, actor: Actor, generator: torch.Generator, device: str, num_envs: int, *, deterministic: bool = False
    ) -> None:
        """Samples from ``actor``, whose weights are on ``device``, with noise from ``generator``, on the CPU.

        ``deterministic`` takes the most likely actions instead.
        """
        self.actor, self.generator, self.device = actor, generator, device
        self._deterministic = deterministic
        self.units = 0 if actor.memory is None else actor.memory.size
        self._state = torch.zeros(num_envs, self.units, **PLAIN).to(device)
        self._previous = torch.zeros(num_envs, actor.code_size, **PLAIN).to(device)

    def begin(self) -> None:
        """Called before each rollout, since weights may have changed; does nothing here."""

    @property
    def remembered(self) -> tuple[Floats, Floats]:
        """The state ``(N, H)`` and the last action as memory sees it ``(N, A)``; copies."""
        return self._state.cpu().numpy().copy(), self._previous.cpu().numpy().copy()

    def restore(self, state: Floats, previous: Floats) -> None:
        """Sets ``remembered``."""
        self._state, self._previous = (torch.from_numpy(part.copy()).to(self.device) for part in (state, previous))

    def act(self, steps: Steps, t: int, noise: Floats, starts: Mask) -> npt.NDArray[Any]:
        """Chooses actions for the observations in row ``t``, and fills in the rest of the row.

        Args:
            steps: Row ``t`` holds observations ``(N, obs)``.
            t: The row.
            noise: Noise for this row, ``(N, numbers)``.
            starts: Where an observation is the first of an episode and clears the memory, ``(N,)``.

        Returns:
            The actions for the environment.
        """
        with torch.no_grad():
            inputs, by = (torch.from_numpy(array).to(self.device) for array in (steps.observations[t], noise))
            inputs = self._features(inputs, steps, t, torch.from_numpy(starts).to(self.device))
            actions = self.actor.most_likely(inputs) if self._deterministic else self.actor.sample(inputs, by)
            log_probs, _ = self.actor.log_prob_and_entropy(inputs, actions)
            if self.units:
                self._previous = self.actor.coded(actions)
        (steps.raw_actions if steps.raw_actions.shape[2] else steps.discrete)[t] = actions.cpu().numpy()
        steps.log_probs[t] = log_probs.cpu().numpy()
        return self.actor.to_env(actions)

    def _features(self, observations: torch.Tensor, steps: Steps, t: int, starts: torch.Tensor) -> torch.Tensor:
        if self.actor.memory is None:
            return observations
        inputs = self.actor.memory_inputs(observations, self._previous.masked_fill(starts[:, None], 0.0))
        before, self._state = self.actor.memory.step(inputs, self._state, starts)
        steps.states[t] = before.cpu().numpy()
        return torch.cat([observations, self._state], -1)


class CompiledBehavior:
    """Samples actions of a small actor on the CPU.

    Attributes:
        units: See ``TorchBehavior``.
    """

    def __init__(self, actor: Actor, generator: torch.Generator, num_envs: int) -> None:
        """Samples from ``actor`` for ``num_envs`` observations at a time."""
        self.actor, self.generator = actor, generator
        self.units = 0 if actor.memory is None else actor.memory.size
        self._layers = linear_layers(actor.network)
        sizes = [self._layers[0].in_features, *(layer.out_features for layer in self._layers)]
        discrete = isinstance(actor, CategoricalActor)
        gaussian = isinstance(actor, GaussianActor)
        bounds = np.zeros((2, 0)) if discrete else np.stack([cast(Any, actor).space.low, cast(Any, actor).space.high])
        self.policy = SmallPolicy.allocate(
            sizes=sizes,
            activation=activation_of(actor.network),
            kind=compiled.CATEGORICAL if discrete else compiled.GAUSSIAN if gaussian else compiled.TWO_HEADS,
            low=bounds[0].astype(np.float32),
            high=bounds[1].astype(np.float32),
            floor=STD_FLOOR,
            num_envs=num_envs,
            units=self.units,
            mirror=actor.mirror,
        )
        self._chooser: compiled.Chooser | None = None  # for the steps of the latest call

    def begin(self) -> None:
        """Copies the weights, which may have changed since the last rollout."""
        with torch.no_grad():
            first = self.actor.network[0]
            layers: list[tuple[torch.Tensor, torch.Tensor]] = [(layer.weight, layer.bias) for layer in self._layers]
            if isinstance(first, NormalizeObservations):
                layers[0] = first.folded(*layers[0])
            parts = [part.reshape(-1) for weight, bias in layers for part in (weight.t(), bias)]
            self.policy.network.weights[:] = torch.cat(parts).numpy()
            if isinstance(self.actor, GaussianActor):
                self.policy.std[:] = self.actor.log_stds().exp().numpy()
            if self.actor.memory is not None:
                unit = self.actor.memory.unit
                weight, bias = unit.weight_ih.data, unit.bias_ih.data
                if isinstance(first, NormalizeObservations):
                    weight, bias = first.folded(weight, bias)
                parts = [weight.t().reshape(-1), unit.weight_hh.t().reshape(-1), bias, unit.bias_hh]
                self.policy.memory.weights[:] = torch.cat(parts).numpy()

    @property
    def remembered(self) -> tuple[Floats, Floats]:
        """See ``TorchBehavior.remembered``."""
        return self.policy.memory.state.copy(), self.policy.memory.previous.copy()

    def restore(self, state: Floats, previous: Floats) -> None:
        """See ``TorchBehavior.restore``."""
        self.policy.memory.state[:], self.policy.memory.previous[:] = state, previous

    def act(self, steps: Steps, t: int, noise: Floats, starts: Mask) -> npt.NDArray[Any]:
        """See ``TorchBehavior.act``."""
        if self._chooser is None or self._chooser.acting.steps is not steps:
            self._chooser = compiled.Chooser(self.policy, steps, np.empty((1, *noise.shape), np.float32))
        self._chooser.acting.noise[0] = noise
        numbers = self._chooser.row(t, starts)
        if isinstance(self.actor, CategoricalActor):
            chosen: npt.NDArray[Any] = steps.discrete[t] + self.actor.start
            return chosen
        return numbers.astype(self.actor.space.dtype)


Behavior: TypeAlias = TorchBehavior | CompiledBehavior


def make_behavior(actor: Actor, generator: torch.Generator, device: str, num_envs: int) -> Behavior:
    """The fastest behavior of an actor."""
    if device == "cpu" and sum(parameter.numel() for parameter in actor.parameters()) <= SMALL:
        return CompiledBehavior(actor, generator, num_envs)
    return TorchBehavior(actor, generator, device, num_envs)


def draw_noise(behavior: Behavior, steps: int, num_envs: int) -> Floats:
    """Noise for sampling the actions of many steps, shape ``(steps, num_envs, numbers)`` float32."""
    return np.asarray(behavior.actor.noise(steps, num_envs, behavior.generator).numpy())


def allocate_steps(behavior: Behavior, steps: int, observations: npt.NDArray[Any]) -> Steps:
    """Memory for ``steps`` steps of a behavior, with the first row's observations ``(N, obs)`` filled in."""
    actor = behavior.actor
    num_envs, inputs = observations.shape
    actions = 0 if isinstance(actor, CategoricalActor) else actor.size
    allocated = Steps.allocate(steps, num_envs, inputs=inputs, actions=actions, units=behavior.units)
    allocated.observations[0] = observations
    return allocated


def trained_policy(actor: Actor, *, deterministic: bool = False) -> Policy:
    """The policy of a trained actor: the mean of continuous actions, samples of discrete ones.

    ``deterministic`` gives the most likely discrete action instead.

    The standard deviation of continuous actions serves exploration. The most likely discrete action is often worse than
    a sample: a half-trained lander would hover forever. Samples come from a generator with a fixed seed, so evaluations
    can be repeated.
    """
    if actor.memory is not None:
        return RememberingPolicy(actor, deterministic=deterministic)
    return MemorylessActorPolicy(actor, deterministic=deterministic)


class _ActorPolicy:
    """Base of policies of a trained actor, for any number of observations at a time.

    Attributes:
        actor: The actor.
    """

    def __init__(self, actor: Actor, *, deterministic: bool = False) -> None:
        """See ``trained_policy``."""
        self.actor, self._deterministic = actor, deterministic
        self._generator = torch.Generator("cpu").manual_seed(seed_for(0, stream=2, index=2))
        self._behaviors: dict[int, Behavior] = {}  # by the number of observations
        self._rows: dict[int, Steps] = {}  # memory for their actions
        self._ahead: list[Floats] = []

    def reseed(self, seed: int) -> None:
        """Restarts the random numbers of sampled actions."""
        self._generator.manual_seed(seed)
        self._ahead.clear()

    def _behavior(self, num_envs: int) -> Behavior:
        """The behavior for a number of observations."""
        if num_envs not in self._behaviors:
            self._behaviors[num_envs] = (
                TorchBehavior(self.actor, self._generator, "cpu", num_envs, deterministic=True)
                if self._deterministic
                else make_behavior(self.actor, self._generator, "cpu", num_envs)
            )
            self._behaviors[num_envs].begin()
        return self._behaviors[num_envs]

    def _act(self, observations: npt.NDArray[Any], starts: Mask) -> npt.NDArray[Any]:
        """Actions for the environment; for arguments see ``RememberingPolicy``."""
        count = len(observations)
        behavior = self._behavior(count)
        if count not in self._rows:
            self._rows[count] = allocate_steps(behavior, 1, observations)
        self._rows[count].observations[0] = observations
        return behavior.act(self._rows[count], 0, self._noise(behavior, count), starts)

    def _noise(self, behavior: Behavior, num_envs: int) -> Floats:
        """Noise for sampling discrete actions; zeros for continuous actions and if nothing is sampled."""
        if self._deterministic or not isinstance(self.actor, CategoricalActor):
            numbers = 1 if isinstance(self.actor, CategoricalActor) else self.actor.size
            return np.zeros((num_envs, numbers), np.float32)
        if not self._ahead or len(self._ahead[-1]) != num_envs:
            self._ahead[:] = draw_noise(behavior, _POLICY_STEPS, num_envs)[::-1]
        return self._ahead.pop()


class MemorylessActorPolicy(_ActorPolicy):
    """The policy of a trained actor without memory, called as ``policy(observations)``."""

    def __call__(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Actions for the environment, for observations ``(N, obs)``."""
        return self._act(observations, np.zeros(len(observations), np.bool_))


class RememberingPolicy(_ActorPolicy):
    """The policy of a trained actor with memory, called as ``policy(observations, episode_starts)``.

    Attributes:
        size: Numbers in the state of one sub-environment: what it remembers, and its last action.
        memory_size: H, how many of these it remembers; they come first.
    """

    def __init__(self, actor: Actor, *, deterministic: bool = False) -> None:
        """Begins with an empty memory; see ``trained_policy``."""
        super().__init__(actor, deterministic=deterministic)
        self._num_envs: int | None = None
        self.memory_size = 0 if actor.memory is None else actor.memory.size
        self.size = self.memory_size + actor.code_size
        self._inputs = linear_layers(actor.network)[0].in_features - self.memory_size

    def __call__(self, observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        """Actions for the environment, for observations ``(N, obs)``.

        Args:
            observations: The environment's, not normalized.
            episode_starts: True where an observation is the first of an episode, ``(N,)``. If all are, N may change.

        Raises:
            ConfigError: Observations or ``episode_starts`` have another shape, or N changes within an episode.
        """
        observations, starts = np.asarray(observations), np.asarray(episode_starts)
        if observations.ndim != 2 or observations.shape[1] != self._inputs:  # compiled code would read out of bounds
            got = f"{observations.shape}. {AS_IN_TRAINING}"
            raise ConfigError(f"Expected observations of shape (N, {self._inputs}), got {got}")
        num_envs = len(observations)
        if starts.shape != (num_envs,) or starts.dtype != np.bool_:
            raise ConfigError(
                f"Expected episode_starts of shape ({num_envs},), True where an observation is the first of an "
                f"episode, got {starts.dtype} of shape {starts.shape}."
            )
        if num_envs != self._num_envs and not starts.all():
            before = "no observations" if self._num_envs is None else f"{self._num_envs} observations"
            raise ConfigError(
                f"Expected episode_starts to be True everywhere for {num_envs} observations after {before}: there is "
                "no memory to go on from."
            )
        self._num_envs = num_envs
        return self._act(observations, starts)

    @property
    def state(self) -> Floats:
        """Memory and last action for each sub-environment, ``(N, size)`` float32; may be set.

        Setting raises ``ConfigError`` for another shape; any N is allowed.
        """
        if self._num_envs is None:
            return np.zeros((0, self.size), np.float32)
        return np.concatenate(self._behavior(self._num_envs).remembered, 1)

    @state.setter
    def state(self, state: npt.ArrayLike) -> None:
        try:
            given = np.asarray(state, np.float32)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"Expected a state of shape (N, {self.size}) with finite numbers: {error}") from None
        if given.ndim != 2 or given.shape[1] != self.size or not np.isfinite(given).all():
            raise ConfigError(
                f"Expected a state of shape (N, {self.size}) with finite numbers, as policy.state gives it, got "
                f"{given.shape}."
            )
        self._num_envs = len(given)
        self._behavior(len(given)).restore(given[:, : self.memory_size], given[:, self.memory_size :])
