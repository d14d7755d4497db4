"""PPO's gradient steps on two small networks with hand-derived gradients: one compiled call per epoch.

For a minibatch of 64, torch makes some fifty calls forward, as many backward, and an optimizer step; the arithmetic
itself takes a fraction of that time. ``forward``, ``backward`` and ``adam`` are independent of PPO; the functions after
them turn a minibatch into derivatives of its loss with respect to the networks' outputs. Tests compare all of it with
torch.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Indices
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY, KERNEL, RUNTIME
from gym_dr.compiled.policy import CATEGORICAL, GAUSSIAN, tanh_of

LOSSES: Final = 5  # actor's, critic's, entropy, approximate KL divergence, share of clipped ratios
DONE, BAD_GRADIENT, BAD_WEIGHT = 0, 1, 2  # how an epoch ends

_BLOCK = 64  # rows that go through a network at a time, so that activations stay in the first-level cache
_LOG_2PI = np.float32(np.log(2.0 * np.pi))
_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)


class Trained(NamedTuple):
    """A multilayer perceptron with its optimizer's state, and working memory for a block of rows.

    Weights are stored consecutively: for each layer ``(outputs, inputs)``, as in torch, then ``(outputs,)`` biases;
    after the last layer come other learned numbers.
    """

    sizes: Indices  # (layers + 1,) units, of the input first
    tanh: bool  # the activation between layers; otherwise relu
    weights: Floats
    gradient: Floats  # laid out like weights; so are the next two
    first: Floats  # Adam's mean of gradients
    second: Floats  # and of their squares
    part: Floats  # a matrix's gradient from one block
    inputs: Floats  # (block, inputs)
    values: Floats  # outputs of all layers, each (rows, outputs)
    deltas: Floats  # (2, block * widest) derivatives of the loss with respect to a layer's pre-activations

    @staticmethod
    def allocate(*, sizes: list[int], tanh: bool, extra: int) -> Trained:
        """Zeroed memory for a network of these sizes and ``extra`` other learned numbers."""
        count = sum((before + 1) * after for before, after in pairwise(sizes)) + extra
        weights, gradient, first, second = np.zeros((4, count), np.float32)
        return Trained(
            sizes=np.array(sizes, np.int64),
            tanh=tanh,
            weights=weights,
            gradient=gradient,
            first=first,
            second=second,
            part=np.zeros(max(before * after for before, after in pairwise(sizes)), np.float32),
            inputs=np.zeros((_BLOCK, sizes[0]), np.float32),
            values=np.zeros(_BLOCK * sum(sizes[1:]), np.float32),
            deltas=np.zeros((2, _BLOCK * max(sizes)), np.float32),
        )


class Transitions(NamedTuple):
    """The B steps that an epoch learns from."""

    observations: Floats  # (B, obs) inputs of the actor's first layer
    critic_inputs: Floats  # (B, obs + k)
    choices: Indices  # (B,) discrete actions; otherwise unused
    raw_actions: Floats  # (B, actions) continuous ones; no columns for discrete
    log_probs: Floats  # (B,) of the actions under the policy that took them
    advantages: Floats  # (B,)
    returns: Floats  # (B,)


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


@njit(**KERNEL | RUNTIME)
def forward(net, n):
    """Outputs ``(n, outputs)`` for the first ``n`` rows of the inputs."""
    source = net.inputs[:n]
    at, place = 0, 0
    layers = len(net.sizes) - 1
    for layer in range(layers):
        ins, outs = net.sizes[layer], net.sizes[layer + 1]
        matrix = net.weights[at : at + outs * ins].reshape(outs, ins)
        bias = net.weights[at + outs * ins : at + outs * (ins + 1)]
        flat = net.values[place : place + n * outs]
        target = flat.reshape(n, outs)
        np.dot(source, matrix.T, target)
        last = layer == layers - 1
        for i in range(n):
            for j in range(outs):
                value = target[i, j] + bias[j]
                target[i, j] = value if last or net.tanh else max(value, _ZERO)
        if net.tanh and not last:
            tanh_of(flat)
        source = target
        at += outs * (ins + 1)
        place += n * outs
    return source


@njit(**KERNEL | RUNTIME)
def outputs_deltas(net, n):
    """Where to put derivatives of the loss with respect to the outputs, ``(n, outputs)``, before ``backward``."""
    layers = len(net.sizes) - 1
    outs = net.sizes[layers]
    return net.deltas[layers % 2, : n * outs].reshape(n, outs)


@njit(**KERNEL | RUNTIME)
def backward(net, n):
    """Adds a block's gradient of the weights, after ``forward`` and with ``outputs_deltas`` filled."""
    layers = len(net.sizes) - 1
    at, place = 0, 0
    for layer in range(layers):
        at += net.sizes[layer + 1] * (net.sizes[layer] + 1)
        place += n * net.sizes[layer + 1]
    for layer in range(layers - 1, -1, -1):
        ins, outs = net.sizes[layer], net.sizes[layer + 1]
        at -= outs * (ins + 1)
        place -= n * outs
        delta = net.deltas[(layer + 1) % 2, : n * outs].reshape(n, outs)
        source = net.values[place - n * ins : place].reshape(n, ins) if layer else net.inputs[:n]
        part = net.part[: outs * ins]
        np.dot(delta.T, source, part.reshape(outs, ins))
        for j in range(outs * ins):
            net.gradient[at + j] += part[j]
        for i in range(n):
            for j in range(outs):
                net.gradient[at + outs * ins + j] += delta[i, j]
        if layer:
            below = net.deltas[layer % 2, : n * ins].reshape(n, ins)
            np.dot(delta, net.weights[at : at + outs * ins].reshape(outs, ins), below)
            for i in range(n):
                for j in range(ins):
                    value = source[i, j]
                    slope = _ONE - value * value if net.tanh else (_ONE if value > _ZERO else _ZERO)
                    below[i, j] *= slope


@njit(**KERNEL)
def _norm(values):
    total = 0.0
    for i in range(values.size):
        total += np.float64(values[i]) * np.float64(values[i])
    return np.sqrt(total)


@njit(**KERNEL)
def adam(net, norm, max_norm, lr, eps, steps):
    """A step of Adam (Kingma and Ba 2015, algorithm 1), its ``steps``-th, with the gradient scaled to ``max_norm``."""
    scale = np.float32(min(max_norm / (norm + 1e-6), 1.0) if max_norm > 0.0 else 1.0)
    size = np.float32(lr / (1.0 - 0.9**steps))
    root = np.float32(1.0 / np.sqrt(1.0 - 0.999**steps))
    small = np.float32(eps)
    keep1, keep2 = np.float32(0.9), np.float32(0.999)
    take1, take2 = np.float32(1.0 - 0.9), np.float32(1.0 - 0.999)
    for i in range(net.weights.size):
        slope = net.gradient[i] * scale
        net.first[i] = keep1 * net.first[i] + take1 * slope
        net.second[i] = keep2 * net.second[i] + take2 * slope * slope
        net.weights[i] -= size * net.first[i] / (np.sqrt(net.second[i]) * root + small)


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
def _discrete(logits, delta, choice, old, advantage, settings, share, losses):
    """Derivatives with respect to the logits of one step, whose loss has weight ``share``."""
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
    slope = _pull(logits[choice] - whole - old, advantage, settings, losses)
    for j in range(len(logits)):
        log_prob = logits[j] - whole
        prob = np.exp(log_prob)
        chosen = _ONE if j == choice else _ZERO
        delta[j] = share * (slope * (chosen - prob) + settings.entropy_coef * prob * (log_prob + entropy))
    losses[2] += entropy


@njit(**KERNEL)
def _continuous(out, delta, log_std, log_std_gradient, action, old, advantage, settings, share, losses):
    """Derivatives with respect to the means, and to ``log_std`` or the network's output for deviations."""
    shared = settings.kind == GAUSSIAN
    size = len(action)
    log_prob, entropy = _ZERO, _ZERO
    for j in range(size):
        raw = log_std[j] if shared else out[size + j]
        std = np.exp(raw) if shared else _softplus(raw) + settings.floor
        log_of = raw if shared else np.log(std)
        z = (action[j] - out[j]) / std
        log_prob -= _HALF * z * z + log_of + _HALF * _LOG_2PI
        entropy += log_of + _HALF * (_LOG_2PI + _ONE)
    slope = _pull(log_prob - old, advantage, settings, losses)
    for j in range(size):
        raw = log_std[j] if shared else out[size + j]
        std = np.exp(raw) if shared else _softplus(raw) + settings.floor
        z = (action[j] - out[j]) / std
        delta[j] = share * slope * z / std
        by_log = share * (slope * (z * z - _ONE) - settings.entropy_coef)
        if shared:
            log_std_gradient[j] += by_log
        else:  # the logistic function is softplus' slope
            delta[size + j] = by_log / std / (_ONE + np.exp(-raw))
    losses[2] += entropy


@njit(**KERNEL)
def _softplus(x):
    return x if x > np.float32(20.0) else np.log1p(np.exp(x))


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


@njit(**KERNEL | RUNTIME)
def _minibatch(actor, critic, data, rows, settings, losses):
    """Sums the gradients and ``losses`` of a minibatch's ``rows``."""
    share = _ONE / np.float32(len(rows))
    shift, scale = 0.0, 1.0
    if settings.normalize_advantages:
        for row in rows:
            shift += data.advantages[row]
        shift /= len(rows)
        squares = 0.0
        for row in rows:
            squares += (data.advantages[row] - shift) ** 2
        scale = 1.0 / (np.sqrt(squares / len(rows)) + 1e-8)
    layered = actor.weights.size - data.raw_actions.shape[1] if settings.kind == GAUSSIAN else actor.weights.size
    actor.gradient[:] = _ZERO
    critic.gradient[:] = _ZERO
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        n = len(block)
        for i in range(n):
            for j in range(actor.inputs.shape[1]):
                actor.inputs[i, j] = data.observations[block[i], j]
            for j in range(critic.inputs.shape[1]):
                critic.inputs[i, j] = data.critic_inputs[block[i], j]
        outputs, values = forward(actor, n), forward(critic, n)
        by_outputs, by_values = outputs_deltas(actor, n), outputs_deltas(critic, n)
        for i in range(n):
            row = block[i]
            old, advantage = data.log_probs[row], np.float32((data.advantages[row] - shift) * scale)
            if settings.kind == CATEGORICAL:
                choice = data.choices[row]
                _discrete(outputs[i], by_outputs[i], choice, old, advantage, settings, share, losses)
            else:
                log_std, by_log_std = actor.weights[layered:], actor.gradient[layered:]
                action = data.raw_actions[row]
                _continuous(
                    outputs[i], by_outputs[i], log_std, by_log_std, action, old, advantage, settings, share, losses
                )
            old_value = data.returns[row] - data.advantages[row]
            by_values[i, 0] = share * _value(values[i, 0], old_value, data.returns[row], settings, losses)
        backward(actor, n)
        backward(critic, n)


@njit(**ENTRY | RUNTIME)
def ppo_epoch(actor, critic, data, rows, starts, steps, settings, losses):
    """Makes a gradient step for each minibatch.

    ``actor`` and ``critic`` are ``Trained``; ``rows`` (B,) int64 are indices into ``data``, those of minibatch ``i``
    from ``starts[i]`` to ``starts[i + 1]``; ``steps`` counts earlier optimizer steps; ``losses`` (minibatches, LOSSES)
    starts as zeros. Returns how it ended, and how many minibatches have changed weights.
    """
    for i in range(len(starts) - 1):
        found = losses[i]
        part = rows[starts[i] : starts[i + 1]]
        _minibatch(actor, critic, data, part, settings, found)
        found /= len(part)
        found[0] -= settings.entropy_coef * found[2]
        actor_norm, critic_norm = _norm(actor.gradient), _norm(critic.gradient)
        if not np.isfinite(actor_norm + critic_norm + found[0] + found[1]):
            return BAD_GRADIENT, i
        adam(actor, actor_norm, settings.max_grad_norm, settings.actor_lr, settings.eps, steps + i + 1)
        adam(critic, critic_norm, settings.max_grad_norm, settings.critic_lr, settings.eps, steps + i + 1)
        if not np.isfinite(_norm(actor.weights) + _norm(critic.weights)):
            return BAD_WEIGHT, i + 1
    return DONE, len(starts) - 1


cache_on_disk(ppo_epoch, "gradient steps of small networks")
