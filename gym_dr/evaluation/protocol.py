"""Plays a frozen policy for a batch of episodes with fixed seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array
from gym_dr.errors import NotFiniteError
from gym_dr.policies.acting import Moment, drive
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.training.api import Policy, seed_for
from gym_dr.wrappers.record import RecordEpisodes

EVALUATION_SEED = seed_for(0, stream=1)  # the same for every run, so that all policies play the same episodes


def play_batch(
    policy: Policy,
    envs: VectorEnv[Any, Any, Any],
    episodes: int,
    seed: int,
    *,
    params: Mapping[str, Array] | None = None,
    on_finished: Callable[[int], object] = lambda finished: None,
    on_step: Callable[[Moment], object] = lambda moment: None,
) -> list[EpisodeRecord]:
    """Plays one episode in each of the first ``episodes`` sub-environments, until the slowest ends.

    Each episode has its own seed, so its draw, terrain and first push are the same for every policy. A batch waits for
    its slowest episode, since taking the first to finish would favor short episodes.

    Args:
        policy: With memory or without.
        envs: NEXT_STEP autoreset; closed by the caller.
        episodes: Number of episodes, at most ``envs.num_envs``.
        seed: Seed of sub-environment 0; sub-environment i has ``seed + i``.
        params: Values instead of draws, name -> shape ``(episodes,)``.
        on_finished: Called when episodes end, with the number of finished episodes.
        on_step: Called with what the reset and each step returned.

    Returns:
        A record for each episode, in the order of the sub-environments.

    Raises:
        NotFiniteError: A return is not finite: statistics could not be computed.
    """
    records: dict[int, EpisodeRecord] = {}

    def keep(record: EpisodeRecord) -> None:
        _check_finite(record, seed + record.env_index)
        records[record.env_index] = record

    recorded = RecordEpisodes(envs, keep)
    options: dict[str, Any] = {}
    if params:  # idle sub-environments get the last values
        idle = (0, envs.num_envs - episodes)
        options["params"] = {name: np.pad(values, idle, mode="edge") for name, values in params.items()}
    steps = drive(policy, recorded, seed=seed, options=options)
    on_step(next(steps))  # the reset
    recorded.paused[episodes:] = True
    while len(records) < episodes:
        before = len(records)
        on_step(next(steps))
        if len(records) > before:
            on_finished(len(records))
            recorded.paused[list(records)] = True
    return [records[i] for i in range(episodes)]


def _check_finite(record: EpisodeRecord, seed: int) -> None:
    if not math.isfinite(record.episode_return):
        values = "".join(f", {name} {value:g}" for name, value in record.params.items())
        raise NotFiniteError(
            f"An episode returned {record.episode_return} (seed {seed}{values}): expected rewards that are finite."
        )
