"""What one or many steps of a vector environment were, for wrappers and trainers that read it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Indices, Mask

CRITIC = "critic"  # in ``info``: observations for the critic alone, (N, k), those of the first observation at a reset
TERM = "reward_"  # begins names of terms of the reward in ``info``, (N,)


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
    # (T, N, k) "critic" and (T, N) each term of the reward, after each step; terms are 0 on reset steps
    signals: Mapping[str, npt.NDArray[Any]] = {}

    @classmethod
    def of_step(
        cls, observations: Any, rewards: Any, terminations: Any, truncations: Any, info: Any, begun: Mask | None = None
    ) -> Played:
        """What a call of ``step`` returned; ``begun`` (N,) are the sub-environments that it has reset."""
        terminated = np.asarray(terminations)[None]
        ended = np.logical_or(terminated, truncations)
        rows = None if begun is None else begun[None]
        signals = signals_of(info, ended.size, begun=begun)
        for name, values in signals_of(info.get("final_info", {}), ended.size).items():  # with SAME_STEP
            if name != CRITIC:  # the first observation of the next episode has its own
                signals[name] = np.where(ended[0], values, signals.get(name, 0))
        signals = {name: values[None] for name, values in signals.items()}
        return cls(observations, np.asarray(rewards)[None], terminated, ended, rows, info, info, signals=signals)

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


def signals_of(info: Mapping[str, Any], *shape: int, begun: Mask | None = None) -> dict[str, npt.NDArray[Any]]:
    """What ``info`` has of ``Played.signals``; what are no numbers for all sub-environments is left out.

    Args:
        info: Arrays by name, and other things.
        shape: N, or T and N.
        begun: Reset steps, of this shape; None if there are none.
    """
    found = {
        name: values
        for name, values in info.items()
        if (name == CRITIC or str(name).startswith(TERM))
        and isinstance(values, np.ndarray)
        and values.dtype.kind in "fiu"
        and values.shape[: len(shape)] == shape
        and values.ndim == len(shape) + (name == CRITIC)
    }
    if begun is not None:
        found |= {name: np.where(begun, 0, values) for name, values in found.items() if name != CRITIC}
    return found
