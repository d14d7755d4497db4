"""Optimizers without torch's compiler; that a training does without it is in tests/cli/test_imports.py."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch

from gym_dr.training.optimizers import without_compiler

Result = tuple[list[torch.Tensor], dict[str, Any]]


def trained(make_optimizer: Any) -> Result:
    """Weights of a network after some steps, and what is saved of its optimizer."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = make_optimizer(network.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        network(torch.randn(8, 3)).square().mean().backward()
        optimizer.step()
    again = make_optimizer(network.parameters(), lr=1.0)
    again.load_state_dict(optimizer.state_dict())
    return list(network.parameters()), again.state_dict()


OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "rmsprop": (torch.optim.RMSprop, {}),
    "adam": (torch.optim.Adam, {"fused": True}),
    "adamw": (torch.optim.AdamW, {"fused": True}),
}


def compared() -> dict[str, bool]:
    """Optimizer -> whether weights and saved state are those of torch's own."""
    found = {}
    for name, (optimizer, options) in OPTIMIZERS.items():
        weights, state = trained(partial(without_compiler(optimizer), **options))
        expected_weights, expected_state = trained(partial(optimizer, **options))
        same = all(map(torch.equal, weights, expected_weights))
        found[name] = same and str(state) == str(expected_state)  # tensors have no equality of their own
    return found


@pytest.mark.slow  # imports torch's compiler; the sibling is the first step of each
def test_steps_and_saved_state_are_those_of_torch() -> None:
    # torch's own import its compiler, which a process cannot import any more once it has rendered a robot
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(compared).result() == dict.fromkeys(OPTIMIZERS, True)


@pytest.mark.parametrize(
    ("name", "expected"),
    # a slope of 4: Adam steps by the learning rate; AdamW shrinks the weight by lr / 100 before; RMSprop divides by
    # sqrt(0.01 * 4^2) = 0.4
    [("adam", 1.0 - 0.01), ("adamw", 0.9999 - 0.01), ("rmsprop", 1.0 - 0.01 * 4.0 / 0.4)],
)
def test_a_first_step_is_that_of_the_formula_and_gradients_are_on_again_after_it(name: str, expected: float) -> None:
    optimizer, options = OPTIMIZERS[name]
    weight = torch.ones(1, requires_grad=True)
    made: Any = without_compiler(optimizer)([weight], lr=0.01, **options)
    weight.backward(torch.full((1,), 4.0))
    made.step()
    assert weight.item() == pytest.approx(expected, rel=1e-6)
    assert weight.is_leaf
    assert torch.is_grad_enabled()
