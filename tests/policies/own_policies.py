"""Policies of a user's own, for tests that evaluate functions by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def brake(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The main engine while the lander falls fast."""
    return np.where(observations[:, 3] < -0.3, 2, 0)


class Coast:
    """A callable without a name of its own."""

    def __call__(self, observations: npt.NDArray[Any]) -> list[int]:
        """Never fires."""
        return [0] * len(observations)


class Pulse:
    """Fires the main engine at every third step of an episode, which it counts."""

    def __call__(self, observations: npt.NDArray[Any], episode_starts: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """Counts on, from 0 where an episode starts."""
        self.steps = 0 if episode_starts.all() else np.where(episode_starts, 0, self.steps + 1)
        return np.broadcast_to(np.where(self.steps % 3 == 2, 2, 0), len(observations))


def show(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The main engine where a ninth number, which observes the draw, is above 0."""
    return np.where(observations[:, 8] > 0, 2, 0)


pulse = Pulse()
coast = Coast()
limit = 3  # no function
