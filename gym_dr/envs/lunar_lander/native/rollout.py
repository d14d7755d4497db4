"""Many steps in one call: a small policy acts and the physics answers, without Python in between."""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

import numpy as np
from numba import njit

from gym_dr.compiled import policy
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY, RUNTIME
from gym_dr.envs.lunar_lander.native.layout import S_FRESH


@njit(**ENTRY | RUNTIME)
def rollout(step, landers, small_policy, noise, steps, elapsed, max_steps, rows):
    """Fill the rows from the first to the last of ``rows``, or fewer: until an episode ends; returns the row after.

    ``step`` is the physics' and takes the ``landers``; ``noise`` (T, N, numbers) is what the ``small_policy`` samples
    by; ``elapsed`` (N,) counts the steps of the episodes under way, at most ``max_steps``.
    """
    memory, actions, _, _ = landers
    num_envs = len(elapsed)
    envs = np.arange(num_envs)
    env_actions = np.empty((num_envs, len(small_policy.low)), np.float32)
    t, last = rows
    over = False
    while t < last and not over:
        policy.choose(
            small_policy, steps.observations[t], noise[t], steps.choices[t], steps.raw_actions[t], env_actions
        )
        for env in range(num_envs):
            actions.choices[env] = steps.choices[t, env]
            for j in range(env_actions.shape[1]):
                actions.throttles[env, j] = env_actions[env, j]
            elapsed[env] = 0 if memory.status[env, S_FRESH] != 0 else elapsed[env] + 1
        step(landers, envs, 0, num_envs)
        for env in range(num_envs):
            for j in range(memory.observations.shape[1]):
                steps.observations[t + 1, env, j] = memory.observations[env, j]
            steps.rewards[t, env] = memory.rewards[env]
            steps.terminated[t, env] = memory.terminations[env]
            steps.truncated[t, env] = elapsed[env] >= max_steps
            over = over or memory.terminations[env] or elapsed[env] >= max_steps
        t += 1
    return t


cache_on_disk(rollout, "the native LunarLander with a policy (about 5 s)")
