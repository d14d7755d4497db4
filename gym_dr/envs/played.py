"""What one or many steps of a vector environment were, for wrappers and trainers that read it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Indices, Mask


class Played(NamedTuple):
    """T steps of N sub-environments, and the draws of their episodes.

    A step has the draws in its ``info``, one of each sub-environment. A rollout has a table of them: of each
    sub-environment in turn that of the episode under way at first, and then those of the episodes that begin.
    """

    observations: Any  # (T, N, ...) after each step; (N, ...) of a single one
    rewards: npt.NDArray[Any]  # (T, N)
    terminations: Mask  # (T, N)
    ended: Mask  # (T, N) whether an episode terminated or was truncated
    begun: Mask | None  # (T, N) reset steps, which belong to no episode; None if there are none
    info: dict[str, Any]  # of the last step
    draws: Mapping[str, Any]  # "params" and "draw_index", unless hidden, in the layout of info: N or N + M of each
    diverged: Mask | None = None  # (T, N) simulations that did, in a rollout; None if none
    of_rollout: bool = False  # whether ``draws`` are a table

    @classmethod
    def of_step(
        cls, observations: Any, rewards: Any, terminations: Any, truncations: Any, info: Any, begun: Mask | None = None
    ) -> Played:
        """What a call of ``step`` returned; ``begun`` (N,) are the sub-environments that it has reset."""
        terminated = np.asarray(terminations)[None]
        ended = np.logical_or(terminated, truncations)
        rows = None if begun is None else begun[None]
        return cls(observations, np.asarray(rewards)[None], terminated, ended, rows, info, info)

    def episodes(self, rows: Any, envs: Any) -> Indices:
        """Where ``draws`` have the episodes that steps belong to, that they begin, or whose ends they follow.

        Args:
            rows: Indices of the steps; -1 for the episodes under way at first.
            envs: Indices of their sub-environments; both broadcast to one shape, that of the result.
        """
        if self.begun is None or not self.of_rollout:
            return np.asarray(envs)
        begun_rows, begun_envs = self.begun.nonzero()
        begins = np.sort(begun_envs * len(self.begun) + begun_rows)
        return np.asarray(np.searchsorted(begins, envs * len(self.begun) + rows, side="right") + envs)
