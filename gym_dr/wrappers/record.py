"""Records every finished episode with its draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv

from gym_dr.arrays import Indices, Mask
from gym_dr.envs.played import CRITIC, Played
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.wrappers.base import EpisodeWrapper

_NO_LIMIT = np.iinfo(np.int64).max  # episodes
_Found = tuple[Any, ...]  # length, quota, version, return and terms of the reward of an episode


class RecordEpisodes(EpisodeWrapper):
    """Calls a function with each finished episode: its draw, return, length and sums of the terms of the reward.

    Reset steps (NEXT_STEP autoreset) belong to no episode; episodes cut short by a call of ``reset`` are not recorded.

    Attributes:
        quota: Shape ``(num_envs,)`` int64, how many more episodes of each sub-environment are recorded; set it to skip
            those that follow. A reset sets it to no limit.
        reward_terms: The terms of the reward that steps have reported so far, such as "reward_forward".
    """

    _version: int | None = None  # of the sampler that draws the next episodes

    def __init__(self, env: VectorEnv[Any, Any, Any], callback: Callable[[EpisodeRecord], None]) -> None:
        """Wraps a vector environment.

        Args:
            env: Any vector environment; without ``info["params"]`` the records have no values.
            callback: Called once for each finished episode, in the order of the sub-environments.
        """
        super().__init__(env)
        self.callback = callback
        self.reward_terms: list[str] = []
        self._sums = np.zeros((1, self.num_envs))  # of the rewards so far, and of each of their terms
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)
        self.quota = np.full(self.num_envs, _NO_LIMIT)
        self._versions: npt.NDArray[Any] = np.full(self.num_envs, None)  # of the sampler that drew current episodes
        self._everyone = np.ones(self.num_envs, np.bool_)
        self._start = -int(self._autoreset.mode == AutoresetMode.NEXT_STEP)  # length before a reset step
        self._seeds: Sequence[int | None] = [None] * self.num_envs  # in the keys of draws

    def _was_reset(self, mask: Mask, observations: Any, info: dict[str, Any]) -> None:
        seeds = self.env.unwrapped.np_random_seed
        self._seeds = seeds if isinstance(seeds, tuple) else self._seeds
        self._sums[:, mask], self._lengths[mask], self._versions[mask] = 0.0, 0, self._version
        self.quota[mask] = _NO_LIMIT

    def _stepped(self, played: Played) -> None:
        rewards = played.rewards
        if played.begun is not None and not played.of_rollout:  # in rollouts, rewards of resets are 0
            rewards = np.where(played.begun, 0.0, rewards)
        if new := [name for name in played.signals if name not in (CRITIC, *self.reward_terms)]:
            self.reward_terms += new
            self._sums = np.concatenate([self._sums, np.zeros((len(new), self.num_envs))])
        nothing = np.zeros_like(rewards)  # of terms that an environment reports now and then
        gained = np.stack([rewards, *(played.signals.get(name, nothing) for name in self.reward_terms)])
        rows, envs = played.ended.nonzero()  # in the order of steps, then of sub-environments
        found: list[_Found] = []
        for row, count in enumerate(np.bincount(rows, minlength=len(rewards)).tolist()):
            self._sums += gained[:, row]
            self._lengths += 1
            if count:
                ended = envs[len(found) : len(found) + count]
                kept = self._lengths, self.quota, self._versions, *self._sums
                found += zip(*(each[ended].tolist() for each in kept), strict=True)
                self._sums[:, ended], self._lengths[ended], self._versions[ended] = 0.0, self._start, self._version
                self.quota[ended] -= 1
        if found:
            self._report(played, rows, envs, found)

    def _report(self, played: Played, rows: Indices, envs: Indices, found: list[_Found]) -> None:
        """Calls the function with the episodes that ended in these rows and sub-environments."""
        draws = played.info["final_info"] if self._autoreset.mode == AutoresetMode.SAME_STEP else played.draws
        places, given, nothing = played.episodes(rows, envs), draws.get("params", {}), [False] * len(rows)
        params = [
            (name, values[places].tolist(), given.get(f"_{name}", self._everyone)[places].tolist())
            for name, values in given.items()
            if name[0] != "_"
        ]
        index = draws["draw_index"][places].tolist() if "draw_index" in draws else [-1] * len(rows)
        diverged = draws.get("diverged", played.diverged)
        failed = nothing if diverged is None else np.broadcast_to(diverged, played.ended.shape)[rows, envs].tolist()
        terminated = played.terminations[rows, envs].tolist()
        for k, (env, (length, quota, version, total, *terms)) in enumerate(zip(envs.tolist(), found, strict=True)):
            if quota > 0:
                self.callback(
                    EpisodeRecord(
                        env_index=env,
                        seed=self._seeds[env],
                        draw_index=index[k],
                        params={name: float(values[k]) for name, values, told in params if told[k]},
                        episode_return=total,
                        length=length,
                        terminated=terminated[k],
                        version=version,
                        diverged=failed[k],
                        reward_terms=dict(zip(self.reward_terms, terms, strict=True)),
                    )
                )
