"""Many steps in one call: a small policy and an environment's compiled step alternate, without Python in between."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.compiled import policy
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, RUNTIME

# reward that the step of a sub-environment has not set, because an error in compiled code has ended it
UNFINISHED = float(np.finfo(np.float64).min)


class StepBuffers(NamedTuple):
    """Inputs and outputs of the compiled step of N sub-environments, in the environment's own arrays."""

    discrete: Indices  # (N,) actions, counted from 0
    continuous: npt.NDArray[Any]  # (N, actions)
    fresh: npt.NDArray[np.int64]  # (N,) nonzero where the next step begins an episode instead
    observations: Floats  # (N, size)
    rewards: Array  # (N,)
    terminations: Mask  # (N,)


@njit(**ENTRY | RUNTIME)
def rollout(step, world, buffers, small_policy, noise, steps, elapsed, max_steps, rows):
    """Fills ``rows`` (first, last + 1), stopping when an episode ends; returns the row after the last one filled.

    An error in compiled code, which a call from compiled code does not pass on, leaves ``UNFINISHED`` rewards.

    ``step(world, envs, first, last)`` steps sub-environments ``envs[first:last]``, here all of them, through the
    ``buffers``; ``noise`` (T, N, numbers) are the random numbers of the ``small_policy``; ``elapsed`` (N,) counts the
    steps of the current episodes, at most ``max_steps``.
    """
    num_envs = len(elapsed)
    envs = np.arange(num_envs)
    env_actions = np.empty((num_envs, len(small_policy.low)), np.float32)
    starts = np.empty(num_envs, np.bool_)
    t, last = rows
    over = False
    while t < last and not over:
        for env in range(num_envs):
            starts[env] = elapsed[env] == 0 and buffers.fresh[env] == 0
        policy.choose(small_policy, starts, noise[t], steps, t, env_actions)
        for env in range(num_envs):
            buffers.discrete[env] = steps.discrete[t, env]
            for j in range(env_actions.shape[1]):
                buffers.continuous[env, j] = env_actions[env, j]
            elapsed[env] = 0 if buffers.fresh[env] != 0 else elapsed[env] + 1
            buffers.rewards[env] = UNFINISHED
        step(world, envs, 0, num_envs)
        for env in range(num_envs):
            for j in range(buffers.observations.shape[1]):
                steps.observations[t + 1, env, j] = buffers.observations[env, j]
            steps.rewards[t, env] = buffers.rewards[env]
            steps.terminated[t, env] = buffers.terminations[env]
            steps.truncated[t, env] = elapsed[env] >= max_steps
            unfinished = buffers.rewards[env] == UNFINISHED
            over = over or buffers.terminations[env] or elapsed[env] >= max_steps or unfinished
        t += 1
    return t


cache_on_disk(rollout, "rollouts of native environments with a policy")
