"""Actions of a small network without a call into torch: one compiled function from observations to actions.

A forward pass in torch takes some 60 us however small the network; for a few thousand weights and a few dozen
observations the arithmetic takes less than a tenth of that. The trainer copies the weights before each rollout.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Indices
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY, KERNEL, RUNTIME

CATEGORICAL: Final = 0  # one of n actions by softmax(output)
GAUSSIAN: Final = 1  # output is the mean; the standard deviation is state-independent; [-1, 1] maps to the bounds
TWO_HEADS: Final = 2  # outputs are the mean and, through softplus, the standard deviation; in the environment's units

_SATURATED = np.float32(9.2)  # beyond this the hyperbolic tangent rounds to 1
_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)
_P0, _P1, _P2 = np.float32(135135.0), np.float32(17325.0), np.float32(378.0)
_Q1, _Q2, _Q3 = np.float32(62370.0), np.float32(3150.0), np.float32(28.0)


class SmallPolicy(NamedTuple):
    """A multilayer perceptron and the meaning of its output; kernels read the arrays, which the trainer fills.

    ``weights`` holds the layers consecutively: for each a matrix ``(inputs, outputs)``, then ``(outputs,)`` biases.
    """

    sizes: Indices  # (layers + 1,) units, of the observation first
    tanh: bool  # the activation between layers; otherwise relu
    kind: int  # CATEGORICAL, GAUSSIAN or TWO_HEADS
    std: Floats  # (actions,) standard deviation of GAUSSIAN; otherwise unused
    floor: np.float32  # added to the standard deviation of TWO_HEADS
    low: Floats  # (actions,) bounds of continuous actions; otherwise unused
    high: Floats  # (actions,)
    weights: Floats  # see above
    hidden: Floats  # (2, num_envs * widest layer) working memory

    @staticmethod
    def allocate(
        *, sizes: list[int], tanh: bool, kind: int, low: Floats, high: Floats, floor: float, num_envs: int
    ) -> SmallPolicy:
        """Zeroed memory for a network of these sizes and ``num_envs`` observations at a time."""
        count = sum((before + 1) * after for before, after in pairwise(sizes))
        return SmallPolicy(
            sizes=np.array(sizes, np.int64),
            tanh=tanh,
            kind=kind,
            std=np.ones(len(low), np.float32),
            floor=np.float32(floor),
            low=np.ascontiguousarray(low, np.float32),
            high=np.ascontiguousarray(high, np.float32),
            weights=np.zeros(count, np.float32),
            hidden=np.zeros((2, num_envs * max(sizes)), np.float32),
        )


@njit(**KERNEL)
def tanh_of(values):
    """Hyperbolic tangents in place, to within 2.5e-7.

    Six steps of Lambert's continued fraction give ``tanh(x / 2) = p / q``, and ``tanh x = 2 p q / (p^2 + q^2)``. Being
    plain arithmetic, this compiles to SIMD; a library's ``tanhf`` takes one number at a time.
    """
    for i in range(values.size):
        half = _HALF * min(max(values[i], -_SATURATED), _SATURATED)
        s = half * half
        p = half * (_P0 + s * (_P1 + s * (_P2 + s)))
        q = _P0 + s * (_Q1 + s * (_Q2 + s * _Q3))
        values[i] = _TWO * p * q / (p * p + q * q)


@njit(**KERNEL | RUNTIME)
def _forward(policy, observations):
    """The network's outputs ``(N, outputs)`` for observations ``(N, inputs)``."""
    sizes, tanh, weights, hidden = policy.sizes, policy.tanh, policy.weights, policy.hidden
    n = len(observations)
    source = observations
    at = 0
    layers = len(sizes) - 1
    for layer in range(layers):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        matrix = weights[at : at + inputs * outputs].reshape(inputs, outputs)
        bias = weights[at + inputs * outputs : at + (inputs + 1) * outputs]
        at += (inputs + 1) * outputs
        flat = hidden[layer % 2, : n * outputs]
        target = flat.reshape(n, outputs)
        np.dot(source, matrix, target)
        last = layer == layers - 1
        for i in range(n):
            for j in range(outputs):
                value = target[i, j] + bias[j]
                target[i, j] = value if last or tanh else max(value, _ZERO)
        if tanh and not last:
            tanh_of(flat)
        source = target
    return source


@njit(**KERNEL | RUNTIME)
def choose(policy, observations, noise, choices, raw_actions, env_actions):
    """Samples an action for each observation from a ``SmallPolicy``.

    ``observations`` (N, inputs) float32; ``noise`` float32, uniform on [0, 1) and (N, 1) for discrete actions, or
    standard normal and (N, actions). Discrete actions, counted from 0, go to ``choices`` (N,) int64; continuous ones
    to ``raw_actions`` (N, actions) float32, not clipped, and to ``env_actions`` in the form that the environment takes.
    """
    low, high = policy.low, policy.high
    outputs = _forward(policy, observations)
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
                action = mean + (_softplus(outputs[i, len(low) + j]) + policy.floor) * noise[i, j]
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


@njit(**KERNEL)
def _softplus(x):
    """``log(1 + exp(x))`` as in torch: x itself if the difference is below float32's last digit."""
    return x if x > np.float32(20.0) else np.log1p(np.exp(x))


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
