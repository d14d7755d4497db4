"""An environment that reports the terms of its reward, and what only a critic observes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Reporting(gym.Env[Any, Any]):
    """Counts the steps of an episode of ``length`` steps, which the observation, the critic and a term show."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float64)

    def __init__(self, length: int, at_end: bool = False, **more: Any) -> None:
        """Makes one that reports ``more``, and another term in the last step if ``at_end``."""
        self.length, self.at_end, self.more, self.steps = length, at_end, more, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1), {"critic": np.array([0.0, 7.0])}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        ended = self.steps == self.length
        info = {"critic": np.array([self.steps, 7.0]), "reward_far": float(self.steps), "reward_cost": -0.5}
        last = {"reward_end": 1.0} if ended and self.at_end else {}
        return np.full(1, float(self.steps)), self.steps - 0.5, ended, False, {**info, **last, **self.more}
