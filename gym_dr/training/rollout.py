"""Collects rollouts of a vector environment into arrays of shape [T, N]: of fixed length, or of complete episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from gym_dr.errors import ConfigError, TrainingError
from gym_dr.wrappers.record import RecordDraws

Act = Callable[[Tensor], tuple[Tensor, npt.NDArray[Any]]]  # observations (N, obs) -> actions, the same for the env


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """T steps of N sub-environments. Row t is a step; observations have one row more."""

    observations: Tensor  # (T + 1, N, obs) float32; where an episode ended at t, row t + 1 is its final observation
    actions: Tensor  # (T, N, ...) the network's own
    rewards: npt.NDArray[np.float32]  # (T, N)
    terminated: npt.NDArray[np.bool_]  # (T, N)
    truncated: npt.NDArray[np.bool_]  # (T, N)
    # (T, N), False on steps that count in nothing, such as resets, which ignore the action
    valid: npt.NDArray[np.bool_]


class RolloutCollector:
    """Steps a NEXT_STEP vector environment, from rollout to rollout, without building a graph."""

    def __init__(self, envs: VectorEnv[Any, Any, Any], rollout_steps: int, device: str) -> None:
        """Prepares for rollouts of ``rollout_steps`` steps.

        Raises:
            ConfigError: The environment resets in another way than at the next step.
        """
        _check_next_step(envs)
        self.envs = envs
        self.rollout_steps = rollout_steps
        self.device = device
        self._observations: npt.NDArray[Any] | None = None  # (N, obs), the current ones
        self._done = np.zeros(envs.num_envs, dtype=np.bool_)  # sub-environments that the next step resets

    def reset(self, seed: int) -> None:
        """Begins new episodes everywhere; those under way are dropped."""
        self._observations, _ = self.envs.reset(seed=seed)
        self._done[:] = False

    def collect(self, act: Act) -> Rollout:
        """Plays ``rollout_steps`` steps.

        Args:
            act: Chooses actions for observations of shape ``(N, obs)``.

        Raises:
            TrainingError: An observation or reward is not finite, or ``reset`` was not called.
        """
        if self._observations is None:
            raise TrainingError("Expected reset() before collect().")
        steps, num_envs = self.rollout_steps, self.envs.num_envs
        observations = torch.empty((steps + 1, num_envs, *self._observations.shape[1:]))
        rewards = np.empty((steps, num_envs), dtype=np.float32)
        terminated = np.empty((steps, num_envs), dtype=np.bool_)
        truncated, valid = np.empty_like(terminated), np.empty_like(terminated)
        actions = []
        with torch.no_grad():
            for t in range(steps):
                observations[t] = torch.as_tensor(self._observations)
                action, env_action = act(observations[t].to(self.device))
                actions.append(action)
                valid[t] = ~self._done
                self._observations, rewards[t], terminated[t], truncated[t], _ = self.envs.step(env_action)
                self._done = terminated[t] | truncated[t]
        observations[steps] = torch.as_tensor(self._observations)
        _check_finite(observations, rewards)
        return Rollout(
            observations=observations.to(self.device),
            actions=torch.stack(actions),
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            valid=valid,
        )


def collect_episodes(envs: RecordDraws, act: Act, episodes_per_env: int, seed: int | None, device: str) -> Rollout:
    """Plays the same number of complete episodes in every sub-environment, from a reset on.

    A sub-environment that is through waits for the others: its further steps are not valid and its further episodes are
    not recorded. Taking whichever episodes end first instead would favour short ones.

    Args:
        envs: NEXT_STEP autoreset.
        act: Chooses actions for observations of shape ``(N, obs)``.
        episodes_per_env: Episodes of each sub-environment.
        seed: Of the reset, or None to go on with the environments' generators.
        device: Where the networks are.

    Returns:
        As many steps as the slowest sub-environment took; ``valid`` marks those of the complete episodes.

    Raises:
        ConfigError: The environment resets in another way than at the next step.
        TrainingError: An observation or reward is not finite.
    """
    _check_next_step(envs)
    current, _ = envs.reset(seed=seed)
    done = np.zeros(envs.num_envs, dtype=np.bool_)
    finished = np.zeros(envs.num_envs, dtype=np.int64)
    observations, actions, rows = [torch.as_tensor(current, dtype=torch.float32)], [], []
    with torch.no_grad():
        while (finished < episodes_per_env).any():
            action, env_action = act(observations[-1].to(device))
            valid = ~done & (finished < episodes_per_env)
            current, rewards, terminated, truncated, _ = envs.step(env_action)
            done = terminated | truncated
            finished += done & valid
            envs.paused[:] = finished >= episodes_per_env
            observations.append(torch.as_tensor(current, dtype=torch.float32))
            actions.append(action)
            rows.append((rewards.astype(np.float32), terminated, truncated, valid))
    stacked = torch.stack(observations)
    rewards, terminated, truncated, valid = (np.stack(column) for column in zip(*rows, strict=True))
    _check_finite(stacked, rewards)
    return Rollout(
        observations=stacked.to(device),
        actions=torch.stack(actions),
        rewards=rewards,
        terminated=terminated,
        truncated=truncated,
        valid=valid,
    )


def _check_next_step(envs: VectorEnv[Any, Any, Any]) -> None:
    mode = envs.metadata.get("autoreset_mode")
    if mode != AutoresetMode.NEXT_STEP:
        raise ConfigError(f"Expected a vector environment with NEXT_STEP autoreset, got {mode}.")


def _check_finite(observations: Tensor, rewards: npt.NDArray[Any]) -> None:
    if not (torch.isfinite(observations).all() and np.isfinite(rewards).all()):
        raise TrainingError("The environment returned an observation or reward that is not finite.")
