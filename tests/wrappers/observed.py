"""A small environment whose observations are vectors, images, dictionaries or tuples, and its ids."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from gym_dr import Param, ParamSpace, RandomizeAttributes
from tests.registered import forgotten_afterwards

GAIN = ParamSpace("Observed", [Param(name="gain", nominal=1.0, low=0.1, high=10.0)])
WIDE = {"gain": (0.5, 2.0)}

VECTOR = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
IMAGE = gym.spaces.Box(0, 255, (36, 40, 3), np.uint8)
SPACES: dict[str, gym.Space[Any]] = {
    "vector": VECTOR,
    "image": IMAGE,
    "dict": gym.spaces.Dict(pixels=IMAGE, vector=VECTOR),
    "goal": gym.spaces.Dict(observation=VECTOR, achieved_goal=VECTOR, desired_goal=VECTOR),
    "tuple": gym.spaces.Tuple([VECTOR, gym.spaces.Discrete(9)]),
}


class Observed(gym.Env[Any, Any]):
    """A point that moves by ``gain`` times the action, for four steps; all parts of an observation show where it is."""

    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, observation_space: gym.Space[Any]) -> None:
        self.observation_space, self.gain = observation_space, 1.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.t = float(self.np_random.uniform(-1, 1)), 0
        return self._observe(self.observation_space), {}

    def step(self, action: Any) -> Any:
        self.place, self.t = self.place + self.gain * float(action[0]), self.t + 1
        return self._observe(self.observation_space), -abs(self.place), self.t == 4, False, {}

    def _observe(self, space: Any) -> Any:
        if isinstance(space, gym.spaces.Dict):
            return {name: self._observe(part) for name, part in space.items()}
        if isinstance(space, gym.spaces.Tuple):
            return tuple(self._observe(part) for part in space)
        if isinstance(space, gym.spaces.Discrete):
            return self.t
        if space.dtype == np.uint8:
            return np.full(space.shape, int(100 * abs(self.place)) % 256, np.uint8)
        return np.array([self.place, self.t], space.dtype)


def make(kind: str | gym.Space[Any], randomization: Any = WIDE, **context: Any) -> Any:
    """One randomized environment, with observations of this kind or in this space."""
    space = SPACES[kind] if isinstance(kind, str) else kind
    return RandomizeAttributes(Observed(space), randomization, GAIN, **context)


def make_several(kind: str | gym.Space[Any], autoreset: Any, vectorization: str = "sync", **context: Any) -> Any:
    """Three of them."""
    vector = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}[vectorization]
    return vector([partial(make, kind, **context)] * 3, autoreset_mode=autoreset)


def id_of(kind: str) -> str:
    """The id of a kind of observations, in ``registered``."""
    return f"Observed-{kind}-v0"


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """Registers an id for each kind, in a block."""
    with forgotten_afterwards():
        for kind in SPACES:
            gym.register(id_of(kind), partial(make, kind))
        yield
