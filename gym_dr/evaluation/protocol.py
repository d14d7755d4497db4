"""Plays a frozen policy for a fixed number of episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
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
        seed: Of the first episode; the others have the numbers after it.

    Returns:
        A record for each episode, in the order of the seeds.

    Raises:
        ConfigError: The number of episodes is below 1.
    """
    if episodes < 1:
        raise ConfigError(f"Expected at least 1 episode, got {episodes}.")
    records: list[EpisodeRecord] = []
    while len(records) < episodes:
        playing = min(envs.num_envs, episodes - len(records))
        records += play_wave(policy, envs, playing, seed + len(records))
    return records


def play_wave(
    policy: Policy,
    envs: VectorEnv[Any, Any, Any],
    playing: int,
    seed: int,
    *,
    params: Mapping[str, npt.NDArray[np.float64]] | None = None,
    finished: Callable[[int], object] = lambda over: None,
) -> list[EpisodeRecord]:
    """Plays one episode in each of the first ``playing`` sub-environments, until the slowest is over.

    Args:
        policy: Observations ``(N, ...)`` -> actions.
        envs: NEXT_STEP autoreset; closed by the caller.
        playing: At most ``envs.num_envs``.
        seed: Of sub-environment 0; sub-environment i has ``seed + i``.
        params: Values in place of draws, name -> shape ``(playing,)``.
        finished: Called when episodes have ended, with the number of those that are over.

    Returns:
        A record for each episode, in the order of the sub-environments.
    """
    records: dict[int, EpisodeRecord] = {}
    recorded = RecordDraws(envs, lambda record: records.update({record.env_index: record}))
    options: dict[str, Any] = {}
    if params:  # idle sub-environments get the last values
        idle = (0, envs.num_envs - playing)
        options["params"] = {name: np.pad(values, idle, mode="edge") for name, values in params.items()}
    observations, _ = recorded.reset(seed=seed, options=options)
    recorded.paused[playing:] = True
    while len(records) < playing:
        before = len(records)
        observations, *_ = recorded.step(policy(np.asarray(observations)))
        if len(records) > before:
            finished(len(records))
            recorded.paused[list(records)] = True
    return [records[i] for i in range(playing)]
