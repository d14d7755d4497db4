"""Records every finished episode with its draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Mask
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.wrappers.base import EpisodeWrapper


class RecordEpisodes(EpisodeWrapper):
    """Calls a function with each finished episode: its draw, return and length.

    Reset steps (NEXT_STEP autoreset) belong to no episode; episodes cut short by a call of ``reset`` are not recorded.

    Attributes:
        paused: Shape ``(num_envs,)`` bool; set it to skip episodes. Those that end while their sub-environment is
            paused are not recorded. A reset ends the pause.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], callback: Callable[[EpisodeRecord], None]) -> None:
        """Wraps a vector environment.

        Args:
            env: Any vector environment; without ``info["params"]`` the records have no values.
            callback: Called once for each finished episode, in the order of the sub-environments.
        """
        super().__init__(env)
        self.callback = callback
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)
        self.paused = np.zeros(self.num_envs, dtype=np.bool_)
        self._seeds: Sequence[int | None] | None = None  # in the keys of draws; None until they are needed

    def _before_reset(self, seeds: list[int | None], mask: Mask, options: dict[str, Any]) -> None:
        self._seeds, self.paused[mask] = None, False

    def _begun(self, mask: Mask, info: dict[str, Any]) -> None:
        self._returns[mask], self._lengths[mask] = 0.0, 0

    def _stepped(self, observations: Any, rewards: npt.NDArray[Any], begun: Mask | None, info: dict[str, Any]) -> None:
        rows = np.concatenate([self._returns[None], np.asarray(rewards, np.float64).reshape(-1, self.num_envs)])
        self._lengths += len(rows) - 1
        if begun is not None:
            rows[1, begun] = 0.0
            self._lengths[begun] -= 1
        self._returns = np.add.reduce(rows, axis=0)

    def _ended(self, mask: Mask, terminations: Mask, info: dict[str, Any]) -> None:
        """Reports the episodes."""
        if self._seeds is None:
            seeds = self.env.unwrapped.np_random_seed
            self._seeds = seeds if isinstance(seeds, tuple) else [None] * self.num_envs
        given = info.get("params", {})
        params = {key: (values, given.get(f"_{key}", mask)) for key, values in given.items() if not key.startswith("_")}
        diverged = np.broadcast_to(info.get("diverged", False), mask.shape)
        for i in np.flatnonzero(mask & ~self.paused).tolist():
            self.callback(
                EpisodeRecord(
                    env_index=i,
                    seed=self._seeds[i],
                    draw_index=int(info["draw_index"][i]) if "draw_index" in info else -1,
                    params={name: float(values[i]) for name, (values, told) in params.items() if told[i]},
                    episode_return=float(self._returns[i]),
                    length=int(self._lengths[i]),
                    terminated=bool(terminations[i]),
                    diverged=bool(diverged[i]),
                )
            )
