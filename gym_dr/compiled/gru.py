"""Gated recurrent units in compiled code.

Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder": ``h' = (1 - z) n + z h`` with
``r = sigmoid(W_r x + V_r h)``, ``z = sigmoid(W_z x + V_z h)`` and ``n = tanh(W_n x + r V_n h)``, each with the biases
of ``torch.nn.GRUCell``, in whose order (r, z, n) the three gates lie. ``policy.py`` acts with these units,
``gradients.py`` trains them, and tests compare both with torch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats
from gym_dr.compiled.flags import KERNEL, RUNTIME
from gym_dr.compiled.network import tanh_of

# sequences in training at a time: so few make products with the state that BLAS takes without packing them first
AT_ONCE = 4

_ONE, _HALF, _ZERO = np.float32(1.0), np.float32(0.5), np.float32(0.0)


@njit(**KERNEL)
def weight_count(inputs, units):
    """Learned numbers: two matrices, of the inputs and of the state, and two biases, each for three gates."""
    return 3 * units * (inputs + units + 2)


class ActingMemory(NamedTuple):
    """What a policy remembers of N episodes, and the units that update it. Without units all arrays are empty.

    The matrices are ``(inputs, 3 H)`` and ``(H, 3 H)``; see ``Network`` for why.
    """

    weights: Floats  # matrix of the inputs, matrix of the state, bias of each
    state: Floats  # (N, H)
    previous: Floats  # (N, A) the last action, as the units see it; 0 at first
    inputs: Floats  # (N, inputs) observation and last action
    from_inputs: Floats  # (N, 3 H)
    from_state: Floats  # (N, 3 H)
    features: Floats  # (N, obs + H) observation and state, which the policy's network gets

    @staticmethod
    def allocate(*, observation: int, action: int, units: int, num_envs: int) -> ActingMemory:
        """Zeroed memory of ``units`` for observations and actions of these lengths."""
        inputs = observation + action

        def zeros(columns: int) -> Floats:
            return np.zeros((num_envs, columns) if units else (0, 0), np.float32)

        return ActingMemory(
            weights=np.zeros(weight_count.py_func(inputs, units), np.float32),
            state=zeros(units),
            previous=zeros(action),
            inputs=zeros(inputs),
            from_inputs=zeros(3 * units),
            from_state=zeros(3 * units),
            features=zeros(observation + units),
        )


class TrainedMemory(NamedTuple):
    """Working memory to train units on sequences of L steps, of which S go through at a time, in time-major order.

    The weights, with matrices ``(3 H, inputs)`` and ``(3 H, H)`` as in torch, lie at the end of a network's. Each of
    several threads has such memory: all arrays have a first dimension of threads, up to ``memory_of``.
    """

    inputs: Floats  # (L * S, inputs)
    before: Floats  # (L * S, H) states before each step
    gates: Floats  # (L * S, 3 H) r, z, n; after ``unroll_backward`` derivatives of what the inputs contribute
    pulled: Floats  # (L * S, 3 H) what the state contributes; after ``unroll_backward`` derivatives of it
    states: Floats  # (L * S, H) after each step
    by_states: Floats  # (L * S, H) derivatives of the loss with respect to them, by way of the network's inputs
    carried: Floats  # (2, S, H) the same by way of the next step, and working memory
    part: Floats  # a matrix's gradient

    @staticmethod
    def allocate(*, inputs: int, units: int, length: int, sequences: int, threads: int = 1) -> TrainedMemory:
        """Zeroed memory for at most ``sequences`` sequences of ``length`` steps at a time in each thread."""
        rows = length * sequences if units else 0

        def zeros(columns: int) -> Floats:
            return np.zeros((threads, rows, columns), np.float32)

        return TrainedMemory(
            inputs=zeros(inputs),
            before=zeros(units),
            gates=zeros(3 * units),
            pulled=zeros(3 * units),
            states=zeros(units),
            by_states=zeros(units),
            carried=np.zeros((threads, 2, sequences, units), np.float32),
            part=np.zeros((threads, 3 * units * max(inputs, units)), np.float32),
        )


@njit(**KERNEL | RUNTIME)
def memory_of(memory, slot):
    """The memory of the thread of a ``slot``."""
    return TrainedMemory(
        memory.inputs[slot],
        memory.before[slot],
        memory.gates[slot],
        memory.pulled[slot],
        memory.states[slot],
        memory.by_states[slot],
        memory.carried[slot],
        memory.part[slot],
    )


@njit(**KERNEL)
def forget(memory, starts):
    """Clears the memory where an episode ``starts`` (N,)."""
    for i in range(len(starts)):
        if starts[i]:
            for j in range(memory.state.shape[1]):
                memory.state[i, j] = _ZERO
            for j in range(memory.previous.shape[1]):
                memory.previous[i, j] = _ZERO


@njit(**KERNEL)
def _open_gates(from_inputs, from_state, bias, state_bias, state, following):
    """One step: fills ``following`` (n, H) from ``state`` (n, H), which may be the same array.

    ``from_inputs`` (n, 3 H), products without biases, becomes the gates; the last third of ``from_state`` its sum.
    """
    size = state.shape[1]
    for i in range(len(state)):
        gates, pulled = from_inputs[i], from_state[i]
        for j in range(2 * size):  # sigmoid(x) = (1 + tanh(x / 2)) / 2
            gates[j] = _HALF * (gates[j] + bias[j] + (pulled[j] + state_bias[j]))
        tanh_of(gates[: 2 * size])
        for j in range(2 * size):
            gates[j] = _HALF + _HALF * gates[j]
        for j in range(size):
            pulled[2 * size + j] += state_bias[2 * size + j]
            gates[2 * size + j] += bias[2 * size + j] + gates[j] * pulled[2 * size + j]
        tanh_of(gates[2 * size :])
        for j in range(size):
            new = gates[2 * size + j]
            following[i, j] = new + gates[size + j] * (state[i, j] - new)


@njit(**KERNEL | RUNTIME)
def remember(memory, observations):
    """Updates the memory with observations ``(N, obs)``; returns the features ``(N, obs + H)``."""
    size, ins, seen = memory.state.shape[1], memory.inputs.shape[1], observations.shape[1]
    for i in range(len(observations)):
        for j in range(seen):
            memory.inputs[i, j] = observations[i, j]
            memory.features[i, j] = observations[i, j]
        for j in range(memory.previous.shape[1]):
            memory.inputs[i, seen + j] = memory.previous[i, j]
    at, end = 3 * size * ins, 3 * size * (ins + size)
    np.dot(memory.inputs, memory.weights[:at].reshape(ins, 3 * size), memory.from_inputs)
    np.dot(memory.state, memory.weights[at:end].reshape(size, 3 * size), memory.from_state)
    bias, state_bias = memory.weights[end : end + 3 * size], memory.weights[end + 3 * size :]
    _open_gates(memory.from_inputs, memory.from_state, bias, state_bias, memory.state, memory.state)
    for i in range(len(observations)):
        for j in range(size):
            memory.features[i, seen + j] = memory.state[i, j]
    return memory.features


@njit(**KERNEL | RUNTIME)
def unroll(memory, weights, length, first, starts):
    """Fills the states of ``length`` steps of n sequences, whose inputs are filled.

    ``weights`` are those of the units; ``first`` (n, H) the states before the first step; ``starts`` (L * n,) marks
    steps that begin an episode, before which the state is cleared.
    """
    n, size = first.shape
    ins = memory.inputs.shape[1]
    at, end = 3 * size * ins, 3 * size * (ins + size)
    matrix, recurrent = weights[:at].reshape(3 * size, ins), weights[at:end].reshape(3 * size, size)
    bias, state_bias = weights[end : end + 3 * size], weights[end + 3 * size :]
    np.dot(memory.inputs[: length * n], matrix.T, memory.gates[: length * n])
    for t in range(length):
        now = slice(t * n, (t + 1) * n)
        before = memory.before[now]
        source = memory.states[(t - 1) * n : t * n] if t > 0 else first
        for i in range(n):
            kept = _ZERO if starts[t * n + i] else _ONE
            for j in range(size):
                before[i, j] = kept * source[i, j]
        np.dot(before, recurrent.T, memory.pulled[now])
        _open_gates(memory.gates[now], memory.pulled[now], bias, state_bias, before, memory.states[now])


@njit(**KERNEL)
def _by_gates(memory, row, i):
    """Derivatives at one step of one sequence: of the gates, and of the state before it except through them."""
    size = memory.states.shape[1]
    gates, pulled, carried = memory.gates[row], memory.pulled[row], memory.carried[0, i]
    for j in range(size):
        reset, keep, new = gates[j], gates[size + j], gates[2 * size + j]
        by_state = memory.by_states[row, j] + carried[j]
        by_new = by_state * (_ONE - keep) * (_ONE - new * new)
        by_keep = by_state * (memory.before[row, j] - new) * keep * (_ONE - keep)
        by_reset = by_new * pulled[2 * size + j] * reset * (_ONE - reset)
        gates[j], gates[size + j], gates[2 * size + j] = by_reset, by_keep, by_new
        pulled[j], pulled[size + j], pulled[2 * size + j] = by_reset, by_keep, by_new * reset
        carried[j] = by_state * keep


@njit(**KERNEL | RUNTIME)
def unroll_backward(memory, weights, gradient, length, n, starts):
    """Adds the gradient of the units' weights, after ``unroll`` and with ``by_states`` filled.

    Backpropagation through time (Werbos 1990) stops at the first step of the sequences and where episodes start.
    """
    size, ins = memory.states.shape[1], memory.inputs.shape[1]
    at, end = 3 * size * ins, 3 * size * (ins + size)
    recurrent = weights[at:end].reshape(3 * size, size)
    carried, product = memory.carried[0, :n], memory.carried[1, :n]
    carried[:] = _ZERO
    for t in range(length - 1, -1, -1):
        for i in range(n):
            _by_gates(memory, t * n + i, i)
        np.dot(memory.pulled[t * n : (t + 1) * n], recurrent, product)
        for i in range(n):
            kept = _ZERO if starts[t * n + i] else _ONE
            for j in range(size):
                carried[i, j] = kept * (carried[i, j] + product[i, j])
    rows = length * n
    _add_product(memory.gates[:rows], memory.inputs[:rows], memory.part, gradient[:at])
    _add_product(memory.pulled[:rows], memory.before[:rows], memory.part, gradient[at:end])
    bias, state_bias = gradient[end : end + 3 * size], gradient[end + 3 * size :]
    for row in range(rows):
        for j in range(3 * size):
            bias[j] += memory.gates[row, j]
            state_bias[j] += memory.pulled[row, j]


@njit(**KERNEL | RUNTIME)
def _add_product(deltas, inputs, part, gradient):
    """Adds a matrix's gradient, ``deltas^T inputs``, to ``gradient``."""
    count = deltas.shape[1] * inputs.shape[1]
    np.dot(deltas.T, inputs, part[:count].reshape(deltas.shape[1], inputs.shape[1]))
    for j in range(count):
        gradient[j] += part[j]
