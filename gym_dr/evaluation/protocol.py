"""Plays a frozen policy for a fixed number of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError
from gym_dr.training.api import Policy, seed_for
from gym_dr.wrappers.record import EpisodeRecord, RecordDraws

EVALUATION_SEED = seed_for(0, stream=1)  # the same for every run, so that policies meet the same episodes


def evaluate(
    policy: Policy, envs: VectorEnv[Any, Any, Any], episodes: int, seed: int = EVALUATION_SEED
) -> list[EpisodeRecord]:
    """Plays ``episodes`` episodes, equally many in each sub-environment.

    Every episode has a seed of its own, so its draw, terrain and first push are the same for every policy, however long
    the episodes before it were. All sub-environments play one episode, wait for the slowest, and play the next: taking
    the first that finish would favour short episodes.

    Args:
        policy: Observations ``(N, ...)`` -> actions.
        envs: NEXT_STEP autoreset; closed by the caller.
        episodes: How many in all, at least 1.
        seed: Of the environments.

    Returns:
        A record for each episode, in the order of the seeds.

    Raises:
        ConfigError: The number of episodes is below 1.
    """
    if episodes < 1:
        raise ConfigError(f"Expected at least 1 episode, got {episodes}.")
    finished: dict[int, EpisodeRecord] = {}
    recorded = RecordDraws(envs, lambda record: finished.update({record.env_index: record}))
    records: list[EpisodeRecord] = []
    while len(records) < episodes:
        playing = min(envs.num_envs, episodes - len(records))
        observations, _ = recorded.reset(seed=seed + len(records))
        recorded.paused[playing:] = True
        finished.clear()
        while len(finished) < playing:
            observations, *_ = recorded.step(policy(np.asarray(observations)))
            recorded.paused[list(finished)] = True
        records += [finished[i] for i in range(playing)]
    return records
