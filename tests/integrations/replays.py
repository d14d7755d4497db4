"""What the tests of environments by others share: whole episodes, to be compared bit for bit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np


def episode(make: Callable[[], Any], seed: int = 7, steps: int = 4) -> list[Any]:
    """The draw, observations and rewards of the first steps of an episode, in an environment of its own."""
    with contextlib.closing(make()) as env:
        observation, info = env.reset(seed=seed)
        env.action_space.seed(seed)  # now, since some make their spaces anew in reset
        told = [info["params"], observation]
        for _ in range(steps):
            observation, reward, *_ = env.step(env.action_space.sample())
            told += [observation, reward]
        return told


def assert_replays(make: Callable[[], Any]) -> None:
    """The same seed gives the same episode, bit for bit, and another seed another draw."""
    first = episode(make)
    np.testing.assert_equal(episode(make), first)
    assert episode(make, seed=8, steps=0)[0] != first[0]
