"""Environments whose answers are known: what an episode returns is a plain function of its draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gym_dr import EpisodeRecord, Param, ParamSpace, Randomization, Uniform

X = Param(name="x", nominal=0.3, low=0.0, high=1.0)
Y = Param(name="y", nominal=0.5, low=0.0, high=1.0)
SPACE = ParamSpace("Synthetic", [X, Y])
LINE = Randomization({"x": Uniform(0.0, 1.0)})
SQUARE = Randomization({"x": Uniform(0.0, 1.0), "y": Uniform(0.0, 1.0)})

Returns = Callable[[Mapping[str, float]], float]


def below_06(params: Mapping[str, float]) -> float:
    """Success (a return of 1) if and only if x < 0.6."""
    return float(params["x"] < 0.6)


class Player:
    """Sub-environments that play one episode after another; each takes as long as ``length`` says."""

    def __init__(
        self, sampler: Any, num_envs: int, returns: Returns, length: Callable[[Mapping[str, float]], int] | None = None
    ) -> None:
        self.sampler, self.num_envs, self.returns = sampler, num_envs, returns
        self.length = length or (lambda params: 1)
        self.index = np.full(num_envs, -1)
        self.left = np.zeros(num_envs, np.int64)
        self.params: list[dict[str, float]] = [{}] * num_envs
        self.rows: list[Any] = []

    def begin(self, env: int) -> None:
        self.index[env] += 1
        seeds, index = np.array([1000 + env], np.uint64), self.index[env : env + 1]
        drawn = self.sampler.draw(seeds, index)
        self.params[env] = {"x": 0.3, "y": 0.5, **{name: float(values[0]) for name, values in drawn.items()}}
        self.left[env] = self.length(self.params[env])

    def steps(self, count: int) -> list[EpisodeRecord]:
        """Plays vector steps; the episodes that ended."""
        ended = []
        for _ in range(count):
            for env in range(self.num_envs):
                if self.left[env] == 0:
                    self.begin(env)
                self.left[env] -= 1
                if self.left[env] == 0:
                    ended.append(self.record(env))
        return ended

    def record(self, env: int) -> EpisodeRecord:
        params = self.params[env]
        return EpisodeRecord(
            env_index=env,
            seed=1000 + env,
            draw_index=int(self.index[env]),
            params=params,
            episode_return=self.returns(params),
            length=self.length(params),
            terminated=True,
        )

    def train(self, updates: int, steps: int) -> None:
        for _ in range(updates):
            self.rows += self.sampler.update(self.steps(steps))


def play_at_once(sampler: Any, returns: Returns, updates: int, episodes: int) -> list[Any]:
    """Updates, each of one episode in every one of many sub-environments; the rows of all."""
    rows: list[Any] = []
    seeds = np.arange(episodes, dtype=np.uint64) + np.uint64(1000)
    for update in range(updates):
        drawn = sampler.draw(seeds, np.full(episodes, update))
        records = []
        for env in range(episodes):
            params = {"x": 0.3, "y": 0.5, **{name: float(values[env]) for name, values in drawn.items()}}
            gained = returns(params)
            record = EpisodeRecord(
                env_index=env,
                seed=1000 + env,
                draw_index=update,
                params=params,
                episode_return=gained,
                length=1,
                terminated=True,
            )
            records.append(record)
        rows += sampler.update(records)
    return rows
