"""Which parameter values are in force in many sub-environments, episode after episode.

The array form of ``gym_dr.randomization.episode.EpisodeParams``, with the same draws: keyed by each sub-environment's
seed and its number of resets since it was seeded. A model has hundreds of parameters, so only those are kept that are
randomized or were set by hand; nan says that a sub-environment does not report one.
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


class EpisodeTable:
    """Draws, pins and exact values of ``num_envs`` sub-environments."""

    def __init__(self, space: ParamSpace, randomization: Randomization, num_envs: int) -> None:
        """Starts with nominal values of the randomized parameters.

        Args:
            space: The parameters.
            randomization: What varies, names written out.
            num_envs: Number of sub-environments.
        """
        self.space = space
        self.randomization = randomization
        self.names: list[str] = list(randomization)  # those that were set by hand follow
        nominal = [space[name].nominal for name in self.names]
        self.values: Array = np.tile(np.array(nominal, dtype=np.float64), (num_envs, 1))  # (num_envs, len(names))
        self._pins: Array | None = None  # shape of values, nan where not pinned
        self._drawn = len(self.names)  # the first so many columns are randomized
        self.draws = DrawsAhead(space, randomization, num_envs)

    def pin(self, values: Mapping[str, Array] | None, envs: Indices) -> None:
        """Fixes checked values from the next reset on, beside those pinned before; None hands all back.

        Args:
            values: name -> shape ``(num_envs,)``.
            envs: The sub-environments that are meant.
        """
        if values is None:
            if self._pins is not None:
                self._pins[envs] = np.nan
                if np.isnan(self._pins).all():
                    self._pins = None
            return
        columns = self._columns(values)
        if self._pins is None:
            self._pins = np.full(self.values.shape, np.nan)
        for column, array in zip(columns, values.values(), strict=True):
            self._pins[envs, column] = array[envs]

    def begin(self, envs: Indices, exact: Mapping[str, Array]) -> None:
        """Puts the values of the episodes that begin in force.

        Args:
            envs: The sub-environments that are reset, each once.
            exact: Checked values for these episodes: name -> shape ``(num_envs,)``.
        """
        columns = self._columns(exact)
        self.draws.index[envs] += 1
        if not self.names:
            return
        rows = np.full((len(envs), len(self.names)), np.nan)
        if self._drawn and not self._all_pinned(envs):
            rows[:, : self._drawn] = self.draws.current(envs)
        if self._pins is not None:
            pins = self._pins[envs]
            rows = np.where(np.isnan(pins), rows, pins)
        for column, array in zip(columns, exact.values(), strict=True):
            rows[:, column] = array[envs]
        self.values[envs] = rows

    def params(self) -> dict[str, Array]:
        """What is reported: name -> values in force ``(num_envs,)``, nominal where a sub-environment has none."""
        return {
            name: np.where(np.isnan(column), self.space[name].nominal, column)
            for name, column in zip(self.names, self.values.T, strict=True)
            if not np.isnan(column).all()
        }

    def _columns(self, names: Mapping[str, Array]) -> list[int]:
        """The columns of some parameters; new ones are added."""
        for name in names:
            if name not in self.names:
                self.names.append(name)
        missing = len(self.names) - self.values.shape[1]
        if missing:
            self.values = np.pad(self.values, ((0, 0), (0, missing)), constant_values=np.nan)
            if self._pins is not None:
                self._pins = np.pad(self._pins, ((0, 0), (0, missing)), constant_values=np.nan)
        return [self.names.index(name) for name in names]

    def _all_pinned(self, envs: Indices) -> bool:
        return self._pins is not None and not np.isnan(self._pins[envs, : self._drawn]).any()
