"""A session without a folder, for tests of algorithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym

from gym_dr import EpisodeRecord, RecordEpisodes
from gym_dr.training.api import TrainedNetworks, seed_for


class FakeSession:
    """Implements ``gym_dr.training.api.Session`` in memory.

    Attributes:
        runs: Other runs, by the name that ``trained`` gets.
    """

    def __init__(self, env_id: str, num_envs: int = 4, seed: int = 1, segment: int = 1000, **kwargs: Any) -> None:
        self.seed, self.device, self.num_threads = seed, "cpu", 1
        self.restored: dict[str, Any] | None = None
        self.first_update = 0
        self.segment = segment
        self.rows: list[dict[str, float]] = []
        self.state: Mapping[str, Any] = {}
        self.episodes: list[EpisodeRecord] = []
        self.runs: dict[str, TrainedNetworks] = {}
        self._make = lambda: gym.make_vec(env_id, num_envs, vectorization_mode="sync", **kwargs)

    def make_envs(self, rollout_steps: int | None) -> RecordEpisodes:
        self.envs = RecordEpisodes(self._make(), self.episodes.append)
        return self.envs

    def trained(self, run: str) -> TrainedNetworks:
        return self.runs[run]

    def segment_seed(self, update: int) -> int | None:
        segment, within = divmod(update, self.segment)
        return None if within else seed_for(self.seed, stream=0, index=segment)

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        self.rows.append({"update": update, "steps": steps, **metrics})

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        self.state = state()
