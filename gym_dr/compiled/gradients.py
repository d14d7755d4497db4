"""PPO's and distillation's gradient steps on two small networks with hand-derived gradients: one call per epoch.

A minibatch is rows of steps or, for networks with memory, sequences of steps, which are backpropagated through time.

For a minibatch of 64, torch makes some fifty calls forward, as many backward, and an optimizer step; the arithmetic
itself takes a fraction of that time. The functions here turn a minibatch into derivatives of its loss with respect to
the networks' outputs; ``network.py`` and ``gru.py`` have the rest. Tests compare all of it with torch.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Indices, Mask
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL, RUNTIME
from gym_dr.compiled.gru import unroll, unroll_backward, weight_count
from gym_dr.compiled.network import (
    BLOCK,
    adam,
    backward,
    backward_to_inputs,
    forward,
    norm_of,
    outputs_deltas,
    softplus,
)
from gym_dr.compiled.policy import CATEGORICAL, GAUSSIAN

LOSSES: Final = 6  # actor's, critic's, entropy, approximate KL divergence, share of clipped ratios, of the prediction
DONE, BAD_GRADIENT, BAD_WEIGHT = 0, 1, 2  # how an epoch ends

_LOG_2PI = np.float32(np.log(2.0 * np.pi))
_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)


class Remembered(NamedTuple):
    """Further inputs of networks with memory, for S sequences; no rows without memory."""

    kept: Mask  # (B,) False on steps to ignore in the losses
    starts: Mask  # (B,) whether an episode begins
    previous: Floats  # (B, A) the previous actions, as memory sees them
    actor_states: Floats  # (S, H) states before the first step
    critic_states: Floats  # (S, H); no columns if the critic has no memory
    draws: Floats  # (B, k) draws that the memory learns to predict; no columns if none


class Transitions(NamedTuple):
    """The B steps that an epoch learns from: with memory L steps of S sequences each, in time-major order."""

    observations: Floats  # (B, obs) inputs of the actor's first layer
    critic_inputs: Floats  # (B, obs + k)
    discrete: Indices  # (B,) actions; otherwise unused
    raw_actions: Floats  # (B, actions) continuous ones; no columns for discrete
    log_probs: Floats  # (B,) of the actions under the policy that took them
    advantages: Floats  # (B,)
    returns: Floats  # (B,)
    labels: Floats  # (B, outputs) what to imitate in place of PPO's loss; no rows if nothing
    remembered: Remembered


class Settings(NamedTuple):
    """Constants of an epoch."""

    kind: int  # CATEGORICAL, GAUSSIAN or TWO_HEADS
    floor: np.float32  # added to the standard deviation of TWO_HEADS
    clip_range: np.float32
    value_clip: np.float32  # 0 for none
    entropy_coef: np.float32
    normalize_advantages: bool
    actor_lr: float
    critic_lr: float
    eps: float
    max_grad_norm: float  # 0 for none
    prediction_coef: np.float32  # weight of the prediction's loss


@njit(**KERNEL)
def _pull(log_ratio, advantage, settings, losses):
    """One step's clipped surrogate: adds to the losses, returns the derivative with respect to the log-probability."""
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
def _discrete(logits, delta, choice, old, advantage, settings, share, losses):
    """Derivatives with respect to the logits of one step, whose loss has weight ``share``."""
    whole, entropy = _whole_and_entropy(logits)
    slope = _pull(logits[choice] - whole - old, advantage, settings, losses)
    for j in range(len(logits)):
        log_prob = logits[j] - whole
        prob = np.exp(log_prob)
        chosen = _ONE if j == choice else _ZERO
        delta[j] = share * (slope * (chosen - prob) + settings.entropy_coef * prob * (log_prob + entropy))
    losses[2] += entropy


@njit(**KERNEL)
def _continuous(out, delta, log_std, log_std_gradient, action, old, advantage, settings, share, losses):
    """Derivatives with respect to the means, and to ``log_std`` or the network's output for standard deviations."""
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
        by_log = share * (slope * (z * z - _ONE) - settings.entropy_coef)
        if shared:
            log_std_gradient[j] += by_log
        else:  # the logistic function is softplus' slope
            delta[size + j] = by_log / std / (_ONE + np.exp(-raw))
    losses[2] += entropy


@njit(**KERNEL)
def _imitate_discrete(logits, delta, label, settings, share, losses):
    """Derivatives of the divergence from log-probabilities ``label``, with respect to the logits of one step."""
    whole, entropy = _whole_and_entropy(logits)
    for j in range(len(logits)):
        log_prob, wanted = logits[j] - whole, np.exp(label[j])
        prob = np.exp(log_prob)
        losses[0] += wanted * (label[j] - log_prob)
        delta[j] = share * (prob - wanted + settings.entropy_coef * prob * (log_prob + entropy))
    losses[2] += entropy


@njit(**KERNEL)
def _imitate_continuous(out, delta, log_std, log_std_gradient, label, settings, share, losses):
    """The same for means and standard deviations ``label``; see ``_continuous``."""
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
        by_log = share * (_ONE - ratio * ratio - z * z - settings.entropy_coef)
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
def _scale_of(advantages, rows):
    """The mean of some advantages, and the factor that scales them to a standard deviation of 1."""
    shift, squares = 0.0, 0.0
    for row in rows:
        shift += advantages[row]
    shift /= len(rows)
    for row in rows:
        squares += (advantages[row] - shift) ** 2
    return shift, 1.0 / (np.sqrt(squares / len(rows)) + 1e-8)


@njit(**KERNEL | RUNTIME)
def _block(actor, critic, data, rows, scale, log_stds, settings, losses):
    """Adds the gradients and ``losses`` of at most ``BLOCK`` rows, whose inputs both networks have.

    ``scale`` are the weight of a step's loss, and the shift and scale of advantages; ``log_stds`` the first and last of
    the learned logarithms of standard deviations among the actor's weights.
    """
    n = len(rows)
    share, shift, stretch = scale
    outputs, values = forward(actor.network, actor.inputs[:n]), forward(critic.network, critic.inputs[:n])
    by_outputs, by_values = outputs_deltas(actor, n), outputs_deltas(critic, n)
    for i in range(n):
        row = rows[i]
        if len(data.remembered.kept) > 0 and not data.remembered.kept[row]:
            by_outputs[i] = _ZERO
            by_values[i] = _ZERO
            continue
        old, advantage = data.log_probs[row], np.float32((data.advantages[row] - shift) * stretch)
        imitates = len(data.labels) > 0
        if settings.kind == CATEGORICAL and imitates:
            _imitate_discrete(outputs[i], by_outputs[i], data.labels[row], settings, share, losses)
        elif settings.kind == CATEGORICAL:
            _discrete(outputs[i], by_outputs[i], data.discrete[row], old, advantage, settings, share, losses)
        else:
            log_std = actor.network.weights[log_stds[0] : log_stds[1]]
            by_log_std = actor.gradient[log_stds[0] : log_stds[1]]
            if imitates:
                label = data.labels[row]
                _imitate_continuous(outputs[i], by_outputs[i], log_std, by_log_std, label, settings, share, losses)
            else:
                action = data.raw_actions[row]
                _continuous(
                    outputs[i], by_outputs[i], log_std, by_log_std, action, old, advantage, settings, share, losses
                )
        old_value = data.returns[row] - data.advantages[row]
        by_values[i, 0] = share * _value(values[i, 0], old_value, data.returns[row], settings, losses)
    backward(actor, n)
    backward(critic, n)


@njit(**KERNEL)
def _log_stds(actor, rest, action, settings):
    """Where the learned logarithms of standard deviations lie: after the layers, before ``rest`` other numbers."""
    end = actor.network.weights.size - rest
    return (end - action if settings.kind == GAUSSIAN else end), end


@njit(**KERNEL)
def _fill_inputs(trained, memory, given, rows, begin):
    """Inputs of a block's rows: those ``given``, and the states of the network's memory, if it has one."""
    seen = given.shape[1]
    for i in range(len(rows)):
        for j in range(seen):
            trained.inputs[i, j] = given[rows[i], j]
        for j in range(memory.states.shape[1]):
            trained.inputs[i, seen + j] = memory.states[begin + i, j]


@njit(**KERNEL | RUNTIME)
def _minibatch(actor, critic, memories, data, rows, settings, losses):
    """Sums the gradients and ``losses`` of a minibatch's ``rows``; returns their number."""
    shift, stretch = _scale_of(data.advantages, rows) if settings.normalize_advantages else (0.0, 1.0)
    log_stds = _log_stds(actor, 0, data.raw_actions.shape[1], settings)
    for begin in range(0, len(rows), BLOCK):
        block = rows[begin : begin + BLOCK]
        _fill_inputs(actor, memories[0], data.observations, block, 0)
        _fill_inputs(critic, memories[1], data.critic_inputs, block, 0)
        scale = _ONE / np.float32(len(rows)), shift, stretch
        _block(actor, critic, data, block, scale, log_stds, settings, losses)
    return len(rows)


@njit(**KERNEL)
def _units(trained, memory, tail):
    """Where the weights of a network's units lie: before the last ``tail`` numbers."""
    end = trained.network.weights.size - tail
    return end - weight_count(memory.inputs.shape[1], memory.states.shape[1]), end


@njit(**KERNEL | RUNTIME)
def _unroll(trained, memory, tail, data, rows, starts, states, sequences):
    """Runs a network's units over sequences: ``rows`` (L * n,) of the data, from ``states`` before the first step."""
    seen, n, size = data.observations.shape[1], len(sequences), memory.states.shape[1]
    for i in range(len(rows)):
        for j in range(seen):
            memory.inputs[i, j] = data.observations[rows[i], j]
        for j in range(data.remembered.previous.shape[1]):
            memory.inputs[i, seen + j] = data.remembered.previous[rows[i], j]
    first = memory.carried[0, :n]
    for i in range(n):
        for j in range(size):
            first[i, j] = states[sequences[i], j]
    begin, end = _units(trained, memory, tail)
    unroll(memory, trained.network.weights[begin:end], len(rows) // n, first, starts)


@njit(**KERNEL | RUNTIME)
def _unroll_backward(trained, memory, tail, starts, n):
    """The gradient of a network's units, after the blocks of its sequences have filled ``by_states``."""
    begin, end = _units(trained, memory, tail)
    weights, gradient = trained.network.weights[begin:end], trained.gradient[begin:end]
    unroll_backward(memory, weights, gradient, len(starts) // n, n, starts)


@njit(**KERNEL | RUNTIME)
def _take_derivatives(trained, memory, begin, n):
    """Stores derivatives with respect to a block's states."""
    size = memory.states.shape[1]
    if size == 0:
        return
    backward_to_inputs(trained, n)
    seen = trained.inputs.shape[1] - size
    for i in range(n):
        for j in range(size):
            memory.by_states[begin + i, j] = trained.inputs[i, seen + j]


@njit(**KERNEL)
def _predict(trained, memory, data, rows, begin, share, settings, losses):
    """Adds the loss of predicting draws from a block's states, and its derivatives.

    The matrix (k, H) and biases (k,) of the prediction are the network's last weights.
    """
    count, size = data.remembered.draws.shape[1], memory.states.shape[1]
    at = trained.network.weights.size - count * (size + 1)
    for i in range(len(rows)):
        if not data.remembered.kept[rows[i]]:
            continue
        state, by_state = memory.states[begin + i], memory.by_states[begin + i]
        for k in range(count):
            here, bias = at + k * size, at + count * size + k
            predicted = trained.network.weights[bias]
            for j in range(size):
                predicted += trained.network.weights[here + j] * state[j]
            error = predicted - data.remembered.draws[rows[i], k]
            losses[5] += error * error / count
            slope = settings.prediction_coef * share * _TWO * error / np.float32(count)
            trained.gradient[bias] += slope
            for j in range(size):
                trained.gradient[here + j] += slope * state[j]
                by_state[j] += slope * trained.network.weights[here + j]


@njit(**KERNEL | RUNTIME)
def _sequences_minibatch(actor, critic, memories, data, sequences, settings, losses):
    """Like ``_minibatch``, for a minibatch of ``sequences``; as many go through at once as memory holds."""
    total = len(data.remembered.actor_states)
    length = len(data.remembered.starts) // total
    kept = np.empty(length * len(sequences), np.int64)
    count = 0
    for t in range(length):
        for sequence in sequences:
            if data.remembered.kept[t * total + sequence]:
                kept[count] = t * total + sequence
                count += 1
    shift, stretch = _scale_of(data.advantages, kept[:count]) if settings.normalize_advantages else (0.0, 1.0)
    scale = _ONE / np.float32(count), shift, stretch
    predicted = data.remembered.draws.shape[1]
    tail = predicted * (memories[0].states.shape[1] + 1)
    begin, _ = _units(actor, memories[0], tail)
    log_stds = _log_stds(actor, actor.network.weights.size - begin, data.raw_actions.shape[1], settings)
    at_once = memories[0].carried.shape[1]
    for first in range(0, len(sequences), at_once):
        part = sequences[first : first + at_once]
        n = len(part)
        rows, starts = np.empty(length * n, np.int64), np.empty(length * n, np.bool_)
        for t in range(length):
            for i in range(n):
                rows[t * n + i] = t * total + part[i]
                starts[t * n + i] = data.remembered.starts[t * total + part[i]]
        _unroll(actor, memories[0], tail, data, rows, starts, data.remembered.actor_states, part)
        if memories[1].states.shape[1] > 0:
            _unroll(critic, memories[1], 0, data, rows, starts, data.remembered.critic_states, part)
        for begin in range(0, len(rows), BLOCK):
            block = rows[begin : begin + BLOCK]
            _fill_inputs(actor, memories[0], data.observations, block, begin)
            _fill_inputs(critic, memories[1], data.critic_inputs, block, begin)
            _block(actor, critic, data, block, scale, log_stds, settings, losses)
            _take_derivatives(actor, memories[0], begin, len(block))
            if predicted > 0:
                _predict(actor, memories[0], data, block, begin, scale[0], settings, losses)
            _take_derivatives(critic, memories[1], begin, len(block))
        _unroll_backward(actor, memories[0], tail, starts, n)
        if memories[1].states.shape[1] > 0:
            _unroll_backward(critic, memories[1], 0, starts, n)
    return count


@njit(**ENTRY | RUNTIME)
def gradient_epoch(actor, critic, memories, data, rows, starts, steps, settings, losses):
    """Makes a gradient step for each minibatch.

    ``actor`` and ``critic`` are ``Trained`` and ``memories`` the ``TrainedMemory`` of each; ``rows`` (B,) int64 are
    indices into ``data``, of sequences if the actor has a memory, those of minibatch ``i`` from ``starts[i]`` to
    ``starts[i + 1]``; ``steps`` counts earlier optimizer steps; ``losses`` (minibatches, LOSSES) starts as zeros.
    Returns how it ended, and how many minibatches have changed weights.
    """
    for i in range(len(starts) - 1):
        found = losses[i]
        part = rows[starts[i] : starts[i + 1]]
        actor.gradient[:] = _ZERO
        critic.gradient[:] = _ZERO
        if memories[0].states.shape[1] > 0:
            count = _sequences_minibatch(actor, critic, memories, data, part, settings, found)
        else:
            count = _minibatch(actor, critic, memories, data, part, settings, found)
        found /= count
        if len(data.labels) == 0:
            found[0] -= settings.entropy_coef * found[2]
        actor_norm, critic_norm = norm_of(actor.gradient), norm_of(critic.gradient)
        if not np.isfinite(actor_norm + critic_norm + found[0] + found[1]):
            return BAD_GRADIENT, i
        adam(actor, actor_norm, settings.max_grad_norm, settings.actor_lr, settings.eps, steps + i + 1)
        adam(critic, critic_norm, settings.max_grad_norm, settings.critic_lr, settings.eps, steps + i + 1)
        if not np.isfinite(norm_of(actor.network.weights) + norm_of(critic.network.weights)):
            return BAD_WEIGHT, i + 1
    return DONE, len(starts) - 1


cache_on_disk(gradient_epoch, "gradient steps of small networks")
