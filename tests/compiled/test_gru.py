"""Compiled gated recurrent units against torch, and their gradients against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numba import njit

from gym_dr.compiled import gru
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, RUNTIME
from gym_dr.compiled.gru import ActingMemory, TrainedMemory
from gym_dr.training.memory import GRUMemory

OBS, ACTION, UNITS = 3, 2, 5
INPUTS = OBS + ACTION


@njit(**ENTRY | RUNTIME)
def features_of(memory: Any, starts: Any, observations: Any) -> Any:
    gru.forget(memory, starts)
    return gru.remember(memory, observations).copy()


@njit(**ENTRY | RUNTIME)
def unroll(every: Any, weights: Any, length: int, first: Any, starts: Any) -> None:
    gru.unroll(gru.memory_of(every, 1), weights, length, first, starts)


@njit(**ENTRY | RUNTIME)
def unroll_backward(every: Any, weights: Any, gradient: Any, length: int, n: int, starts: Any) -> None:
    gru.unroll_backward(gru.memory_of(every, 1), weights, gradient, length, n, starts)


for function in (features_of, unroll, unroll_backward):
    cache_on_disk(function, "tests of the compiled gru")


def torch_memory() -> GRUMemory:
    torch.manual_seed(0)
    made = GRUMemory(INPUTS, UNITS, "torch")
    with torch.no_grad():
        for weights in made.parameters():  # so that gates open and close
            weights *= 3.0
    return made


def flat(memory: GRUMemory, *, inputs_first: bool = False, gradients: bool = False) -> Any:
    """Weights or their gradients, laid out as compiled units have them."""
    found = [weights.grad if gradients else weights.detach() for weights in memory.parameters()]
    return np.concatenate([np.ravel(part.T if inputs_first and part.ndim == 2 else part) for part in found])


def test_acting_units_are_torchs_and_forget_where_episodes_start() -> None:
    reference, rng = torch_memory(), np.random.default_rng(0)
    memory = ActingMemory.allocate(observation=OBS, action=ACTION, units=UNITS, num_envs=4)
    memory.weights[:] = flat(reference, inputs_first=True)
    state = torch.zeros(4, UNITS)
    for t in range(12):
        observations, actions = (2.0 * rng.standard_normal((4, size), np.float32) for size in (OBS, ACTION))
        starts = rng.random(4) < 0.3
        memory.previous[:] = actions
        features = features_of(memory, starts, observations)
        inputs = np.concatenate([observations, actions * ~starts[:, None]], 1)
        with torch.no_grad():
            _, state = reference.step(torch.from_numpy(inputs), state, torch.from_numpy(starts))
        np.testing.assert_array_equal(features[:, :OBS], observations)
        np.testing.assert_allclose(features[:, OBS:], state.numpy(), rtol=1e-5, atol=2e-6, err_msg=str(t))


LENGTH, SEQUENCES = 6, 4


def problem(seed: int = 1) -> tuple[Any, ...]:
    """Inputs (L, S, ...), first states, starts in the middle, and derivatives with respect to the states."""
    rng = np.random.default_rng(seed)
    inputs = 2.0 * rng.standard_normal((LENGTH, SEQUENCES, INPUTS), np.float32)
    first = rng.uniform(-1.0, 1.0, (SEQUENCES, UNITS)).astype(np.float32)
    starts = np.zeros((LENGTH, SEQUENCES), np.bool_)
    starts[3, 0] = starts[0, 1] = starts[1, 2] = starts[5, 2] = True  # in the middle, at once, twice, never
    return inputs, first, starts, rng.standard_normal((LENGTH, SEQUENCES, UNITS), np.float32)


def unrolled(weights: Any, gradient: Any, parts: list[slice]) -> Any:
    """States of all sequences, some of which go through at a time; adds their gradients."""
    inputs, first, starts, by_states = problem()
    every = TrainedMemory.allocate(inputs=INPUTS, units=UNITS, length=LENGTH, sequences=SEQUENCES, threads=2)
    memory, states = TrainedMemory(*(array[1] for array in every)), np.empty_like(by_states)
    for part in parts:
        n = len(first[part])
        begins = starts[:, part].ravel()
        memory.inputs[: LENGTH * n] = inputs[:, part].reshape(-1, INPUTS)
        unroll(every, weights, LENGTH, first[part], begins)
        states[:, part] = memory.states[: LENGTH * n].reshape(LENGTH, n, UNITS)
        memory.by_states[: LENGTH * n] = by_states[:, part].reshape(-1, UNITS)
        unroll_backward(every, weights, gradient, LENGTH, n, begins)
    return states


@pytest.mark.parametrize("parts", [[slice(0, 4)], [slice(0, 3), slice(3, 4)]], ids=["at once", "in two parts"])
def test_states_and_gradients_of_sequences_are_torchs_and_add_up(parts: list[slice]) -> None:
    reference = torch_memory()
    gradient = np.zeros(gru.weight_count.py_func(INPUTS, UNITS), np.float32)
    states = unrolled(flat(reference), gradient, parts)
    inputs, first, starts, by_states = (torch.from_numpy(array) for array in problem())
    expected = reference(inputs, first, starts)
    (expected * by_states).sum().backward()
    np.testing.assert_allclose(states, expected.detach().numpy(), rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(gradient, flat(reference, gradients=True), rtol=1e-4, atol=2e-5)


def test_derived_gradients_are_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that are compiled, run as they are written in float64, with an exact hyperbolic tangent."""
    for name in ("_open_gates", "_by_gates", "_add_product"):
        monkeypatch.setattr(gru, name, getattr(gru, name).py_func)
    monkeypatch.setattr(gru, "tanh_of", lambda values: np.tanh(values, out=values))
    inputs, first, starts, by_states = (
        array.astype(array.dtype if array.dtype == np.bool_ else np.float64) for array in problem()
    )
    single = TrainedMemory.allocate(inputs=INPUTS, units=UNITS, length=LENGTH, sequences=SEQUENCES)
    memory = TrainedMemory(*(array[0].astype(np.float64) for array in single))
    memory.inputs[:] = inputs.reshape(-1, INPUTS)
    memory.by_states[:] = by_states.reshape(-1, UNITS)
    weights = flat(torch_memory()).astype(np.float64)

    def loss(changed: Any) -> float:
        gru.unroll.py_func(memory, changed, LENGTH, first, starts.ravel())
        return float((memory.states * memory.by_states).sum())

    expected = np.zeros_like(weights)
    for i in range(len(weights)):
        change = np.zeros_like(weights)
        change[i] = 1e-6
        expected[i] = (loss(weights + change) - loss(weights - change)) / 2e-6
    gradient = np.zeros_like(weights)
    loss(weights)
    gru.unroll_backward.py_func(memory, weights, gradient, LENGTH, SEQUENCES, starts.ravel())
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
