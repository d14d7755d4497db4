"""Gradient steps of A2C, PPO and distillation on two small networks with hand-derived gradients: one job per epoch.

A minibatch is sequences of steps, which are backpropagated through time; without memory, of one step each.

For a minibatch of 64, torch makes some fifty calls forward, as many backward, and an optimizer step; the arithmetic
itself takes a fraction of that time. The functions here turn a minibatch into derivatives of its loss with respect to
the networks' outputs; ``network.py`` and ``gru.py`` have the rest. Tests compare all of it with torch.

Threads take shares of a minibatch, each for one of the networks, then ranges of weights. How many there are depends on
the minibatch and the networks alone, and they are added up in their order: any number of threads gives the same bits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.compiled.flags import KERNEL, RUNTIME
from gym_dr.compiled.gru import AT_ONCE, TrainedMemory, memory_of, unroll, unroll_backward, weight_count
from gym_dr.compiled.network import (
    BLOCK,
    LANES,
    MirrorImage,
    Optimizer,
    Trained,
    add_shares,
    average_images,
    backward,
    backward_to_inputs,
    divide_deltas,
    forward,
    outputs_deltas,
    share_of,
    softplus,
    step,
)
from gym_dr.compiled.policy import CATEGORICAL, GAUSSIAN
from gym_dr.compiled.threads import run

LOSSES: Final = 6  # actor's, critic's, entropy, approximate KL divergence, share of clipped ratios, of the prediction
SHARES: Final = 32  # of a minibatch, at most
DONE, BAD_GRADIENT, BAD_WEIGHT = 0, 1, 2  # how an epoch ends
LEARN, ADD, STEP = 0, 1, 2  # phases of a minibatch: gradients of shares, their sums, the optimizers' steps
RECALL, VALUE = 3, 4  # before an update: the critic's memory of a rollout, and its values
RANGE: Final = 4096  # weights that a thread takes at a time

_LOG_2PI = np.float32(np.log(2.0 * np.pi))
_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)


class Transitions(NamedTuple):
    """The B steps that an epoch learns from: L steps of S sequences each, in time-major order; else L is 1.

    Or the B observations of a rollout of N sub-environments, which the critic values. Inputs and states of a memory
    have no columns without one.
    """

    observations: Floats  # (B, obs) not normalized
    critic_inputs: Floats  # (B, obs + k)
    discrete: Indices  # (B,) actions; otherwise unused
    raw_actions: Floats  # (B, actions) continuous ones; no columns for discrete
    log_probs: Floats  # (B,) of the actions under the policy that took them; zeros for the policy gradient
    advantages: Floats  # (B,)
    returns: Floats  # (B,)
    values: Floats  # (B,) the critic's, of a rollout's ``critic_inputs``
    labels: Floats  # (B, outputs) what to imitate in place of other losses; no columns if nothing
    kept: Mask  # (B,) False on steps to ignore in the losses
    size: Indices  # (1,) B; arrays may be longer
    length: int  # L
    previous: Floats  # (B, A) the previous actions, as memory sees them
    starts: Mask  # (B,) whether an episode begins
    states: Floats  # (S, H) the actor's before the first step
    critic_states: Floats  # (S, H) the critic's; of a rollout only the first N
    critic_memories: Floats  # (B, H) states of the critic's memory after each row of a rollout
    draws: Floats  # (B, k) draws that the memory learns to predict; no columns if none


class Settings(NamedTuple):
    """Constants of an epoch."""

    kind: int  # CATEGORICAL, GAUSSIAN or TWO_HEADS
    floor: np.float32  # added to the standard deviation of TWO_HEADS
    layers: int  # weights in the actor's layers; the logarithms of the standard deviations of GAUSSIAN come next
    clip_range: np.float32  # of the ratios of probabilities; 0 for the policy gradient without ratios
    value_clip: np.float32  # 0 for none
    normalize_advantages: bool
    prediction_coef: np.float32  # weight of the prediction's loss
    optimizer: Optimizer


class Learner(NamedTuple):
    """All that threads share while they learn from one minibatch after another."""

    actor: Trained
    critic: Trained
    actor_memory: TrainedMemory
    critic_memory: TrainedMemory
    data: Transitions
    settings: Settings
    mirror: MirrorImage  # the actor's outputs are averaged with their mirror image, unless it is empty
    shift: Floats  # (obs + k,) subtracted from inputs
    spread: Floats  # (obs + k,) divides inputs then
    every: Indices  # 0, 1, 2, ...
    rows: Indices  # sequences of all minibatches of an epoch
    starts: Indices  # (minibatches + 1,) minibatch i are rows starts[i] to starts[i + 1]; the end comes again
    losses: Array  # (minibatches, LOSSES) means over each minibatch
    calls: Indices  # (4,) addresses of the threads, of a job for chunks and of this as a struct; how many threads
    now: Indices  # (5,) the phase, the minibatch's first of ``rows`` and the one after its last, its shares; the end
    rates: Array  # (3,) learning rates of actor and critic, weight of the entropy
    scale: Array  # (6,) weight of a step's loss, shift and scale of advantages, lengths of both gradients, steps so far
    found: Array  # (2 SHARES, LOSSES) sums of losses in the actor's and the critic's part of each share
    # (2 ranges, LANES) in each range of the actor's and the critic's weights, parts of the gradient's squared length;
    # then how many weights are not finite
    lanes: Array


@njit(**KERNEL)
def _pull(log_ratio, advantage, settings, losses):
    """One step's clipped surrogate, or the plain policy gradient, for a difference of log-probabilities.

    Adds to the losses; returns the derivative with respect to the log-probability.
    """
    if settings.clip_range == _ZERO:
        losses[0] -= log_ratio * advantage
        return -advantage
    ratio = np.exp(log_ratio)
    clipped = min(max(ratio, _ONE - settings.clip_range), _ONE + settings.clip_range)
    losses[0] -= min(ratio * advantage, clipped * advantage)
    losses[3] += ratio - _ONE - log_ratio
    losses[4] += abs(ratio - _ONE) > settings.clip_range
    return -ratio * advantage if ratio * advantage <= clipped * advantage else _ZERO


@njit(**KERNEL)
def _whole_and_entropy(logits):
    """The logarithm of the summed exponentials of one step's logits, and the entropy of their softmax."""
    largest = logits[0]
    for j in range(1, len(logits)):
        largest = max(largest, logits[j])
    total = _ZERO
    for j in range(len(logits)):
        total += np.exp(logits[j] - largest)
    whole = largest + np.log(total)
    entropy = _ZERO
    for j in range(len(logits)):
        entropy -= np.exp(logits[j] - whole) * (logits[j] - whole)
    return whole, entropy


@njit(**KERNEL)
def _discrete(logits, delta, choice, label, old, advantage, settings, scale, losses):
    """Derivatives with respect to the logits of one step. ``scale`` are the weights of its loss and of its entropy.

    The loss is that of a ``choice``, or the divergence from the log-probabilities ``label`` if it has columns.
    """
    share, entropy_coef = scale
    whole, entropy = _whole_and_entropy(logits)
    imitates = len(label) > 0
    slope = -_ONE if imitates else _pull(logits[choice] - whole - old, advantage, settings, losses)
    for j in range(len(logits)):
        log_prob = logits[j] - whole
        prob, wanted = np.exp(log_prob), _ONE if j == choice else _ZERO
        if imitates:
            wanted = np.exp(label[j])
            losses[0] += wanted * (label[j] - log_prob)
        delta[j] = share * (slope * (wanted - prob) + entropy_coef * prob * (log_prob + entropy))
    losses[2] += entropy


@njit(**KERNEL)
def _continuous(out, delta, log_std, log_std_gradient, action, old, advantage, settings, scale, losses):
    """Derivatives with respect to the means, and to ``log_std`` or the network's output for standard deviations."""
    share, entropy_coef = scale
    shared = settings.kind == GAUSSIAN
    size = len(action)
    log_prob, entropy = _ZERO, _ZERO
    for j in range(size):
        raw = log_std[j] if shared else out[size + j]
        std = np.exp(raw) if shared else softplus(raw) + settings.floor
        log_of = raw if shared else np.log(std)
        z = (action[j] - out[j]) / std
        log_prob -= _HALF * z * z + log_of + _HALF * _LOG_2PI
        entropy += log_of + _HALF * (_LOG_2PI + _ONE)
    slope = _pull(log_prob - old, advantage, settings, losses)
    for j in range(size):
        raw = log_std[j] if shared else out[size + j]
        std = np.exp(raw) if shared else softplus(raw) + settings.floor
        z = (action[j] - out[j]) / std
        delta[j] = share * slope * z / std
        by_log = share * (slope * (z * z - _ONE) - entropy_coef)
        if shared:
            log_std_gradient[j] += by_log
        else:  # the logistic function is softplus' slope
            delta[size + j] = by_log / std / (_ONE + np.exp(-raw))
    losses[2] += entropy


@njit(**KERNEL)
def _imitate_continuous(out, delta, log_std, log_std_gradient, label, settings, scale, losses):
    """The same for the divergence from means and standard deviations ``label``."""
    share, entropy_coef = scale
    shared = settings.kind == GAUSSIAN
    size = len(label) // 2
    for j in range(size):
        raw = log_std[j] if shared else out[size + j]
        std = np.exp(raw) if shared else softplus(raw) + settings.floor
        log_of = raw if shared else np.log(std)
        z, ratio = (out[j] - label[j]) / std, label[size + j] / std
        losses[0] += log_of - np.log(label[size + j]) + _HALF * (ratio * ratio + z * z - _ONE)
        losses[2] += log_of + _HALF * (_LOG_2PI + _ONE)
        delta[j] = share * z / std
        by_log = share * (_ONE - ratio * ratio - z * z - entropy_coef)
        if shared:
            log_std_gradient[j] += by_log
        else:
            delta[size + j] = by_log / std / (_ONE + np.exp(-raw))


@njit(**KERNEL)
def _value(value, old, wanted, settings, losses):
    """One step's critic loss: adds to it, returns the derivative with respect to the value."""
    error = value - wanted
    slope = _TWO * error
    loss = error * error
    if settings.value_clip > _ZERO:
        moved = min(max(value - old, -settings.value_clip), settings.value_clip)
        error = old + moved - wanted
        if error * error > loss:
            loss = error * error
            slope = _TWO * error if moved == value - old else _ZERO
    losses[1] += loss
    return slope


@njit(**KERNEL)
def _scale_of(learner, sequences):
    """The number of steps in a minibatch, and the shift and factor of their advantages, to mean 0 and deviation 1."""
    data, rows = learner.data, learner.data.size[0]
    total = rows // data.length
    count, shift, squares = 0, 0.0, 0.0
    for sequence in sequences:
        for row in range(sequence, rows, total):
            if data.kept[row]:
                count += 1
                shift += data.advantages[row]
    if not learner.settings.normalize_advantages:
        return count, 0.0, 1.0
    shift /= count
    for sequence in sequences:
        for row in range(sequence, rows, total):
            if data.kept[row]:
                squares += (data.advantages[row] - shift) ** 2
    return count, shift, 1.0 / (np.sqrt(squares / count) + 1e-8)


@njit(**KERNEL)
def _by_outputs(log_std, by_log_std, learner, rows, outputs, deltas, losses):
    """Derivatives of the actor's loss at some rows with respect to its ``outputs`` and to ``log_std``."""
    data, settings, scale = learner.data, learner.settings, learner.scale
    weights = np.float32(scale[0]), np.float32(learner.rates[2])
    for i in range(len(rows)):
        row, out, delta = rows[i], outputs[i], deltas[i]
        old, advantage = data.log_probs[row], np.float32((data.advantages[row] - scale[1]) * scale[2])
        action, label = data.raw_actions[row], data.labels[row]
        if not data.kept[row]:
            delta[:] = _ZERO
        elif settings.kind == CATEGORICAL:
            _discrete(out, delta, data.discrete[row], label, old, advantage, settings, weights, losses)
        elif len(label) > 0:
            _imitate_continuous(out, delta, log_std, by_log_std, label, settings, weights, losses)
        else:
            _continuous(out, delta, log_std, by_log_std, action, old, advantage, settings, weights, losses)


@njit(**KERNEL | RUNTIME)
def _by_averages(places, log_std, by_log_std, learner, rows, outputs, deltas, losses):
    """``_by_outputs`` with deviations that are averaged with their mirror image too."""
    averages, by_averages = np.empty_like(log_std), np.zeros_like(log_std)
    for j in range(len(log_std)):
        averages[j] = _HALF * (log_std[j] + log_std[places[j]])
    _by_outputs(averages, by_averages, learner, rows, outputs, deltas, losses)
    for j in range(len(log_std)):
        by_log_std[j] += _HALF * (by_averages[j] + by_averages[places[j]])


@njit(**KERNEL)
def _by_values(learner, rows, values, deltas, losses):
    """Derivatives of the critic's loss at some rows with respect to its ``values``."""
    data, share = learner.data, np.float32(learner.scale[0])
    for i in range(len(rows)):
        row = rows[i]
        deltas[i, 0] = _ZERO
        if data.kept[row]:
            old = data.returns[row] - data.advantages[row]
            deltas[i, 0] = share * _value(values[i, 0], old, data.returns[row], learner.settings, losses)


@njit(**KERNEL | RUNTIME)
def _learn(trained, acts, learner, rows, losses):
    """Adds the gradient and ``losses`` of at most ``BLOCK`` rows, whose inputs the network has."""
    images = acts and len(learner.mirror.output_signs) > 0
    count = 2 * len(rows) if images else len(rows)
    outputs, deltas = forward(trained.network, trained.inputs[:count]), outputs_deltas(trained, count)
    begin = learner.settings.layers
    end = begin + learner.data.raw_actions.shape[1] if learner.settings.kind == GAUSSIAN else begin
    log_std, by_log_std = trained.network.weights[begin:end], trained.gradient[begin:end]  # of the actor
    if not acts:
        _by_values(learner, rows, outputs, deltas, losses)
    elif images:
        average_images(learner.mirror, outputs)
        _by_averages(learner.mirror.output_places, log_std, by_log_std, learner, rows, outputs, deltas, losses)
        divide_deltas(learner.mirror, deltas)
    else:
        _by_outputs(log_std, by_log_std, learner, rows, outputs, deltas, losses)
    backward(trained, count)


@njit(**KERNEL)
def _fill_inputs(trained, learner, given, rows, states):
    """Inputs of a network for some rows: those ``given``, and the states of its memory, if it has one."""
    seen = given.shape[1]
    for i in range(len(rows)):
        for j in range(seen):
            trained.inputs[i, j] = (given[rows[i], j] - learner.shift[j]) / learner.spread[j]
        for j in range(states.shape[1]):
            trained.inputs[i, seen + j] = states[i, j]


@njit(**KERNEL)
def _fill_images(trained, learner, rows):
    """Adds the mirror images of the actor's inputs for some rows."""
    mirror, given = learner.mirror, learner.data.observations
    for i in range(len(rows)):
        for j in range(len(mirror.input_signs)):
            image = mirror.input_signs[j] * given[rows[i], mirror.input_places[j]]
            trained.inputs[len(rows) + i, j] = (image - learner.shift[j]) / learner.spread[j]


@njit(**KERNEL | RUNTIME)
def _share(learner, slot, chunk):
    """A chunk's network with an empty gradient, whether it is the actor, its sequences, and its losses, still 0."""
    begin, end, shares = learner.now[1], learner.now[2], learner.now[3]
    acts, share = chunk % 2 == 0, chunk // 2
    first, last = begin + (end - begin) * share // shares, begin + (end - begin) * (share + 1) // shares
    trained, losses = share_of(learner.actor if acts else learner.critic, slot, share), learner.found[chunk]
    trained.gradient[:] = _ZERO
    losses[:] = 0.0
    return trained, acts, learner.rows[first:last], losses


@njit(**KERNEL | RUNTIME)
def learn_rows(learner, slot, chunk):
    """A chunk of a phase for networks without memory."""
    if learner.now[0] != LEARN:
        _other_phase(learner, slot, chunk)
        return
    trained, acts, rows, losses = _share(learner, slot, chunk)
    given = learner.data.observations if acts else learner.data.critic_inputs
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        _fill_inputs(trained, learner, given, block, given[:, :0])
        if acts:
            _fill_images(trained, learner, block)
        _learn(trained, acts, learner, block, losses)


@njit(**KERNEL)
def _units(trained, memory, tail):
    """Where the weights of a network's units lie: before the last ``tail`` numbers."""
    end = trained.network.weights.size - tail
    return end - weight_count(memory.inputs.shape[1], memory.states.shape[1]), end


@njit(**KERNEL | RUNTIME)
def _unroll(memory, weights, learner, rows, starts, states, sequences):
    """Runs a network's units over sequences: ``rows`` (L * n,) of the data, from ``states`` before the first step."""
    data = learner.data
    seen, n, size = data.observations.shape[1], len(sequences), memory.states.shape[1]
    for i in range(len(rows)):
        for j in range(seen):
            memory.inputs[i, j] = (data.observations[rows[i], j] - learner.shift[j]) / learner.spread[j]
        for j in range(data.previous.shape[1]):
            memory.inputs[i, seen + j] = data.previous[rows[i], j]
    first = memory.carried[0, :n]
    for i in range(n):
        for j in range(size):
            first[i, j] = states[sequences[i], j]
    unroll(memory, weights, len(rows) // n, first, starts)


@njit(**KERNEL | RUNTIME)
def _steps_of(learner, sequences, first, last, total):
    """The rows of steps ``first`` to ``last`` of sequences, of which there are ``total``, and where episodes start."""
    n = len(sequences)
    rows, starts = np.empty((last - first) * n, np.int64), np.empty((last - first) * n, np.bool_)
    for t in range(last - first):
        for i in range(n):
            rows[t * n + i] = (first + t) * total + sequences[i]
            starts[t * n + i] = learner.data.starts[rows[t * n + i]]
    return rows, starts


@njit(**KERNEL | RUNTIME)
def _recall(learner, slot, chunk):
    """Runs the critic's memory over a rollout, for ``AT_ONCE`` of its sub-environments."""
    total, data = learner.now[1], learner.data
    memory = memory_of(learner.critic_memory, slot)
    begin, end = _units(learner.critic, memory, 0)
    envs = learner.every[chunk * AT_ONCE : min((chunk + 1) * AT_ONCE, total)]
    count = data.size[0] // total
    states, ids = data.critic_states, envs
    for first in range(0, count, data.length):
        rows, starts = _steps_of(learner, envs, first, min(first + data.length, count), total)
        _unroll(memory, learner.critic.network.weights[begin:end], learner, rows, starts, states, ids)
        for i in range(len(rows)):
            for j in range(memory.states.shape[1]):
                data.critic_memories[rows[i], j] = memory.states[i, j]
        states, ids = data.critic_memories, rows[len(rows) - len(envs) :]


@njit(**KERNEL | RUNTIME)
def _take_derivatives(trained, memory, begin, n):
    """Stores derivatives with respect to a block's states."""
    backward_to_inputs(trained, n)
    size = memory.states.shape[1]
    seen = trained.inputs.shape[1] - size
    for i in range(n):
        for j in range(size):
            memory.by_states[begin + i, j] = trained.inputs[i, seen + j]


@njit(**KERNEL)
def _predict(trained, memory, learner, rows, begin, losses):
    """Adds the loss of predicting draws from a block's states, and its derivatives.

    The matrix (k, H) and biases (k,) of the prediction are the network's last weights.
    """
    data, settings, share = learner.data, learner.settings, np.float32(learner.scale[0])
    count, size = data.draws.shape[1], memory.states.shape[1]
    at = trained.network.weights.size - count * (size + 1)
    for i in range(len(rows)):
        if not data.kept[rows[i]]:
            continue
        state, by_state = memory.states[begin + i], memory.by_states[begin + i]
        for k in range(count):
            here, bias = at + k * size, at + count * size + k
            predicted = trained.network.weights[bias]
            for j in range(size):
                predicted += trained.network.weights[here + j] * state[j]
            error = predicted - data.draws[rows[i], k]
            losses[5] += error * error / count
            slope = settings.prediction_coef * share * _TWO * error / np.float32(count)
            trained.gradient[bias] += slope
            for j in range(size):
                trained.gradient[here + j] += slope * state[j]
                by_state[j] += slope * trained.network.weights[here + j]


@njit(**KERNEL | RUNTIME)
def _through_time(trained, memory, acts, learner, part, losses):
    """Adds the gradient and ``losses`` of sequences, of as many as memory holds at a time."""
    data = learner.data
    n, size = len(part), memory.states.shape[1]
    rows, starts = _steps_of(learner, part, 0, data.length, data.size[0] // data.length)
    predicted = data.draws.shape[1] if acts else 0
    begin, end = _units(trained, memory, predicted * (size + 1))
    if size > 0:
        states = data.states if acts else data.critic_states
        _unroll(memory, trained.network.weights[begin:end], learner, rows, starts, states, part)
    given = data.observations if acts else data.critic_inputs
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        _fill_inputs(trained, learner, given, block, memory.states[first:])
        _learn(trained, acts, learner, block, losses)
        if size > 0:
            _take_derivatives(trained, memory, first, len(block))
        if predicted > 0:
            _predict(trained, memory, learner, block, first, losses)
    if size > 0:
        weights, gradient = trained.network.weights[begin:end], trained.gradient[begin:end]
        unroll_backward(memory, weights, gradient, data.length, n, starts)


@njit(**KERNEL | RUNTIME)
def learn_sequences(learner, slot, chunk):
    """A chunk of a phase for an actor with memory, and a critic with or without."""
    if learner.now[0] == RECALL:
        _recall(learner, slot, chunk)
        return
    if learner.now[0] != LEARN:
        _other_phase(learner, slot, chunk)
        return
    trained, acts, sequences, losses = _share(learner, slot, chunk)
    memory = memory_of(learner.actor_memory if acts else learner.critic_memory, slot)
    for first in range(0, len(sequences), AT_ONCE):
        _through_time(trained, memory, acts, learner, sequences[first : first + AT_ONCE], losses)


@njit(**KERNEL)
def shares_of(rows, remembers):
    """Into how many shares a minibatch of so many rows is cut; of sequences if the actor ``remembers``."""
    size = AT_ONCE if remembers else BLOCK
    return min(SHARES, (rows + size - 1) // size)


@njit(**KERNEL | RUNTIME)
def _other_phase(learner, slot, chunk):
    """A chunk of a phase that all networks have."""
    if learner.now[0] != VALUE:
        _update(learner, chunk)
        return
    trained, data, first = share_of(learner.critic, slot, 0), learner.data, chunk * BLOCK
    rows = learner.every[first : min(first + BLOCK, data.size[0])]
    _fill_inputs(trained, learner, data.critic_inputs, rows, data.critic_memories[first:])
    outputs = forward(trained.network, trained.inputs[: len(rows)])
    for i in range(len(rows)):
        data.values[rows[i]] = outputs[i, 0]


@njit(**KERNEL)
def _update(learner, chunk):
    """Adds up a range of the actor's or the critic's gradient, or makes the optimizer's step there."""
    trained, which = (learner.actor if chunk % 2 == 0 else learner.critic), chunk % 2
    end = min((chunk // 2 + 1) * RANGE, trained.network.weights.size)
    begin = min(chunk // 2 * RANGE, end)
    if learner.now[0] == ADD:
        add_shares(trained, learner.now[3], begin, end, learner.lanes[chunk])
        return
    rate, norm, steps = learner.rates[which], learner.scale[3 + which], learner.scale[5]
    learner.lanes[chunk, 0] = step(trained, learner.settings.optimizer, rate, norm, steps, begin, end)


@njit(**KERNEL)
def _hand_out(learner, phase, chunks):
    """Makes threads work on the chunks of a phase."""
    learner.now[0] = phase
    run(learner.calls[0], learner.calls[1], learner.calls[2], chunks, learner.calls[3])


@njit(**KERNEL)
def _minibatch(learner, i):
    """Makes a gradient step for a minibatch, unless losses or gradients are not finite; returns how it ended."""
    now, scale, losses = learner.now, learner.scale, learner.losses[i]
    begin, end = learner.starts[i], learner.starts[i + 1]
    count, scale[1], scale[2] = _scale_of(learner, learner.rows[begin:end])
    scale[0] = 1.0 / count
    now[1], now[2], now[3] = begin, end, shares_of(end - begin, learner.data.states.shape[1] > 0)
    _hand_out(learner, LEARN, 2 * now[3])
    losses[:] = 0.0
    for chunk in range(2 * now[3]):
        for j in range(LOSSES):
            losses[j] += learner.found[chunk, j] / count
    if learner.data.labels.shape[1] == 0:
        losses[0] -= learner.rates[2] * losses[2]
    chunks = len(learner.lanes)
    _hand_out(learner, ADD, chunks)
    for which in range(2):
        squares = 0.0
        for chunk in range(which, chunks, 2):
            for k in range(LANES):
                squares += learner.lanes[chunk, k]
        scale[3 + which] = np.sqrt(squares)
    if not np.isfinite(scale[3] + scale[4] + losses[0] + losses[1]):
        return BAD_GRADIENT
    scale[5] += 1.0
    _hand_out(learner, STEP, chunks)
    for chunk in range(chunks):
        if learner.lanes[chunk, 0] > 0.0:
            return BAD_WEIGHT
    return DONE


@njit(**KERNEL)
def learn_epoch(learner, slot, chunk):
    """Makes a gradient step for each minibatch until something is not finite; the only chunk of a job."""
    learner.now[4] = DONE
    for i in range(len(learner.starts) - 1):
        if learner.starts[i] < learner.starts[i + 1] and learner.now[4] == DONE:
            learner.now[4] = _minibatch(learner, i)
