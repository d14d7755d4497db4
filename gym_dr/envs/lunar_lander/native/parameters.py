"""Which parameter values are in force in many environments, episode after episode.

The array form of ``gym_dr.randomization.episode.EpisodeParams``, with the same draws: keyed by each sub-environment's
seed and its number of resets since it was seeded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gym_dr.randomization.ahead import DrawsAhead
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


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
        self.draws = DrawsAhead(space, randomization, num_envs)
        self._pins: Array | None = None  # (num_envs, len(space)), nan where not pinned
        self._drawn_columns = np.array([self._columns[name] for name in randomization], np.int64)
        self._all_pinned = len(randomization) == 0

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
        self.draws.index[envs] += 1
        if len(self._drawn_columns) == 0 and self._pins is None and not exact:
            self.in_force[envs] = self._nominal
            return
        values = np.empty((len(envs), len(self._nominal)))
        values[:] = self._nominal
        if not self._all_pinned:
            values[:, self._drawn_columns] = self.draws.current(envs)
        if self._pins is not None:
            pins = self._pins[envs]
            values = np.where(np.isnan(pins), values, pins)
        for name, array in exact.items():
            values[:, self._columns[name]] = array[envs]
        self.in_force[envs] = values
