"""Functions that make a block on a slope, whose observations a wrapper flattens, and a pendulum on MuJoCo."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict

from gym_dr import Param, ParamSpace, RandomizeAttributes, RandomizeMujoco
from gym_dr.envs.vector_arguments import check_finite

PARAMS = [
    Param(name="mass", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="of the block"),
    Param(name="slope", nominal=0.1, low=0.0, high=1.5, unit="rad", doc="angle of the slope"),
]


class Slide(gym.Env[Any, Any]):
    """Push the block up to 1."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}
    observation_space = Dict({"place": Box(-10.0, 10.0), "speed": Box(-10.0, 10.0)})
    action_space = Box(-1.0, 1.0)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode, self.mass, self.slope = render_mode, 1.0, 0.1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = np.array([self.np_random.uniform(-0.1, 0.1), 0.0], np.float32)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        force = 10.0 * float(check_finite(action, (1,))[0])
        place, speed = self._state
        speed += 0.02 * (force / self.mass - 9.81 * np.sin(self.slope))
        self._state = np.clip(np.array([place + 0.02 * speed, speed], np.float32), -10.0, 10.0)
        return self._seen(), -abs(1.0 - float(place)), False, False, {}

    def render(self) -> Any:
        return None if self.render_mode is None else np.resize(self._state, (4, 5, 3)).astype(np.uint8)

    def _seen(self) -> dict[str, Any]:
        return {"place": self._state[:1].copy(), "speed": self._state[1:].copy()}


def make(**kwargs: Any) -> gym.Env[Any, Any]:
    slide = RandomizeAttributes(Slide(**kwargs), {"mass": (0.5, 2.0)}, space=ParamSpace("Slide", PARAMS))
    return gym.wrappers.FlattenObservation(gym.wrappers.TimeLimit(slide, 20))


def make_pendulum(**kwargs: Any) -> gym.Env[Any, Any]:
    return RandomizeMujoco(gym.make("InvertedPendulum-v5", **kwargs), {"gravity.z": (-12.0, -8.0)})
