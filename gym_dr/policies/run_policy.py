"""The policy of a run, for the user's own environments."""

from __future__ import annotations

import contextlib
from typing import cast

from gym_dr.policies.acting import takes_episode_starts
from gym_dr.policies.actions import for_one_or_many
from gym_dr.policies.draws import Draws
from gym_dr.policies.origins import open_trained
from gym_dr.runs.config import OpenedRun
from gym_dr.training.api import MemorylessPolicy, Policy


def run_policy(run: OpenedRun, *, deterministic: bool = False) -> Policy:
    """Loads the policy from a run's newest checkpoint; see ``Run.policy``.

    Raises:
        ConfigError: The algorithm cannot load policies, or not deterministic ones.
        CheckpointError: There is no usable checkpoint.
    """
    policy = open_trained(run, stochastic=False if deterministic else None, home=run.folder.evaluation)
    with contextlib.closing(policy.make_envs(Draws())) as envs:
        act, shape = policy.make(envs), envs.single_observation_space.shape
        if shape is None or takes_episode_starts(act, policy.source):  # no arrays, or a memory per batch
            return act
        return for_one_or_many(cast(MemorylessPolicy, act), shape, str(run.folder.path))
