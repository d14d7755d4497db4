"""Records every finished episode with its draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.played import Played
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.wrappers.base import EpisodeWrapper

_NO_LIMIT = np.iinfo(np.int64).max  # episodes


class RecordEpisodes(EpisodeWrapper):
    """Calls a function with each finished episode: its draw, return and length.

    Reset steps (NEXT_STEP autoreset) belong to no episode; episodes cut short by a call of ``reset`` are not recorded.

    Attributes:
        quota: Shape ``(num_envs,)`` int64, how many more episodes of each sub-environment are recorded; set it to skip
            those that follow. A reset sets it to no limit.
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
        self.quota = np.full(self.num_envs, _NO_LIMIT)
        self._seeds: Sequence[int | None] | None = None  # in the keys of draws; None until they are needed

    def _before_reset(self, seeds: list[int | None], mask: Mask, options: dict[str, Any]) -> None:
        self._seeds, self.quota[mask] = None, _NO_LIMIT

    def _was_reset(self, mask: Mask, info: dict[str, Any]) -> None:
        self._returns[mask], self._lengths[mask] = 0.0, 0

    def _stepped(self, played: Played) -> None:
        rewards = played.rewards if played.begun is None else np.where(played.begun, 0.0, played.rewards)
        rows, envs = played.ended.nonzero()  # in the order of steps, then of sub-environments
        returns, lengths = np.empty(len(rows)), np.empty(len(rows), np.int64)
        wanted, first = np.empty(len(rows), np.bool_), 0
        waits = self._autoreset.mode == AutoresetMode.NEXT_STEP  # for a reset step, which does not count
        for row, last in enumerate(np.searchsorted(rows, np.arange(1, len(rewards) + 1)).tolist()):
            self._returns += rewards[row]
            self._lengths += 1
            if last > first:
                these, ended = slice(first, last), envs[first:last]
                returns[these], lengths[these] = self._returns[ended], self._lengths[ended]
                self._returns[ended], self._lengths[ended] = 0.0, -int(waits)
                wanted[these] = self.quota[ended] > 0
                self.quota[ended] -= 1
                first = last
        if wanted.any():
            self._report(played, rows[wanted], envs[wanted], returns[wanted], lengths[wanted])

    def _report(self, played: Played, rows: Indices, envs: Indices, returns: Array, lengths: Indices) -> None:
        """Calls the function with the episodes that ended in these rows and sub-environments."""
        if self._seeds is None:
            seeds = self.env.unwrapped.np_random_seed
            self._seeds = seeds if isinstance(seeds, tuple) else [None] * self.num_envs
        if self._autoreset.mode == AutoresetMode.SAME_STEP:
            final = played.info["final_info"]
            played = played._replace(draws=final, diverged=final.get("diverged", False))
        places, indices = played.episodes(rows, envs), played.draws.get("draw_index")
        for env, index, params, total, length, terminated, version, diverged in zip(
            envs.tolist(),
            [-1] * len(places) if indices is None else indices[places].tolist(),
            _params_of(played.draws.get("params", {}), places),
            returns.tolist(),
            lengths.tolist(),
            played.terminations[rows, envs].tolist(),
            self._versions_of(played, rows, envs),
            np.broadcast_to(played.diverged, played.ended.shape)[rows, envs].tolist(),
            strict=True,
        ):
            self.callback(
                EpisodeRecord(
                    env_index=env,
                    seed=self._seeds[env],
                    draw_index=index,
                    params=params,
                    episode_return=total,
                    length=length,
                    terminated=terminated,
                    version=version,
                    diverged=diverged,
                )
            )

    def _versions_of(self, played: Played, rows: Indices, envs: Indices) -> list[int | None]:
        """Versions of the samplers that drew the episodes of these steps."""
        return [None] * len(rows)


def _params_of(params: Mapping[str, Any], places: Indices) -> list[dict[str, float]]:
    """The values in some places of ``info["params"]``, without those that were not reported."""
    names = [name for name in params if not name.startswith("_")]
    values = [np.asarray(params[name], np.float64)[places].tolist() for name in names]
    told = [np.take(params.get(f"_{name}", np.ones_like(params[name], np.bool_)), places) for name in names]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)] if names else [{} for _ in places]
    for name, mask in zip(names, told, strict=True):
        for k in np.flatnonzero(~mask).tolist():
            del rows[k][name]
    return rows
