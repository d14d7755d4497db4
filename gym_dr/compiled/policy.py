"""Actions of a small network without a call into torch: one compiled function from observations to actions.

The trainer copies the weights before each rollout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL, RUNTIME
from gym_dr.compiled.gru import ActingMemory, forget, remember
from gym_dr.compiled.network import Network, forward, softplus

CATEGORICAL: Final = 0  # one of n actions by softmax(output)
GAUSSIAN: Final = 1  # output is the mean; the standard deviation is state-independent; [-1, 1] maps to the bounds
TWO_HEADS: Final = 2  # outputs are the mean and, through softplus, the standard deviation; in the environment's units

_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)
_HALF_LOG_2PI = np.float32(0.5 * np.log(2.0 * np.pi))


class SmallPolicy(NamedTuple):
    """A network and the meaning of its outputs; kernels read the arrays, which the trainer fills."""

    network: Network  # of observations and memory; its matrices are (inputs, outputs)
    memory: ActingMemory
    kind: int  # CATEGORICAL, GAUSSIAN or TWO_HEADS
    std: Floats  # (actions,) standard deviation of GAUSSIAN; otherwise unused
    floor: np.float32  # added to the standard deviation of TWO_HEADS
    low: Floats  # (actions,) bounds of continuous actions; otherwise unused
    high: Floats  # (actions,)

    @staticmethod
    def allocate(
        *,
        sizes: list[int],
        tanh: bool,
        kind: int,
        low: Floats,
        high: Floats,
        floor: float,
        num_envs: int,
        units: int = 0,
    ) -> SmallPolicy:
        """Zeroed memory for a network of these sizes and ``num_envs`` observations at a time.

        ``units`` are those of the policy's memory, whose state is the last of the network's inputs.
        """
        action = len(low) if len(low) else sizes[-1]
        return SmallPolicy(
            network=Network.allocate(sizes=sizes, tanh=tanh, inputs_first=True, rows=num_envs),
            memory=ActingMemory.allocate(observation=sizes[0] - units, action=action, units=units, num_envs=num_envs),
            kind=kind,
            std=np.ones(len(low), np.float32),
            floor=np.float32(floor),
            low=np.ascontiguousarray(low, np.float32),
            high=np.ascontiguousarray(high, np.float32),
        )


@njit(**KERNEL | RUNTIME)
def choose(policy, starts, noise, steps, t, env_actions):
    """Samples an action for each observation in row ``t`` of ``Steps`` from a ``SmallPolicy``.

    Where an observation is the first of an episode, ``starts`` (N,), the policy forgets what it remembers. ``noise``
    float32 is uniform on [0, 1) and (N, 1) for discrete actions, or standard normal and (N, actions). Fills the row's
    actions, log-probabilities and states of memory, and ``env_actions`` (N, actions) with continuous actions in the
    form that the environment takes.
    """
    observations = steps.observations[t]
    remembers = policy.memory.state.shape[1] > 0
    if remembers:
        forget(policy.memory, starts)
        steps.states[t] = policy.memory.state
        outputs = forward(policy.network, remember(policy.memory, observations))
    else:
        outputs = forward(policy.network, observations)
    for i in range(len(outputs)):
        if policy.kind == CATEGORICAL:
            choice, steps.log_probs[t, i] = _draw_index(outputs[i], noise[i, 0])
            steps.discrete[t, i] = choice
            if remembers:
                for j in range(len(outputs[i])):
                    policy.memory.previous[i, j] = _ONE if j == choice else _ZERO
        else:
            steps.log_probs[t, i] = _draw_numbers(policy, outputs[i], noise[i], steps.raw_actions[t, i], env_actions[i])
            if remembers:
                _remember_numbers(policy, steps.raw_actions[t, i], policy.memory.previous[i])


@njit(**KERNEL)
def _draw_numbers(policy, output, noise, raw_action, env_action):
    """Fills an action, not clipped, and the same as the environment takes it; returns its log-probability."""
    low, high = policy.low, policy.high
    log_prob = _ZERO
    for j in range(len(low)):
        mean = output[j]
        if policy.kind == GAUSSIAN:
            std = policy.std[j]
            action = mean + std * noise[j]
            unit = _HALF * (min(max(action, -_ONE), _ONE) + _ONE)
            sent = low[j] + unit * (high[j] - low[j])
        else:
            std = softplus(output[len(low) + j]) + policy.floor
            action = mean + std * noise[j]
            sent = action
        log_prob -= _HALF * noise[j] * noise[j] + np.log(std) + _HALF_LOG_2PI
        raw_action[j] = action
        env_action[j] = min(max(sent, low[j]), high[j])
    return log_prob


@njit(**KERNEL)
def _remember_numbers(policy, raw_action, previous):
    """A continuous action as memory sees it: clipped, and scaled to [-1, 1]."""
    low, high = policy.low, policy.high
    for j in range(len(low)):
        action = raw_action[j]
        if policy.kind == TWO_HEADS:
            action = _TWO * (action - low[j]) / (high[j] - low[j]) - _ONE
        previous[j] = min(max(action, -_ONE), _ONE)


@njit(**KERNEL)
def _draw_index(logits, uniform):
    """The first index at which the summed softmax of the logits is above ``uniform``, and its log-probability."""
    largest = logits[0]
    for j in range(1, len(logits)):
        largest = max(largest, logits[j])
    total = _ZERO
    for j in range(len(logits)):
        total += np.exp(logits[j] - largest)
    reached, choice = _ZERO, len(logits) - 1
    for j in range(len(logits) - 1):
        reached += np.exp(logits[j] - largest)
        if uniform * total < reached:
            choice = j
            break
    return choice, logits[choice] - largest - np.log(total)


@njit(**ENTRY | RUNTIME)
def act(policy, starts, noise, steps, t, env_actions):
    """``choose``, callable from Python."""
    choose(policy, starts, noise, steps, t, env_actions)


cache_on_disk(act, "small networks")
