"""Optimizers without torch's compiler; that a training does without it is in tests/cli/test_imports.py."""

from __future__ import annotations

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


@pytest.mark.parametrize("optimizer", [torch.optim.RMSprop, torch.optim.Adam, torch.optim.AdamW])
def test_steps_and_saved_state_are_those_of_torch(optimizer: type[torch.optim.Optimizer]) -> None:
    options: dict[str, Any] = {} if optimizer is torch.optim.RMSprop else {"fused": True}
    weights, state = trained(partial(without_compiler(optimizer), **options))
    expected_weights, expected_state = trained(partial(optimizer, **options))
    assert all(map(torch.equal, weights, expected_weights))
    assert str(state) == str(expected_state)  # tensors have no equality of their own


def test_gradients_are_off_in_a_step_and_on_again_after_it() -> None:
    weight = torch.ones(1, requires_grad=True)
    optimizer: Any = without_compiler(torch.optim.Adam)([weight])
    weight.backward(torch.ones(1))
    optimizer.step()
    assert weight.is_leaf
    assert torch.is_grad_enabled()
