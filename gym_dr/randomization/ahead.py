"""The keyed draws of many sub-environments, made ahead.

A sub-environment's next draws follow from its seed and are known beforehand. Making many at once costs little more than
making one, so that a reset of a few sub-environments only looks its draws up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gym_dr.randomization.draws import draw
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_TOTAL = 4096  # draws made ahead, over all sub-environments together, ...
_LEAST, _MOST = 4, 64  # ... but at least and at most so many for each


class DrawsAhead:
    """Seeds, draw indices and coming draws of ``num_envs`` sub-environments."""

    def __init__(self, space: ParamSpace, randomization: Randomization, num_envs: int) -> None:
        """Starts without seeds.

        Args:
            space: The parameters.
            randomization: What varies.
            num_envs: Number of sub-environments.
        """
        self.space = space
        self.randomization = randomization
        self.index: Indices = np.full(num_envs, -1, np.int64)  # of the episode under way; the first one has 0
        self._seeds = np.zeros(num_envs, np.uint64)  # seed words
        self._depth = min(max(_TOTAL // num_envs, _LEAST), _MOST) if len(randomization) else 0
        # draw number first + k of sub-environment i is ahead[i, k]; nothing is there while first < 0
        self._ahead: Array = np.zeros((num_envs, self._depth, len(randomization)))
        self._first: Indices = np.full(num_envs, -1, np.int64)

    def seed(self, envs: Indices, words: npt.NDArray[np.uint64]) -> None:
        """Starts the sequences of draws of some sub-environments anew, keyed by their seed words."""
        self._seeds[envs] = words
        self.index[envs] = -1
        self._first[envs] = -1

    def current(self, envs: Indices) -> Array:
        """The draws of ``index``, shape ``(len(envs), randomized parameters)`` in the randomization's order."""
        place = self.index[envs] - self._first[envs]
        # values set by hand may have left draws out, so places can be anywhere beyond
        if (place >= self._depth).any() or (self._first[envs] < 0).any():
            self._make()
            place = self.index[envs] - self._first[envs]
        drawn: Array = self._ahead[envs, place]
        return drawn

    def _make(self) -> None:
        """Makes draws for every sub-environment that has used up half of its own, so that this happens seldom."""
        used = self.index - self._first
        needy = np.flatnonzero((self.index >= 0) & ((self._first < 0) | (2 * used >= self._depth)))
        self._first[needy] = self.index[needy]
        indices = self._first[needy, None] + np.arange(self._depth)
        seeds = np.repeat(self._seeds[needy], self._depth)
        drawn = draw(self.randomization, self.space, seeds, indices.ravel())
        for column, name in enumerate(self.randomization):
            self._ahead[needy, :, column] = drawn[name].reshape(indices.shape)
