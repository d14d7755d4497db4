"""Which parameter values are in force in many environments, episode after episode.

The array form of ``gym_dr.randomization.episode.EpisodeParams``, with the same draws: keyed by each sub-environment's
seed and its number of resets since it was seeded. Since a sub-environment's next draws are known beforehand, they are
made ahead, many at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gym_dr.randomization.draws import draw
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_AHEAD_TOTAL = 4096  # draws made ahead, over all sub-environments together, ...
_AHEAD_LEAST, _AHEAD_MOST = 4, 64  # ... but at least and at most so many for each


class EpisodeParameters:
    """Draws, pins and exact values of ``num_envs`` sub-environments; ``in_force`` belongs to the physics."""

    def __init__(self, space: ParamSpace, randomization: Randomization, in_force: Array) -> None:
        """Starts with nominal values.

        Args:
            space: The parameters; their order is that of the columns.
            randomization: What varies.
            in_force: Shape ``(num_envs, len(space))``, filled in place.
        """
        self.space = space
        self.randomization = randomization
        self.in_force = in_force
        num_envs = in_force.shape[0]
        self._columns = {name: i for i, name in enumerate(space)}
        self._nominal = np.array([space.nominal[name] for name in space])
        self.in_force[:] = self._nominal
        self.draw_index: Indices = np.full(num_envs, -1, np.int64)  # of the episode under way
        self._seeds = np.zeros(num_envs, np.uint64)  # seed words
        self._pins: Array | None = None  # (num_envs, len(space)), nan where not pinned
        self._drawn_columns = np.array([self._columns[name] for name in randomization], np.int64)
        self._all_pinned = len(randomization) == 0
        self._depth = min(max(_AHEAD_TOTAL // num_envs, _AHEAD_LEAST), _AHEAD_MOST) if len(randomization) else 0
        # made ahead: draw number first + k of sub-environment i is ahead[i, k]; nothing is there while first < 0
        self._ahead: Array = np.zeros((num_envs, self._depth, len(randomization)))
        self._first: Indices = np.full(num_envs, -1, np.int64)

    def seed(self, envs: Indices, words: npt.NDArray[np.uint64]) -> None:
        """Starts the sequences of draws of some sub-environments anew, keyed by their seed words."""
        self._seeds[envs] = words
        self.draw_index[envs] = -1
        self._first[envs] = -1

    def pin(self, values: Mapping[str, Array] | None, envs: Indices) -> None:
        """Fixes checked values from the next reset on, beside those pinned before; None hands all back."""
        if self._pins is None:
            self._pins = np.full(self.in_force.shape, np.nan)
        if values is None:
            self._pins[envs] = np.nan
        else:
            for name, array in values.items():
                self._pins[envs, self._columns[name]] = array[envs]
        self._all_pinned = not np.isnan(self._pins[:, self._drawn_columns]).any()
        if np.isnan(self._pins).all():
            self._pins = None

    def begin(self, envs: Indices, exact: Mapping[str, Array]) -> None:
        """Puts the values of the episodes that begin in force.

        Args:
            envs: The sub-environments that are reset, each once.
            exact: Checked values for these episodes: name -> shape ``(num_envs,)``.
        """
        self.draw_index[envs] += 1
        if len(self._drawn_columns) == 0 and self._pins is None and not exact:
            self.in_force[envs] = self._nominal
            return
        values = np.empty((len(envs), len(self._nominal)))
        values[:] = self._nominal
        if not self._all_pinned:
            values[:, self._drawn_columns] = self._draws(envs)
        if self._pins is not None:
            pins = self._pins[envs]
            values = np.where(np.isnan(pins), values, pins)
        for name, array in exact.items():
            values[:, self._columns[name]] = array[envs]
        self.in_force[envs] = values

    def _draws(self, envs: Indices) -> Array:
        """The current draws of some sub-environments, shape ``(len(envs), randomized parameters)``."""
        place = self.draw_index[envs] - self._first[envs]
        # pins may have left draws out, so places can be anywhere beyond
        if (place >= self._depth).any() or (self._first[envs] < 0).any():
            self._make_ahead()
            place = self.draw_index[envs] - self._first[envs]
        drawn: Array = self._ahead[envs, place]
        return drawn

    def _make_ahead(self) -> None:
        """Makes draws for every sub-environment that has used up half of its own, so that this happens seldom."""
        used = self.draw_index - self._first
        needy = np.flatnonzero((self.draw_index >= 0) & ((self._first < 0) | (2 * used >= self._depth)))
        self._first[needy] = self.draw_index[needy]
        indices = self._first[needy, None] + np.arange(self._depth)
        seeds = np.repeat(self._seeds[needy], self._depth)
        drawn = draw(self.randomization, self.space, seeds, indices.ravel())
        for column, name in enumerate(self.randomization):
            self._ahead[needy, :, column] = drawn[name].reshape(indices.shape)
