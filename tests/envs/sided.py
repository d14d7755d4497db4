"""A beam on two legs with a left and a right side, which declares its mirror image and observations for the critic."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from gym_dr import Param, ParamSpace, RandomizeAttributes
from gym_dr.envs.mirror import MirrorMap

PARAMS = ParamSpace("Sided", [Param(name="mass", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="of the beam")])


class Sided(gym.Env[Any, Any]):
    """Hold the beam level at height 1; observes tilt, left and right length, and height. The third action shifts it."""

    observation_space = Box(-10.0, 10.0, (4,))
    action_space = Box(np.array([-1.0, -1.0, -0.5], np.float32), np.array([2.0, 2.0, 0.5], np.float32))
    mirror = MirrorMap(
        *(np.array([0, 2, 1, 3]), np.array([-1, 1, 1, 1], np.float32)),
        *(np.array([1, 0, 2]), np.array([1, 1, -1], np.float32)),
    )
    critic_size = 2

    def __init__(self) -> None:
        self.mass = 1.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._legs = self.np_random.uniform(0.5, 1.5, 2)
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._legs = np.clip(
            self._legs + 0.1 * (action[:2] + action[2] * np.array([1.0, -1.0]) - 0.1 * self.mass), 0.0, 3.0
        )
        reward = -float(np.abs(self._legs - 1.0).sum())
        seen, info = self._seen()
        return seen, reward, bool(self._legs.max() > 2.9), False, info

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        left, right = self._legs
        observation = np.array([left - right, left, right, (left + right) / 2], np.float32)
        return observation, {"critic": self.mass * self._legs * 10.0}


def make() -> gym.Env[Any, Any]:
    return RandomizeAttributes(gym.wrappers.TimeLimit(Sided(), 7), {"mass": (0.5, 2.0)}, space=PARAMS)
