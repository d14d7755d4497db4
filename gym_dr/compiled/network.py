"""Small multilayer perceptrons in compiled code: outputs, gradients of the weights, and steps of an optimizer.

A pass in torch takes some 60 us however small the network; for a few thousand weights and a few dozen rows the
arithmetic takes less than a tenth of that. ``policy.py`` acts with these networks, ``gradients.py`` trains them, and
tests compare both with torch.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Indices
from gym_dr.compiled.flags import KERNEL, RUNTIME

BLOCK = 64  # rows that go through a network in training at a time, so that activations stay in the first-level cache
LANES = 16  # partial sums
RELU, TANH, ELU = 0, 1, 2
ACTIVATIONS = {"relu": RELU, "tanh": TANH, "elu": ELU}  # between layers

_SATURATED = np.float32(9.2)  # beyond this the hyperbolic tangent rounds to 1
_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)
_P0, _P1, _P2 = np.float32(135135.0), np.float32(17325.0), np.float32(378.0)
_Q1, _Q2, _Q3 = np.float32(62370.0), np.float32(3150.0), np.float32(28.0)


class Network(NamedTuple):
    """A multilayer perceptron with a linear last layer, and memory for the outputs of its layers.

    Weights are stored consecutively: for each layer a matrix, then ``(outputs,)`` biases; after the last layer come
    other learned numbers. A trained network's matrices are ``(outputs, inputs)``, as in torch. Those of a policy that
    acts are ``(inputs, outputs)``: BLAS adds up the product with a single row in another order for each of the two.
    """

    sizes: Indices  # (layers + 1,) units, of the input first
    activation: int  # one of ``ACTIVATIONS``
    inputs_first: bool  # matrices are (inputs, outputs), otherwise (outputs, inputs)
    weights: Floats
    values: Floats  # outputs of all layers, each (rows, outputs)

    @staticmethod
    def allocate(*, sizes: list[int], activation: str, inputs_first: bool, rows: int, extra: int = 0) -> Network:
        """Zeroed memory for a network of these sizes, at most ``rows`` inputs at a time and ``extra`` other numbers."""
        count = sum((before + 1) * after for before, after in pairwise(sizes)) + extra
        return Network(
            sizes=np.array(sizes, np.int64),
            activation=ACTIVATIONS[activation],
            inputs_first=inputs_first,
            weights=np.zeros(count, np.float32),
            values=np.zeros(rows * sum(sizes[1:]), np.float32),
        )


class MirrorImage(NamedTuple):
    """Exchanges inputs, and outputs, with those of the mirror image: ``mirrored = x[..., places] * signs``."""

    input_places: Indices = np.zeros(0, np.int64)  # by default there is none, and arrays are empty
    input_signs: Floats = np.zeros(0, np.float32)
    output_places: Indices = np.zeros(0, np.int64)
    output_signs: Floats = np.zeros(0, np.float32)


class Trained(NamedTuple):
    """A network with its optimizer's state, and working memory for a block of rows in each of several threads.

    Arrays with a first dimension of threads or shares lack it in what ``share_of`` returns.
    """

    network: Network  # its matrices are (outputs, inputs), and its values (threads, ...)
    gradient: Floats  # (shares, weights) laid out like the network's weights; so are the next two
    first: Floats  # Adam's mean of gradients
    second: Floats  # and of their squares
    part: Floats  # (threads, ...) a matrix's gradient from one block
    inputs: Floats  # (threads, rows, inputs), of a block and maybe of its mirror image
    deltas: Floats  # (threads, 2, rows * widest) derivatives of the loss with respect to layers' pre-activations

    @staticmethod
    def allocate(
        *, sizes: list[int], activation: str, extra: int, threads: int = 1, shares: int = 1, rows: int = BLOCK
    ) -> Trained:
        """Zeroed memory for a network of these sizes and ``extra`` other learned numbers.

        So many ``threads`` work at once, on so many ``shares`` of a minibatch, whose gradients are then added up.
        """
        network = Network.allocate(sizes=sizes, activation=activation, inputs_first=False, rows=rows, extra=extra)
        count = network.weights.size
        return Trained(
            network=network._replace(values=np.zeros((threads, network.values.size), np.float32)),
            gradient=np.zeros((shares, count), np.float32),
            first=np.zeros(count, np.float32),
            second=np.zeros(count, np.float32),
            part=np.zeros((threads, max(before * after for before, after in pairwise(sizes))), np.float32),
            inputs=np.zeros((threads, rows, sizes[0]), np.float32),
            deltas=np.zeros((threads, 2, rows * max(sizes)), np.float32),
        )


@njit(**KERNEL | RUNTIME)
def share_of(trained, slot, share):
    """A network as the thread of a ``slot`` sees it, which works on a ``share`` of a minibatch."""
    network = trained.network
    return Trained(
        Network(network.sizes, network.activation, network.inputs_first, network.weights, network.values[slot]),
        trained.gradient[share],
        trained.first,
        trained.second,
        trained.part[slot],
        trained.inputs[slot],
        trained.deltas[slot],
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


@njit(**KERNEL)
def elu_of(values):
    """Exponential linear units in place (Clevert et al. 2016), to within 2.5e-7, with the fraction of ``tanh_of``.

    With ``tanh(x / 4) = p / q`` and ``d = 2 p / (q - p)``, ``exp(x) - 1 = d (d + 2)``.
    """
    for i in range(values.size):
        quarter = _HALF * _HALF * min(max(values[i], -_TWO * _SATURATED), _ZERO)
        s = quarter * quarter
        p = quarter * (_P0 + s * (_P1 + s * (_P2 + s)))
        q = _P0 + s * (_Q1 + s * (_Q2 + s * _Q3))
        d = _TWO * p / (q - p)
        values[i] = max(values[i], _ZERO) + d * (d + _TWO)


@njit(**KERNEL)
def softplus(x):
    """``log(1 + exp(x))`` as in torch: x itself if the difference is below float32's last digit."""
    return x if x > np.float32(20.0) else np.log1p(np.exp(x))


@njit(**KERNEL | RUNTIME)
def forward(network, inputs):
    """Outputs ``(n, outputs)`` for inputs ``(n, inputs)``; those of all layers stay in ``values``."""
    source, n = inputs, len(inputs)
    at, place = 0, 0
    layers = len(network.sizes) - 1
    for layer in range(layers):
        ins, outs = network.sizes[layer], network.sizes[layer + 1]
        matrix = network.weights[at : at + ins * outs]
        bias = network.weights[at + ins * outs : at + (ins + 1) * outs]
        flat = network.values[place : place + n * outs]
        target = flat.reshape(n, outs)
        if network.inputs_first:
            np.dot(source, matrix.reshape(ins, outs), target)
        else:
            np.dot(source, matrix.reshape(outs, ins).T, target)
        last = layer == layers - 1
        for i in range(n):
            for j in range(outs):
                value = target[i, j] + bias[j]
                target[i, j] = value if last or network.activation != RELU else max(value, _ZERO)
        if network.activation == TANH and not last:
            tanh_of(flat)
        if network.activation == ELU and not last:
            elu_of(flat)
        source = target
        at += (ins + 1) * outs
        place += n * outs
    return source


@njit(**KERNEL | RUNTIME)
def outputs_deltas(trained, n):
    """Where to put derivatives of the loss with respect to the outputs, ``(n, outputs)``, before ``backward``."""
    layers = len(trained.network.sizes) - 1
    outs = trained.network.sizes[layers]
    return trained.deltas[layers % 2, : n * outs].reshape(n, outs)


@njit(**KERNEL | RUNTIME)
def backward(trained, n):
    """Adds a block's gradient of the weights, after ``forward`` and with ``outputs_deltas`` filled."""
    network = trained.network
    layers = len(network.sizes) - 1
    at, place = 0, 0
    for layer in range(layers):
        at += network.sizes[layer + 1] * (network.sizes[layer] + 1)
        place += n * network.sizes[layer + 1]
    for layer in range(layers - 1, -1, -1):
        ins, outs = network.sizes[layer], network.sizes[layer + 1]
        at -= outs * (ins + 1)
        place -= n * outs
        delta = trained.deltas[(layer + 1) % 2, : n * outs].reshape(n, outs)
        source = network.values[place - n * ins : place].reshape(n, ins) if layer else trained.inputs[:n]
        part = trained.part[: outs * ins]
        np.dot(delta.T, source, part.reshape(outs, ins))
        for j in range(outs * ins):
            trained.gradient[at + j] += part[j]
        for i in range(n):
            for j in range(outs):
                trained.gradient[at + outs * ins + j] += delta[i, j]
        if layer:
            below = trained.deltas[layer % 2, : n * ins].reshape(n, ins)
            np.dot(delta, network.weights[at : at + outs * ins].reshape(outs, ins), below)
            for i in range(n):
                for j in range(ins):
                    value = source[i, j]
                    slope = _ONE if value > _ZERO else (_ONE + value if network.activation == ELU else _ZERO)
                    below[i, j] *= _ONE - value * value if network.activation == TANH else slope


@njit(**KERNEL | RUNTIME)
def backward_to_inputs(trained, n):
    """Replaces a block's inputs by derivatives with respect to them, after ``backward``."""
    ins, outs = trained.network.sizes[0], trained.network.sizes[1]
    delta = trained.deltas[1, : n * outs].reshape(n, outs)
    np.dot(delta, trained.network.weights[: outs * ins].reshape(outs, ins), trained.inputs[:n])


@njit(**KERNEL)
def average_images(mirror, outputs):
    """Averages the first half of ``outputs`` with the mirror images of the rest, which are those of mirrored inputs."""
    n = len(outputs) // 2
    for i in range(n):
        for j in range(outputs.shape[1]):
            outputs[i, j] = _HALF * (outputs[i, j] + mirror.output_signs[j] * outputs[n + i, mirror.output_places[j]])


@njit(**KERNEL)
def divide_deltas(mirror, deltas):
    """From derivatives with respect to the averages of ``average_images``, those with respect to all outputs."""
    n = len(deltas) // 2
    for i in range(n):
        for j in range(deltas.shape[1]):
            deltas[i, j] *= _HALF
            deltas[n + i, mirror.output_places[j]] = mirror.output_signs[j] * deltas[i, j]


@njit(**KERNEL)
def add_shares(trained, shares, begin, end, lanes):
    """Adds the gradients of the first ``shares`` shares, in this order, for weights ``begin`` to ``end``.

    Fills ``lanes`` (LANES,) with parts of the sum of the squares; so many sums compile to SIMD.
    """
    gradient = trained.gradient[0, begin:end]
    for share in range(1, shares):
        other = trained.gradient[share, begin:end]
        for i in range(gradient.size):
            gradient[i] += other[i]
    whole = gradient.size - gradient.size % LANES
    lanes[:] = 0.0
    for i in range(0, whole, LANES):
        for k in range(LANES):
            lanes[k] += np.float64(gradient[i + k]) * np.float64(gradient[i + k])
    for i in range(whole, gradient.size):
        lanes[i - whole] += np.float64(gradient[i]) * np.float64(gradient[i])


class Optimizer(NamedTuple):
    """Constants of an optimizer, which moves weights by moments of their gradients."""

    adam: bool  # Adam (Kingma and Ba 2015, algorithm 1), otherwise RMSprop (Hinton 2012), both as in torch
    eps: float
    max_grad_norm: float  # 0 for none


@njit(**KERNEL)
def step(trained, optimizer, lr, norm, steps, begin, end):
    """The ``steps``-th step for weights ``begin`` to ``end``, with a gradient of length ``norm``, maybe clipped.

    Returns how many weights are no longer finite.
    """
    most = optimizer.max_grad_norm
    scale = np.float32(min(most / (norm + 1e-6), 1.0) if most > 0.0 else 1.0)
    small = np.float32(optimizer.eps)
    weights, gradient = trained.network.weights[begin:end], trained.gradient[0, begin:end]
    first, second = trained.first[begin:end], trained.second[begin:end]
    # without a first moment and corrections for the zeros that moments begin with, Adam is RMSprop
    keep1, keep2 = (0.9, 0.999) if optimizer.adam else (0.0, 0.99)
    size = np.float32(lr / (1.0 - keep1**steps))
    root = np.float32(1.0 / np.sqrt(1.0 - keep2**steps) if optimizer.adam else 1.0)
    decay1, decay2 = np.float32(keep1), np.float32(keep2)
    take1, take2 = np.float32(1.0 - keep1), np.float32(1.0 - keep2)
    lost = 0
    for i in range(weights.size):
        slope = gradient[i] * scale
        first[i] = decay1 * first[i] + take1 * slope
        second[i] = decay2 * second[i] + take2 * slope * slope
        weights[i] -= size * first[i] / (np.sqrt(second[i]) * root + small)
        lost += not np.isfinite(weights[i])
    return lost
