"""Policies of a user's own, for tests that evaluate functions by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

THRUST = [2]  # stands for weights that the functions read from elsewhere


def brake(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The main engine while the lander falls fast."""
    return np.where(observations[:, 3] < -0.3, THRUST[0], 0)


class Coast:
    """A callable without a name of its own."""

    def __call__(self, observations: npt.NDArray[Any]) -> list[int]:
        """Never fires."""
        return [0] * len(observations)


coast = Coast()
limit = 3  # no function
