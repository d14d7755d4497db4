"""Compiles the functions of equations into loops over many environments.

Memory is one flat float64 array of blocks: field F of the environment in lane l of block b is at
``(b * FIELDS + F) * LANES + l``. LLVM turns a loop over the lanes into SIMD where every function in it allows that.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array
from gym_dr.compiled import trigonometry
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.formula import compile_formula
from gym_dr.compiled.options import ENTRY, INLINE
from gym_dr.compiled.pcg64 import uniform
from gym_dr.compiled.rollout import Exchange
from gym_dr.compiled.square import square as compiled_square
from gym_dr.envs.equations.equations import Equations, square

# functions that equations call -> equal ones that compile to SIMD
_FAST: dict[Any, Any] = {
    math.sin: trigonometry.sin,
    math.cos: trigonometry.cos,
    math.fmod: trigonometry.fmod,
    square: compiled_square,
}

LANES = 32  # environments per block


class EquationsMemory(NamedTuple):
    """All sub-environments."""

    memory: Array  # (blocks * FIELDS * LANES,)
    params: Array  # (parameters, N) of new episodes
    streams: npt.NDArray[np.uint64]  # (N, STREAM) random streams
    exchange: Exchange


class Kernels(NamedTuple):
    """The compiled functions of equations, and where their numbers are in memory."""

    begin: Any  # (world, envs, bounds (numbers drawn, 2)): begins episodes
    step: Any  # (world, envs, first, last): steps sub-environments first to last - 1, of which ``first`` begins a block
    fields: int  # of a block
    state: int  # index of the first field of the state; those of the physics come before


@cache
def kernels_of(equations: Equations) -> Kernels:
    """Makes the kernels of equations; the first call compiles or loads them."""
    # the same offsets for all: physics, state, inputs and outputs of a step, observation, numbers drawn
    state_at = len(fields_of(equations.physics))
    action_at = state_at + len(fields_of(equations.state))
    fresh_at, reward_at, ended_at, seen_at = range(action_at + 1, action_at + 5)
    first = equations.begin(*(low for low, _ in equations.start))
    seen, drawn = len(equations.observe(first)), len(equations.start)
    drawn_at = seen_at + seen
    fields = drawn_at + drawn
    size = fields * LANES

    derive, step_one = compile_formula(equations.derive, _FAST), compile_formula(equations.step, _FAST)
    observe, begin_one = compile_formula(equations.observe, _FAST), compile_formula(equations.begin, _FAST)
    read_params = _reader(equations.params, [f"block[{k}, lane]" for k in range(len(fields_of(equations.params)))])
    read_physics = _reader(equations.physics, _places(0, state_at))
    read_state = _reader(equations.state, _places(state_at, action_at - state_at))
    read_drawn = _reader(begin_one, _places(drawn_at, drawn))
    write_physics = _writer(_places(0, state_at))
    write_state = _writer(_places(state_at, action_at - state_at))
    write_seen = _writer(_places(seen_at, seen))
    action_at, fresh_at, reward_at, ended_at, seen_at, drawn_at = (
        LANES * field for field in (action_at, fresh_at, reward_at, ended_at, seen_at, drawn_at)
    )

    @njit(**ENTRY)
    def begin(world, envs, bounds):
        memory, params, streams, exchange = world
        for k in range(len(envs)):
            env = envs[k]
            first = env // LANES * size
            block, lane = memory[first : first + size], env % LANES
            write_physics(block, lane, derive(read_params(params, env)), False)
            for j in range(drawn):
                width = bounds[j, 1] - bounds[j, 0]
                block[lane + drawn_at + j * LANES] = uniform(streams, env, bounds[j, 0], width)
            state = read_drawn(block, lane)
            write_state(block, lane, state, False)
            write_seen(block, lane, observe(state), False)
            for j in range(seen):
                exchange.observations[env, j] = block[lane + seen_at + j * LANES]
            exchange.fresh[env] = 1

    @njit(**ENTRY)
    def step(world, envs, first, last):
        memory, _, _, exchange = world
        for at in range(first, last, LANES):
            block = memory[at // LANES * size : (at // LANES + 1) * size]
            count = min(LANES, last - at)
            for lane in range(count):
                action = np.float64(exchange.choices[at + lane])
                if exchange.numbers.shape[1] > 0:
                    action = exchange.numbers[at + lane, 0]
                block[lane + action_at] = action
                block[lane + fresh_at] = exchange.fresh[at + lane]
            for lane in range(count):
                fresh = block[lane + fresh_at] != 0.0
                state = read_state(block, lane)
                after, reward, ended = step_one(read_physics(block, lane), state, block[lane + action_at])
                write_state(block, lane, after, fresh)
                write_seen(block, lane, observe(after), fresh)
                block[lane + reward_at] = 0.0 if fresh else reward
                block[lane + ended_at] = 1.0 if ended and not fresh else 0.0
            for lane in range(count):
                exchange.fresh[at + lane] = 0
                exchange.rewards[at + lane] = block[lane + reward_at]
                exchange.terminations[at + lane] = block[lane + ended_at] != 0.0
                for j in range(seen):
                    exchange.observations[at + lane, j] = block[lane + seen_at + j * LANES]

    file = Path(inspect.getfile(equations.step))
    for kernel in (begin, step):
        cache_on_disk(kernel, f"the native {equations.name}", file)
    return Kernels(begin, step, fields, state_at)


def fields_of(named_tuple: Any) -> tuple[str, ...]:
    """The names of a named tuple's fields."""
    names: tuple[str, ...] = named_tuple._fields
    return names


def _places(first: int, count: int) -> list[str]:
    """Expressions for the fields of an environment; LLVM needs compile-time offsets to turn loops into SIMD."""
    return [f"block[lane + {LANES * field}]" for field in range(first, first + count)]


def _reader(make: Any, places: Sequence[str]) -> Any:
    """``make`` of the numbers in these places, written out because numba cannot fill a named tuple in a loop."""
    return _written(f"def read(block, lane): return make({', '.join(places)})", make)


def _writer(places: Sequence[str]) -> Any:
    """Writes a tuple's numbers to these places, unless ``keep`` is set."""
    lines = "; ".join(f"{place} = {place} if keep else values[{k}]" for k, place in enumerate(places))
    return _written(f"def write(block, lane, values, keep): {lines}")


def _written(source: str, make: Any = None) -> Any:
    names: dict[str, Any] = {"make": make}
    exec(source, names)
    return njit(**INLINE)(next(value for name, value in names.items() if name in ("read", "write")))
