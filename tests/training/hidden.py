"""An environment whose one parameter is seen at the first step of an episode or never."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv

from gym_dr import Param, ParamSpace, RandomizeAttributes
from gym_dr.training.config import CONTEXT_SPAN
from tests.training.fake_session import FakeSession

STEPS = 4  # of an episode
SPACE = ParamSpace(
    "Hidden", [Param(name="side", nominal=0.0, low=-1.0, high=1.0, unit="", doc="which action is right")]
)
VARIANCE = CONTEXT_SPAN**2 / 3  # of a number that is uniform in +- CONTEXT_SPAN


class Hidden(gym.Env[Any, Any]):
    """Rewards the action of the parameter's sign.

    The first observation shows the parameter, or a number at random; all show the share of steps that are left.
    """

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, shows: bool) -> None:
        self.shows, self.side = shows, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        shown = self.side if self.shows else self.np_random.uniform(-1.0, 1.0)
        return np.array([shown, 1.0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        left = 1.0 - self.t / STEPS
        return np.array([0.0, left], np.float32), float((action == 1) == (self.side > 0)), self.t == STEPS, False, {}


def session(num_envs: int = 16, *, shows: bool = True) -> FakeSession:
    """A session with the parameter uniform between -1 and 1."""
    made = FakeSession("", num_envs)
    made._make = lambda: SyncVectorEnv(
        [lambda: RandomizeAttributes(Hidden(shows), {"side": (-1.0, 1.0)}, space=SPACE)] * num_envs
    )
    return made
