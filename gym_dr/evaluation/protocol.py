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

    With a quota for each sub-environment short episodes get no more weight than long ones; taking the first that finish
    would favour them.

    Args:
        policy: Observations ``(N, ...)`` -> actions.
        envs: NEXT_STEP autoreset; closed by the caller.
        episodes: How many in all, at least 1.
        seed: Of the environments.

    Returns:
        A record for each episode, ordered by sub-environment and then by time.

    Raises:
        ConfigError: The number of episodes is below 1.
    """
    if episodes < 1:
        raise ConfigError(f"Expected at least 1 episode, got {episodes}.")
    each, more = divmod(episodes, envs.num_envs)
    quotas = [each + (i < more) for i in range(envs.num_envs)]
    finished: list[list[EpisodeRecord]] = [[] for _ in quotas]

    def keep(record: EpisodeRecord) -> None:
        if len(finished[record.env_index]) < quotas[record.env_index]:
            finished[record.env_index].append(record)

    recorded = RecordDraws(envs, keep)
    observations, _ = recorded.reset(seed=seed)
    while any(len(done) < quota for done, quota in zip(finished, quotas, strict=True)):
        observations, *_ = recorded.step(policy(np.asarray(observations)))
    return [record for records in finished for record in records]
