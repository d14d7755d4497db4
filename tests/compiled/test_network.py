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
from gym_dr.compiled.network import Network, Optimizer, Trained
from gym_dr.training.optimizers import without_compiler

SIZES = [3, 5, 4, 2]


@njit(**ENTRY | RUNTIME)
def outputs_of(net: Any, inputs: Any) -> Any:
    return network.forward(net, inputs).copy()


@njit(**ENTRY | RUNTIME)
def gradient_of_the_sum(every: Any, n: int) -> None:
    trained = network.share_of(every, 0, 1)
    network.forward(trained.network, trained.inputs[:n])
    network.outputs_deltas(trained, n)[:] = np.float32(1.0)
    network.backward(trained, n)


@njit(**ENTRY)
def squares(trained: Any, shares: int, begin: int, end: int, lanes: Any) -> None:
    network.add_shares(trained, shares, begin, end, lanes)


@njit(**ENTRY)
def step(trained: Any, optimizer: Any, lr: float, norm: float, steps: int, begin: int, end: int) -> int:
    return network.step(trained, optimizer, lr, norm, steps, begin, end)


@njit(**ENTRY)
def softplus(x: Any) -> Any:
    return network.softplus(x)


@njit(**ENTRY)
def elu_of(values: Any) -> None:
    network.elu_of(values)


for function in (outputs_of, gradient_of_the_sum, squares, step, softplus, elu_of):
    cache_on_disk(function, "tests of the compiled network")


def torch_network(activation: str) -> nn.Sequential:
    torch.manual_seed(0)
    between = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU}[activation]
    return nn.Sequential(nn.Linear(3, 5), between(), nn.Linear(5, 4), between(), nn.Linear(4, 2))


def flat(made: nn.Sequential, *, inputs_first: bool = False, gradients: bool = False) -> Any:
    """Weights or their gradients, laid out as a ``Network`` has them."""
    found = [weights.grad if gradients else weights.detach() for weights in made.parameters()]
    return np.concatenate([np.ravel(part.T if inputs_first and part.ndim == 2 else part) for part in found])


@pytest.mark.parametrize("inputs_first", [True, False], ids=["to act", "to learn"])
@pytest.mark.parametrize("activation", network.ACTIVATIONS)
@pytest.mark.parametrize("rows", [1, 7])
def test_outputs_are_torchs_in_either_layout(rows: int, activation: str, inputs_first: bool) -> None:
    made, inputs = torch_network(activation), np.random.default_rng(0).standard_normal((rows, 3), np.float32)
    net = Network.allocate(sizes=SIZES, activation=activation, inputs_first=inputs_first, rows=7)
    net.weights[:] = flat(made, inputs_first=inputs_first)
    expected = made(torch.from_numpy(inputs)).detach().numpy()
    np.testing.assert_allclose(outputs_of(net, inputs), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", network.ACTIVATIONS)
def test_gradients_are_torchs_and_add_up(activation: str) -> None:
    made, inputs = torch_network(activation), np.random.default_rng(0).standard_normal((9, 3), np.float32)
    trained = Trained.allocate(sizes=SIZES, activation=activation, extra=0, shares=2)
    trained.network.weights[:] = flat(made)
    for block in (inputs[:4], inputs[4:]):
        trained.inputs[0, : len(block)] = block
        gradient_of_the_sum(trained, len(block))
    made(torch.from_numpy(inputs)).sum().backward()
    np.testing.assert_allclose(trained.gradient[1], flat(made, gradients=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ranges", [[(0, 24)], [(0, 17), (17, 20), (20, 24)]], ids=["whole", "in ranges"])
def test_gradients_of_shares_are_added_up_with_the_sum_of_their_squares(ranges: Any) -> None:
    trained = Trained.allocate(sizes=[3, 6], activation="tanh", extra=0, shares=3)
    trained.gradient[:] = np.random.default_rng(0).standard_normal((3, 24), np.float32)
    first, second, _ = trained.gradient.copy()
    total, lanes = 0.0, np.empty(network.LANES)
    for begin, end in ranges:
        squares(trained, 2, begin, end, lanes)
        total += lanes.sum()
    np.testing.assert_array_equal(trained.gradient[0], first + second)
    assert total == pytest.approx(float((trained.gradient[0].astype(np.float64) ** 2).sum()), rel=1e-12)


@pytest.mark.parametrize(("name", "lr"), [("Adam", 0.1), ("RMSprop", 0.01)])
def test_an_optimizers_steps_are_torchs_with_numbers_beside_the_layers(name: str, lr: float) -> None:
    trained = Trained.allocate(sizes=[1, 1], activation="tanh", extra=2)  # a weight, its bias and two more
    reference = nn.Parameter(torch.zeros(4))
    optimizer = without_compiler(getattr(torch.optim, name))([reference], lr=lr, eps=1e-5)
    ours = Optimizer(adam=name == "Adam", eps=1e-5, max_grad_norm=6.5)
    for count in (1, 2, 3):
        gradient = np.array([3.0, -4.0, 0.0, 12.0], np.float32) * count  # of length 13, 26, 39
        trained.gradient[0] = gradient
        for begin, end in ((0, 3), (3, 4)):
            assert step(trained, ours, lr, 13.0 * count, count, begin, end) == 0
        reference.grad = torch.from_numpy(gradient.copy())
        nn.utils.clip_grad_norm_([reference], 6.5)
        optimizer.step()
        np.testing.assert_allclose(trained.network.weights, reference.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("adam", [True, False])
def test_a_step_counts_weights_that_are_no_longer_finite(adam: bool) -> None:
    trained = Trained.allocate(sizes=[1, 1], activation="tanh", extra=2)
    trained.gradient[0] = [1.0, np.nan, 2.0, np.inf]
    assert step(trained, Optimizer(adam=adam, eps=1e-5, max_grad_norm=0.0), 0.1, 1.0, 1, 0, 4) == 2


def test_exponential_linear_units_are_torchs_everywhere() -> None:
    numbers = np.array([-200.0, -18.5, -18.3, -9.0, -1.0, -1e-4, -1e-9, 0.0, 1e-9, 3.0, 1e6], np.float32)
    expected = nn.functional.elu(torch.from_numpy(numbers)).numpy()
    found = numbers.copy()
    elu_of(found)
    np.testing.assert_allclose(found, expected, rtol=5e-7)


def test_softplus_is_torchs_also_where_it_is_the_number_itself() -> None:
    numbers = np.array([-30.0, -1.0, 0.0, 5.0, 19.9, 20.1, 80.0], np.float32)
    expected = nn.functional.softplus(torch.from_numpy(numbers)).numpy()
    np.testing.assert_allclose([softplus(x) for x in numbers], expected, rtol=1e-6)
