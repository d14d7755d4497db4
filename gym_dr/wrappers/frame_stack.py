"""Frame stacks, and the last reward, as parts of the observation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from gym_dr.arrays import Array, Mask
from gym_dr.envs.stack import stack_of
from gym_dr.errors import ConfigError
from gym_dr.options import expect, is_whole
from gym_dr.wrappers.base import ViewWrapper
from gym_dr.wrappers.context import shown_columns
from gym_dr.wrappers.sensors import sensors_of

MAX_STACKED = 1000


@dataclass(frozen=True, kw_only=True)
class Frames:
    """What a policy observes besides the current observation: a frame stack, the last reward; by default nothing."""

    stack_observations: int = 1  # length of the frame stack, with the current observation
    observe_reward: bool = False  # whether it sees the reward of the last step

    def __bool__(self) -> bool:
        return self.stack_observations > 1 or self.observe_reward


ONE_FRAME = Frames()


class FrameStack(ViewWrapper):
    """Appends earlier observations and the last reward to the observation.

    An observation is a frame stack (the current one, that of a step before, of two steps before, ...), then the reward.
    At the start of an episode, its first observation replaces the missing ones, and the reward is 0. Images are
    stacked along their shortest axis, which is that of colors. Put it outside ``DisturbVector`` and inside
    ``DrawContext``.

    Attributes:
        frames: What it shows.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/CartPoleDR-v1", num_envs=3)
        >>> envs = gym_dr.FrameStack(envs, stack_observations=4, observe_reward=True)
        >>> observations, _ = envs.reset(seed=1)
        >>> observations.shape
        (3, 17)
        >>> envs.close()
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], *, stack_observations: int = 1, observe_reward: bool = False
    ) -> None:
        """Wraps a vector environment.

        Args:
            env: Any vector environment whose observations are flat, or images with an axis for colors.
            stack_observations: Length of the frame stack, with the current observation; 1 to 1000.
            observe_reward: Whether to append the reward of the last step, to flat observations only.

        Raises:
            ConfigError: An impossible number, or observations are of another kind, or already contain a frame stack or
                the draw.
        """
        possible = is_whole(stack_observations) and 1 <= stack_observations <= MAX_STACKED
        expect(possible, "stack_observations", f"a whole number from 1 to {MAX_STACKED}", stack_observations)
        if shown_columns(env) or any(isinstance(layer, FrameStack) for layer in stack_of(env)):
            raise ConfigError(
                "FrameStack: expected observations of the environment alone, got a frame stack or the draw with "
                "them. Use one FrameStack, and show the draw outside it: DrawContext(envs, 'observation')."
            )
        space = env.single_observation_space
        if not isinstance(space, gym.spaces.Box) or not (
            (len(space.shape) == 1 and space.dtype.kind == "f") or (len(space.shape) == 3 and not observe_reward)
        ):
            raise ConfigError(
                "FrameStack: expected a flat Box of floating-point numbers, or images with an axis for colors and no "
                f"reward, as observations, got {space}. Stack others in each sub-environment, with "
                "gymnasium.wrappers.FrameStackObservation."
            )
        super().__init__(env)
        stack_observations = int(stack_observations)
        self.frames = Frames(stack_observations=stack_observations, observe_reward=bool(observe_reward))
        axis, self._rewarded = int(np.argmin(space.shape)), int(observe_reward)
        self._axis, self._size = axis + 1, space.shape[axis]  # of batches, and of one observation along it
        low, high = (
            np.concatenate([end] * stack_observations + [np.full(1, limit)] * self._rewarded, axis).astype(space.dtype)
            for end, limit in ((space.low, -np.inf), (space.high, np.inf))
        )
        self.single_observation_space = gym.spaces.Box(low, high, dtype=space.dtype.type)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._seen = np.zeros((self.num_envs, *low.shape), space.dtype)  # what the policy observes now

    def _view(
        self,
        observations: Any,
        info: dict[str, Any],
        reported: Mask | None,
        begun: Mask | None,
        rewards: Array | None = None,
    ) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        if rewards is not None:
            self._seen = self._shifted(observations, rewards)
        if begun is not None:
            first = np.expand_dims(begun, tuple(range(1, self._seen.ndim)))
            self._seen = np.where(first, self._first(observations), self._seen)
        return self._seen.copy(), info

    def _first(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What policies see at the start of episodes with these first observations ``(N, ...)``."""
        nothing = [np.zeros((self.num_envs, 1), observations.dtype)] * self._rewarded
        return np.concatenate([*[observations] * self.frames.stack_observations, *nothing], self._axis)

    def _shifted(self, observations: npt.NDArray[Any], rewards: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What policies see after a step that returned these observations ``(N, ...)`` and rewards ``(N,)``."""
        before, _ = np.split(self._seen, [(self.frames.stack_observations - 1) * self._size], self._axis)
        if not self._rewarded:
            return np.concatenate([observations, before], self._axis)
        limits = np.finfo(self._seen.dtype)
        last = np.clip(rewards[:, None], limits.min, limits.max).astype(self._seen.dtype)
        return np.concatenate([observations, before, last], self._axis)


def sensor_columns(envs: VectorEnv[Any, Any, Any], sensors: Sequence[str]) -> list[int]:
    """The columns of sensors in an observation, those in earlier frames included.

    Args:
        envs: The environments, with flat observations.
        sensors: Names or indices, see ``SensorMap``.

    Raises:
        UnknownNameError: There is no such sensor.
    """
    frames = next((layer.frames for layer in stack_of(envs) if isinstance(layer, FrameStack)), ONE_FRAME)
    (length,) = envs.single_observation_space.shape or (0,)
    size = (length - shown_columns(envs) - frames.observe_reward) // frames.stack_observations
    known = sensors_of("" if envs.spec is None else envs.spec.id, gym.spaces.Box(-np.inf, np.inf, (size,)))
    spans = [known.span(sensor) for sensor in sensors] if known is not None else []
    return [
        shift * size + column
        for shift in range(frames.stack_observations)
        for first, end in spans
        for column in range(first, end)
    ]
