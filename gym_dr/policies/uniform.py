"""A policy of uniform random actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from gym_dr.errors import ConfigError
from gym_dr.training.api import EpisodeStarts


class UniformActions:
    """Chooses actions uniformly; actions of sub-environment ``i`` depend only on the seed plus ``i``."""

    def __init__(self, space: Any, num_envs: int, env: str) -> None:
        """Makes the policy.

        Args:
            space: Actions of one sub-environment.
            num_envs: Number of sub-environments.
            env: Id of the environment, for messages.

        Raises:
            ConfigError: Actions have no bounds, or are not numbers.
        """
        bounded = isinstance(space, Box) and bool(np.isfinite(space.low).all() and np.isfinite(space.high).all())
        if not (bounded or isinstance(space, Discrete)):
            raise ConfigError(f"{env}: expected actions with bounds, to choose among them at random, got {space}.")
        self._space, self._num_envs = space, num_envs
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Restarts the random numbers."""
        # apart from the environment's
        self._generators = [np.random.default_rng((seed + i, 1)) for i in range(self._num_envs)]

    def __call__(self, observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        """Actions ``(N, ...)``."""
        space = self._space
        if isinstance(space, Box):
            drawn = [rng.uniform(space.low, space.high) for rng in self._generators]
            return np.clip(drawn, space.low, space.high).astype(space.dtype)
        return np.array([rng.integers(space.start, space.start + space.n) for rng in self._generators], np.int64)
