"""PPO's gradient steps on two small networks with hand-derived gradients: one compiled call per epoch.

For a minibatch of 64, torch makes some fifty calls forward, as many backward, and an optimizer step; the arithmetic
itself takes a fraction of that time. The functions here turn a minibatch into derivatives of its loss with respect to
the networks' outputs; ``network.py`` has the rest. Tests compare all of it with torch.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Indices
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.network import BLOCK, adam, backward, forward, norm_of, outputs_deltas, softplus
from gym_dr.compiled.options import ENTRY, KERNEL, RUNTIME
from gym_dr.compiled.policy import CATEGORICAL, GAUSSIAN

LOSSES: Final = 5  # actor's, critic's, entropy, approximate KL divergence, share of clipped ratios
DONE, BAD_GRADIENT, BAD_WEIGHT = 0, 1, 2  # how an epoch ends

_LOG_2PI = np.float32(np.log(2.0 * np.pi))
_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)


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
    layered = (
        actor.network.weights.size - data.raw_actions.shape[1]
        if settings.kind == GAUSSIAN
        else actor.network.weights.size
    )
    actor.gradient[:] = _ZERO
    critic.gradient[:] = _ZERO
    for begin in range(0, len(rows), BLOCK):
        block = rows[begin : begin + BLOCK]
        n = len(block)
        for i in range(n):
            for j in range(actor.inputs.shape[1]):
                actor.inputs[i, j] = data.observations[block[i], j]
            for j in range(critic.inputs.shape[1]):
                critic.inputs[i, j] = data.critic_inputs[block[i], j]
        outputs, values = forward(actor.network, actor.inputs[:n]), forward(critic.network, critic.inputs[:n])
        by_outputs, by_values = outputs_deltas(actor, n), outputs_deltas(critic, n)
        for i in range(n):
            row = block[i]
            old, advantage = data.log_probs[row], np.float32((data.advantages[row] - shift) * scale)
            if settings.kind == CATEGORICAL:
                choice = data.choices[row]
                _discrete(outputs[i], by_outputs[i], choice, old, advantage, settings, share, losses)
            else:
                log_std, by_log_std = actor.network.weights[layered:], actor.gradient[layered:]
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
        actor_norm, critic_norm = norm_of(actor.gradient), norm_of(critic.gradient)
        if not np.isfinite(actor_norm + critic_norm + found[0] + found[1]):
            return BAD_GRADIENT, i
        adam(actor, actor_norm, settings.max_grad_norm, settings.actor_lr, settings.eps, steps + i + 1)
        adam(critic, critic_norm, settings.max_grad_norm, settings.critic_lr, settings.eps, steps + i + 1)
        if not np.isfinite(norm_of(actor.network.weights) + norm_of(critic.network.weights)):
            return BAD_WEIGHT, i + 1
    return DONE, len(starts) - 1


cache_on_disk(ppo_epoch, "gradient steps of small networks")
