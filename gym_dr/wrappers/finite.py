"""Raises an error when an environment returns NaN or infinity."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from gym_dr.arrays import Mask
from gym_dr.envs.played import Played
from gym_dr.errors import NotFiniteError
from gym_dr.wrappers.base import EpisodeWrapper


class RequireFinite(EpisodeWrapper):
    """Raises an error if an observation or reward is NaN or infinite, before anything is computed from it.

    It is a ``NotFiniteError``. Checks only observations that are arrays of floating-point numbers.
    """

    def _was_reset(self, mask: Mask, observations: Any, info: dict[str, Any]) -> None:
        nothing = np.zeros(self.num_envs)
        self._stepped(Played.of_step(observations, nothing, nothing, nothing, info))

    def _stepped(self, played: Played) -> None:
        bad = []
        for what, values in (("reward", played.rewards), ("observation", played.observations)):
            if (
                isinstance(values, np.ndarray)
                and values.dtype.kind == "f"
                and np.count_nonzero(np.isfinite(values)) < values.size
            ):
                numbers = values.reshape(len(played.rewards), self.num_envs, -1)
                row, i, k = np.argwhere(~np.isfinite(numbers))[0].tolist()
                bad.append((row, i, what, numbers[row, i, k]))
        if not bad:
            return
        row, i, what, value = min(bad, key=itemgetter(0))  # of a step the reward, since policies may observe it
        seeds, draws = self.env.unwrapped.np_random_seed, played.draws
        seed = f", seed {seeds[i]}" if isinstance(seeds, tuple) else ""
        draw = f", draw {int(draws['draw_index'][played.episodes(row, i)])}" if "draw_index" in draws else ""
        raise NotFiniteError(f"Sub-environment {i}{seed}{draw} returned {value} in its {what}.")
