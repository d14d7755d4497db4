"""The compiled network against torch: outputs in both layouts, gradients and a step of Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from torch import nn

from gym_dr.compiled import network
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, RUNTIME
from gym_dr.compiled.network import Network, Trained
from gym_dr.training.optimizers import without_compiler

SIZES = [3, 5, 4, 2]


@njit(**ENTRY | RUNTIME)
def outputs_of(net: Any, inputs: Any) -> Any:
    return network.forward(net, inputs).copy()


@njit(**ENTRY | RUNTIME)
def gradient_of_the_sum(trained: Any, n: int) -> None:
    network.forward(trained.network, trained.inputs[:n])
    network.outputs_deltas(trained, n)[:] = np.float32(1.0)
    network.backward(trained, n)


@njit(**ENTRY)
def step(trained: Any, max_norm: float, lr: float, steps: int) -> None:
    network.adam(trained, network.norm_of(trained.gradient), max_norm, lr, 1e-5, steps)


@njit(**ENTRY)
def softplus(x: Any) -> Any:
    return network.softplus(x)


for function in (outputs_of, gradient_of_the_sum, step, softplus):
    cache_on_disk(function, "tests of the compiled network")


def torch_network(tanh: bool) -> nn.Sequential:
    torch.manual_seed(0)
    between = nn.Tanh if tanh else nn.ReLU
    return nn.Sequential(nn.Linear(3, 5), between(), nn.Linear(5, 4), between(), nn.Linear(4, 2))


def flat(made: nn.Sequential, *, inputs_first: bool = False, gradients: bool = False) -> Any:
    """Weights or their gradients, laid out as a ``Network`` has them."""
    found = [weights.grad if gradients else weights.detach() for weights in made.parameters()]
    return np.concatenate([np.ravel(part.T if inputs_first and part.ndim == 2 else part) for part in found])


@pytest.mark.parametrize("inputs_first", [True, False], ids=["to act", "to learn"])
@pytest.mark.parametrize("tanh", [True, False], ids=["tanh", "relu"])
@pytest.mark.parametrize("rows", [1, 7])
def test_outputs_are_torchs_in_either_layout(rows: int, tanh: bool, inputs_first: bool) -> None:
    made, inputs = torch_network(tanh), np.random.default_rng(0).standard_normal((rows, 3), np.float32)
    net = Network.allocate(sizes=SIZES, tanh=tanh, inputs_first=inputs_first, rows=7)
    net.weights[:] = flat(made, inputs_first=inputs_first)
    expected = made(torch.from_numpy(inputs)).detach().numpy()
    np.testing.assert_allclose(outputs_of(net, inputs), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tanh", [True, False], ids=["tanh", "relu"])
def test_gradients_are_torchs_and_add_up(tanh: bool) -> None:
    made, inputs = torch_network(tanh), np.random.default_rng(0).standard_normal((9, 3), np.float32)
    trained = Trained.allocate(sizes=SIZES, tanh=tanh, extra=0)
    trained.network.weights[:] = flat(made)
    for block in (inputs[:4], inputs[4:]):
        trained.inputs[: len(block)] = block
        gradient_of_the_sum(trained, len(block))
    made(torch.from_numpy(inputs)).sum().backward()
    np.testing.assert_allclose(trained.gradient, flat(made, gradients=True), rtol=1e-5, atol=1e-5)


def test_an_optimizers_steps_are_torchs_with_numbers_beside_the_layers() -> None:
    trained = Trained.allocate(sizes=[1, 1], tanh=True, extra=2)  # a weight, its bias and two more
    reference = nn.Parameter(torch.zeros(4))
    optimizer = without_compiler(torch.optim.Adam)([reference], lr=0.1, eps=1e-5)
    for count in (1, 2, 3):
        trained.gradient[:] = gradient = np.array([3.0, -4.0, 0.0, 12.0], np.float32) * count  # of length 13, 26, 39
        step(trained, 6.5, 0.1, count)
        reference.grad = torch.from_numpy(gradient.copy())
        nn.utils.clip_grad_norm_([reference], 6.5)
        optimizer.step()
        np.testing.assert_allclose(trained.network.weights, reference.detach().numpy(), rtol=1e-6)


def test_softplus_is_torchs_also_where_it_is_the_number_itself() -> None:
    numbers = np.array([-30.0, -1.0, 0.0, 5.0, 19.9, 20.1, 80.0], np.float32)
    expected = nn.functional.softplus(torch.from_numpy(numbers)).numpy()
    np.testing.assert_allclose([softplus(x) for x in numbers], expected, rtol=1e-6)
