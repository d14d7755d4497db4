"""Actions of a small network without a call into torch: one compiled function from observations to actions.

The trainer copies the weights before each rollout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.network import Network, forward, softplus
from gym_dr.compiled.options import ENTRY, KERNEL, RUNTIME

CATEGORICAL: Final = 0  # one of n actions by softmax(output)
GAUSSIAN: Final = 1  # output is the mean; the standard deviation is state-independent; [-1, 1] maps to the bounds
TWO_HEADS: Final = 2  # outputs are the mean and, through softplus, the standard deviation; in the environment's units

_ONE, _HALF, _ZERO = np.float32(1.0), np.float32(0.5), np.float32(0.0)


class SmallPolicy(NamedTuple):
    """A network and the meaning of its outputs; kernels read the arrays, which the trainer fills."""

    network: Network  # of observations; its matrices are (inputs, outputs)
    kind: int  # CATEGORICAL, GAUSSIAN or TWO_HEADS
    std: Floats  # (actions,) standard deviation of GAUSSIAN; otherwise unused
    floor: np.float32  # added to the standard deviation of TWO_HEADS
    low: Floats  # (actions,) bounds of continuous actions; otherwise unused
    high: Floats  # (actions,)

    @staticmethod
    def allocate(
        *, sizes: list[int], tanh: bool, kind: int, low: Floats, high: Floats, floor: float, num_envs: int
    ) -> SmallPolicy:
        """Zeroed memory for a network of these sizes and ``num_envs`` observations at a time."""
        return SmallPolicy(
            network=Network.allocate(sizes=sizes, tanh=tanh, inputs_first=True, rows=num_envs),
            kind=kind,
            std=np.ones(len(low), np.float32),
            floor=np.float32(floor),
            low=np.ascontiguousarray(low, np.float32),
            high=np.ascontiguousarray(high, np.float32),
        )


@njit(**KERNEL | RUNTIME)
def choose(policy, observations, noise, choices, raw_actions, env_actions):
    """Samples an action for each observation from a ``SmallPolicy``.

    ``observations`` (N, inputs) float32; ``noise`` float32, uniform on [0, 1) and (N, 1) for discrete actions, or
    standard normal and (N, actions). Discrete actions, counted from 0, go to ``choices`` (N,) int64; continuous ones
    to ``raw_actions`` (N, actions) float32, not clipped, and to ``env_actions`` in the form that the environment takes.
    """
    low, high = policy.low, policy.high
    outputs = forward(policy.network, observations)
    for i in range(len(outputs)):
        if policy.kind == CATEGORICAL:
            choices[i] = _draw_index(outputs[i], noise[i, 0])
            continue
        for j in range(len(low)):
            mean = outputs[i, j]
            if policy.kind == GAUSSIAN:
                action = mean + policy.std[j] * noise[i, j]
                unit = _HALF * (min(max(action, -_ONE), _ONE) + _ONE)
                env_action = low[j] + unit * (high[j] - low[j])
            else:
                action = mean + (softplus(outputs[i, len(low) + j]) + policy.floor) * noise[i, j]
                env_action = action
            raw_actions[i, j] = action
            env_actions[i, j] = min(max(env_action, low[j]), high[j])


@njit(**KERNEL)
def _draw_index(logits, uniform):
    """The first index at which the summed softmax of the logits is above ``uniform``."""
    largest = logits[0]
    for j in range(1, len(logits)):
        largest = max(largest, logits[j])
    total = _ZERO
    for j in range(len(logits)):
        logits[j] = np.exp(logits[j] - largest)
        total += logits[j]
    reached = _ZERO
    for j in range(len(logits) - 1):
        reached += logits[j]
        if uniform * total < reached:
            return j
    return len(logits) - 1


@njit(**ENTRY | RUNTIME)
def act(policy, observations, noise, choices, raw_actions, env_actions):
    """``choose``, callable from Python."""
    choose(policy, observations, noise, choices, raw_actions, env_actions)


@njit(**ENTRY | RUNTIME)
def act_repeatedly(policy, noise, steps, env_actions):
    """``choose`` for each row of ``Steps``, with given observations and no environment in between."""
    for t in range(len(noise)):
        choose(policy, steps.observations[t], noise[t], steps.choices[t], steps.raw_actions[t], env_actions)


cache_on_disk(act, "small networks")
cache_on_disk(act_repeatedly, "a small network, timed alone")
