"""Collects rollouts of a vector environment, of fixed length or of complete episodes, into arrays of shape [T, N]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from gym_dr.arrays import Floats, Mask
from gym_dr.compiled.steps import Steps
from gym_dr.envs.mirror import attribute_of
from gym_dr.envs.played import Played
from gym_dr.envs.stack import supports
from gym_dr.errors import ConfigError
from gym_dr.randomization.context import ContextRange, normalized_context
from gym_dr.training.behavior import Behavior, CompiledBehavior, allocate_steps, draw_noise
from gym_dr.wrappers.record import RecordEpisodes

_PIECE = 8  # fewest steps of a call when a rollout's length is unknown, and the part of those so far: an eighth

# noise, steps, row, episode starts in the row -> the steps that were made
Advance = Callable[[Floats, Steps, int, Mask], Played]


@dataclass(frozen=True, kw_only=True)
class RolloutMemory:
    """Inputs and states of a policy's memory in T steps of N sub-environments."""

    starts: Tensor  # (T + 1, N) bool, whether an observation is the first of an episode
    previous: Tensor  # (T + 1, N, A) previous actions as memory sees them; 0 at the start of an episode
    states: Tensor  # (T, N, H) the policy's states before each step
    # states of a critic with its own memory: before each step, (T, N, H), and after each observation, (T + 1, N, H);
    # see ActorCritic.recall
    critic_states: Tensor | None = None
    critic_memories: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """T steps of N sub-environments. Row t is a step; observations have one more row."""

    observations: Tensor  # (T + 1, N, obs) float32; where an episode ended at t, row t + 1 is its final observation
    actions: Tensor  # (T, N, ...) as the network outputs them
    log_probs: Tensor  # (T, N) of the actions under the policy that chose them
    rewards: Floats  # (T, N)
    terminated: Mask  # (T, N)
    truncated: Mask  # (T, N)
    # (T, N), False on steps to ignore, such as resets, which ignore the action
    valid: Mask
    # (T + 1, N, k) current draw at each observation, scaled to +- CONTEXT_SPAN; None if the critic does not observe it
    context: Tensor | None = None
    critic: Tensor | None = None  # (T + 1, N, c) what the critic alone observes, as reported; None if nothing
    memory: RolloutMemory | None = None  # None if the policy has no memory
    # added after the collection:
    labels: Tensor | None = None  # (T, N, ...) to imitate
    draws: Tensor | None = None  # (T + 1, N, k) like the context, for the memory to predict


class RolloutCollector:
    """Collects consecutive rollouts from a NEXT_STEP vector environment, without building a graph."""

    def __init__(
        self, envs: VectorEnv[Any, Any, Any], rollout_steps: int, device: str, visible: Sequence[ContextRange] = ()
    ) -> None:
        """Prepares for rollouts.

        Args:
            envs: NEXT_STEP autoreset.
            rollout_steps: Steps of each sub-environment.
            device: Device of the networks.
            visible: Parameters in the rollouts' context, for an asymmetric critic.
        """
        self.envs, self.rollout_steps, self.device = envs, rollout_steps, device
        self.visible = visible
        self._context: npt.NDArray[Any] = np.zeros((envs.num_envs, len(visible)))  # (N, k), current
        self._critic: Floats = np.zeros((envs.num_envs, attribute_of(envs, "critic_size") or 0), np.float32)  # current
        self._observations: Any = None  # (N, obs), current; ``reset`` comes before ``collect``
        self._valid: Mask = np.ones((2, envs.num_envs), np.bool_)  # the last step and the next; resets are not

    def reset(self, seed: int) -> None:
        """Starts new episodes in all sub-environments; unfinished ones are dropped."""
        self._observations, info = self.envs.reset(seed=seed)
        nothing = np.zeros(self.envs.num_envs)
        played = Played.of_step(self._observations, nothing, nothing, nothing, info)
        self._context[:], self._critic = self._contexts_of(played), self._critic_of(played)[0]
        self._valid[:] = [[False], [True]]

    def collect(self, behavior: Behavior, seed: int | None = None) -> Rollout:
        """Plays ``rollout_steps`` steps with the behavior's actions, after a ``reset`` if there is a seed.

        Environments that support it play many steps with a small policy in one compiled call.
        """
        if seed is not None:
            self.reset(seed)
        count, num_envs = self.rollout_steps, self.envs.num_envs
        behavior.begin()
        noise = draw_noise(behavior, count, num_envs)
        steps = allocate_steps(behavior, count, self._observations)
        valid = np.empty((count + 2, num_envs), np.bool_)  # row t + 1 is step t
        contexts = np.empty((count + 1, *self._context.shape), np.float32)
        critic = np.empty((count + 1, *self._critic.shape), np.float32)
        valid[:2], contexts[0], critic[0] = self._valid, self._context, self._critic
        remembered = behavior.remembered
        advance = _advance(self.envs, behavior)
        t = 0
        while t < count:
            played = advance(noise, steps, t, ~valid[t])  # an observation after a reset begins an episode
            first, t = t, t + len(played.ended)
            valid[first + 2 : t + 2] = ~played.ended  # the step after an end is a reset
            contexts[first + 1 : t + 1], critic[first + 1 : t + 1] = self._contexts_of(played), self._critic_of(played)
        self._observations = steps.observations[count].copy()
        self._valid, self._context, self._critic = valid[count:].copy(), contexts[count].copy(), critic[count].copy()
        rollout = _rollout(
            *(steps, valid[1:-1], self.device, contexts if self.visible else None),
            critic=critic if critic.shape[2] else None,
        )
        if not behavior.units:
            return rollout
        return replace(rollout, memory=_memory(behavior, rollout.actions, ~valid[:-1], steps.states, remembered[1]))

    def _contexts_of(self, played: Played) -> npt.NDArray[Any]:
        """The context at each observation after these steps; broadcasts to ``(T, N, k)``."""
        if not self.visible:
            return self._context
        context = normalized_context(played.draws["params"], self.visible)
        if context.ndim == 1:  # the environment lacks these parameters: all are nominal
            return context
        return context[played.episodes(*np.ogrid[: len(played.ended), : self.envs.num_envs])]

    def _critic_of(self, played: Played) -> Floats:
        """What the critic alone observes after these steps; broadcasts to ``(T, N, c)``.

        Raises:
            ConfigError: The environment does not report it.
        """
        found = played.signals.get("critic") if self._critic.shape[1] else self._critic[None]
        if found is None or found.shape[1:] != self._critic.shape:
            raise ConfigError(
                f"Expected info['critic'] of shape {self._critic.shape}, since the environment's critic_size is "
                f"{self._critic.shape[1]}, got {'none' if found is None else found.shape[1:]}. Report it at each reset "
                "and step, and use no wrappers that hide it."
            )
        return cast(Floats, found)


def collect_episodes(
    envs: RecordEpisodes, behavior: Behavior, episodes_per_env: int, seed: int | None, device: str
) -> Rollout:
    """Resets all sub-environments and plays the same number of complete episodes in each.

    A sub-environment that has finished plays on until the others have: its further steps are not valid and its further
    episodes are not recorded. Taking the first episodes to end instead would favor short ones.

    Args:
        envs: NEXT_STEP autoreset.
        behavior: Chooses actions.
        episodes_per_env: Episodes of each sub-environment.
        seed: Seed of the reset; None to keep the environments' generators.
        device: Device of the networks.

    Returns:
        A rollout as long as the slowest sub-environment took; ``valid`` marks the steps of the complete episodes.
    """
    behavior.begin()
    observations, _ = envs.reset(seed=seed)
    envs.quota[:] = episodes_per_env
    advance = _advance(envs, behavior)
    nowhere = np.zeros(envs.num_envs, np.bool_)  # the policy has no memory to clear
    pieces: list[Steps] = []
    while (envs.quota > 0).any():
        size = max(_PIECE, sum(len(piece.rewards) for piece in pieces) // _PIECE)
        noise = draw_noise(behavior, size, envs.num_envs)
        steps, t = allocate_steps(behavior, size, observations), 0
        while t < size:
            t += len(advance(noise, steps, t, nowhere).ended)
        observations = steps.observations[-1]
        pieces.append(steps._replace(observations=steps.observations[:-1]))
    joined: list[Any] = [np.concatenate(rows) for rows in zip(*pieces, strict=True)]
    ended = Steps(*joined).terminated | Steps(*joined).truncated
    valid: Mask = np.asarray(np.cumsum(ended, axis=0) - ended < episodes_per_env)
    valid[1:] &= ~ended[:-1]  # the others are resets
    count = int(np.flatnonzero(valid.any(axis=1))[-1]) + 1
    observations = np.append(joined[0], observations[None], 0)[: count + 1]
    steps = Steps(*(rows[:count] for rows in joined))._replace(observations=observations)
    return _rollout(steps, valid[:count], device)


def _advance(envs: VectorEnv[Any, Any, Any], behavior: Behavior) -> Advance:
    """A function that plays all rows from one on in a call, if the environment can; otherwise one."""

    def step(noise: Floats, steps: Steps, t: int, starts: Mask) -> Played:
        made = envs.step(behavior.act(steps, t, noise[t], starts))
        steps.observations[t + 1], steps.rewards[t], steps.terminated[t], steps.truncated[t], _ = made
        return Played.of_step(*made)

    if not (isinstance(behavior, CompiledBehavior) and supports(envs, "rollout")):
        return step
    policy = behavior.policy
    return lambda noise, steps, t, starts: cast(Any, envs).rollout(policy, noise, steps, t, len(noise))


def _rollout(
    steps: Steps, valid: Mask, device: str, contexts: Floats | None = None, critic: Floats | None = None
) -> Rollout:
    actions = steps.raw_actions if steps.raw_actions.shape[2] else steps.discrete
    return Rollout(
        observations=torch.from_numpy(steps.observations).to(device),
        actions=torch.from_numpy(actions).to(device),
        rewards=steps.rewards.astype(np.float32),
        terminated=steps.terminated,
        truncated=steps.truncated,
        valid=valid,
        context=None if contexts is None else torch.from_numpy(contexts).to(device),
        critic=None if critic is None else torch.from_numpy(critic).to(device),
        log_probs=torch.from_numpy(steps.log_probs).to(device),
    )


def _memory(behavior: Behavior, actions: Tensor, starts: Mask, states: Floats, last: Floats) -> RolloutMemory:
    """The memory of a rollout; ``last`` (N, A) is the action before the rollout, as memory sees it."""
    begins = torch.from_numpy(starts).to(actions.device)
    first = torch.from_numpy(last).to(actions.device)
    previous = torch.cat([first[None], behavior.actor.coded(actions)]).masked_fill(begins[..., None], 0.0)
    return RolloutMemory(starts=begins, previous=previous, states=torch.from_numpy(states).to(actions.device))
