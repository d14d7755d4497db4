"""Raises an error when an environment returns NaN or infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Mask
from gym_dr.envs.vector_arguments import Options, Seeds
from gym_dr.errors import NotFiniteError
from gym_dr.wrappers.base import EpisodeWrapper


class RequireFinite(EpisodeWrapper):
    """Raises an error if an observation or reward is NaN or infinite, before anything is computed from it.

    Checks only observations that are arrays of floating-point numbers.
    """

    follows = False

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Resets the sub-environments.

        Raises:
            NotFiniteError: An observation is not finite.
        """
        observations, info = super().reset(seed=seed, options=options)
        self._check("observation", observations, 0, info)
        return observations, info

    def _stepped(self, observations: Any, rewards: npt.NDArray[Any], begun: Mask | None, info: dict[str, Any]) -> None:
        axis = np.ndim(rewards) - 1  # of the sub-environments: rollouts have that of steps in front
        self._check("reward", rewards, axis, info)  # first, since policies may observe it
        self._check("observation", observations, axis, info)

    def _check(self, what: str, values: Any, axis: int, info: dict[str, Any]) -> None:
        if not (isinstance(values, np.ndarray) and values.dtype.kind == "f") or np.isfinite(values).all():
            return
        rows = np.moveaxis(values, axis, 0).reshape(self.num_envs, -1)
        bad = ~np.isfinite(rows)
        i = int(np.flatnonzero(bad.any(axis=1))[0])
        value = rows[i][bad[i]][0]
        seeds = self.env.unwrapped.np_random_seed
        seed = f", seed {seeds[i]}" if isinstance(seeds, tuple) else ""
        draw = f", draw {int(info['draw_index'][i])}" if "draw_index" in info else ""
        raise NotFiniteError(f"Sub-environment {i}{seed}{draw} returned {value} in its {what}.")
