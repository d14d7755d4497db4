"""Compiles the functions of equations into loops over many environments.

Memory is one flat float64 array of blocks: field F of the environment in lane l of block b is at
``(b * FIELDS + F) * LANES + l``. LLVM turns a loop over the lanes into SIMD where every function in it allows that.
"""

from __future__ import annotations

import hashlib
import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from numba import njit

from gym_dr.arrays import Array, Indices
from gym_dr.compiled.flags import INLINE, KERNEL
from gym_dr.compiled.formula import compile_formula, described
from gym_dr.compiled.pcg64 import standard_normal, uniform
from gym_dr.compiled.play import StepBuffers
from gym_dr.envs.equations.equations import Equations, fields_of, spread_of
from gym_dr.randomization.distributions import Distribution, Normal

LANES = 32  # environments per block


class EquationsArrays(NamedTuple):
    """All sub-environments."""

    blocks: Array  # (blocks * FIELDS * LANES,)
    params: Array  # (parameters, N) of new episodes
    streams: npt.NDArray[np.uint64]  # (N, STREAM) random streams
    buffers: StepBuffers
    bounds: Array  # (numbers drawn, 2) of the random numbers that begin an episode
    envs: Indices  # (N,) scratch: sub-environments to reset


class Kernels(NamedTuple):
    """The compiled functions of equations, and where their numbers are in memory."""

    begin: Any  # (world, first, last): begins episodes in ``envs[first:last]``
    step: Any  # (world, first, last): steps sub-environments first to last - 1
    fields: int  # of a block
    state: int  # index of the first field of the state; those of the physics come before


def kernels_of(equations: Equations) -> Kernels:
    """Makes the kernels of equations; the first call of one compiles it or loads it from the cache."""
    return _kernels_of(equations, content_of(equations))


@cache
def _kernels_of(equations: Equations, content: str) -> Kernels:
    actions = 1 if isinstance(equations.action_space, Discrete) else equations.action_space.shape[0]
    counts = (
        *(len(fields_of(equations.physics)), len(fields_of(equations.state)), actions, 3),
        *(equations.observation_space.shape[0], len(equations.start), len(equations.process_noise)),
    )
    ends = [LANES * end for end in accumulate(counts)]
    # offsets of the fields in a block; LLVM needs them at compile time to turn loops into SIMD
    physics, state, action, flags, seen, drawn, noise = (
        range(end - LANES * count, end, LANES) for count, end in zip(counts, ends, strict=True)
    )
    size, (fresh_at, reward_at, ended_at), seen_at, seen_count = ends[-1], flags, seen[0], len(seen)

    functions = equations.derive, equations.step, equations.observe, equations.begin
    derive, step_one, observe, begin_one = map(compile_formula, functions)
    read_params = _reader(equations.params, [f"block[{k}, lane]" for k in range(len(fields_of(equations.params)))])
    read_physics = _reader(equations.physics, _places(physics))
    read_state = _reader(equations.state, _places(state))
    read_drawn = _reader(namedtuple("Start", equations.start), _places(drawn))
    write_physics, write_state, write_seen = (_writer(_places(each)) for each in (physics, state, seen))
    draw_first = _drawer(
        _places(drawn), equations.start, [(f"bounds[{j}, 0]", f"bounds[{j}, 1]") for j in range(len(drawn))]
    )
    draw_noise = _drawer(_places(noise), equations.process_noise, map(spread_of, equations.process_noise.values()))
    take_action = _action_reader(equations, _places(action))
    advance = _stepper(equations, step_one, _places(action), _places(noise))

    def begin_in(world, env, block, lane):
        write_physics(block, lane, derive(read_params(world.params, env)), False)
        draw_first(world.streams, env, block, lane, world.bounds)
        constants = read_physics(block, lane)
        write_state(block, lane, begin_one(constants, read_drawn(block, lane)), False)
        write_seen(block, lane, observe(constants, read_state(block, lane)), False)

    begin_env = _named(begin_in, content, KERNEL)

    def begin(world, first, last):
        for k in range(first, last):
            env = world.envs[k]
            block = world.blocks[env // LANES * size : (env // LANES + 1) * size]
            begin_env(world, env, block, env % LANES)
            for j in range(seen_count):
                world.buffers.observations[env, j] = block[env % LANES + seen_at + j * LANES]

    def step(world, first, last):
        streams, buffers = world.streams, world.buffers
        at = first
        while at < last:
            start = at % LANES
            # lanes count from the first to step: indices that cannot be negative make loops SIMD
            block = world.blocks[at // LANES * size + start : (at // LANES + 1) * size]
            count = min(LANES - start, last - at)
            for lane in range(count):
                if buffers.fresh[at + lane] == 1:
                    begin_env(world, at + lane, block, lane)
            for lane in range(count):
                take_action(buffers, at + lane, block, lane)
                fresh = buffers.fresh[at + lane]
                block[lane + fresh_at] = fresh
                if fresh == 0:  # the stream is that of an environment that is reset instead
                    draw_noise(streams, at + lane, block, lane, None)
            for lane in range(count):
                fresh = block[lane + fresh_at] != 0.0
                constants = read_physics(block, lane)
                after, reward, ended = advance(constants, read_state(block, lane), block, lane)
                write_state(block, lane, after, fresh)
                write_seen(block, lane, observe(constants, after), fresh)
                block[lane + reward_at] = 0.0 if fresh else reward
                block[lane + ended_at] = 1.0 if ended and not fresh else 0.0
            for lane in range(count):
                buffers.fresh[at + lane] = 0
                buffers.rewards[at + lane] = block[lane + reward_at]
                buffers.terminations[at + lane] = block[lane + ended_at] != 0.0
                for j in range(seen_count):
                    buffers.observations[at + lane, j] = block[lane + seen_at + j * LANES]
            at += count

    return Kernels(_named(begin, content, KERNEL), _named(step, content, KERNEL), size // LANES, len(physics))


def _named(kernel, content, flags):
    """Compiles a kernel under a name that no other equations have.

    Machine code from the cache finds functions by name. Numba numbers functions in each process, so kernels compiled
    in different processes could share a name, and a job would step other equations.
    """
    kernel.__qualname__ = f"{kernel.__name__}_{hashlib.blake2b(content.encode(), digest_size=8).hexdigest()}"
    return njit(**flags)(kernel)


def content_of(equations: Equations) -> str:
    """Text that differs wherever kernels may differ, also if only globals of the functions have changed."""
    functions = (equations.derive, equations.begin, equations.step, equations.observe)
    space = equations.action_space
    others = (
        (equations.params, equations.physics, equations.state),
        (dict(equations.start), dict(equations.process_noise), equations.observation_space.shape),
        space.start if isinstance(space, Discrete) else (space.low, space.high, equations.clip_actions),
    )
    return hashlib.sha256("\0".join(map(described, (*functions, *others))).encode()).hexdigest()


def _places(offsets: Sequence[int]) -> list[str]:
    """Expressions for fields of a block."""
    return [f"block[lane + {offset}]" for offset in offsets]


def _action_reader(equations: Equations, places: Sequence[str]) -> Any:
    """Copies an action from the buffers to these places; bounds are constants of the code."""
    space = equations.action_space
    if isinstance(space, Discrete):
        return _written(f"def made(buffers, env, block, lane): {places[0]} = buffers.discrete[env] + {space.start}.0")
    lines = []
    for k, (place, low, high) in enumerate(zip(places, space.low.tolist(), space.high.tolist(), strict=True)):
        number = f"buffers.continuous[env, {k}]"
        lines.append(f"{place} = {f'min(max({number}, {low!r}), {high!r})' if equations.clip_actions else number}")
    return _written(f"def made(buffers, env, block, lane): {'; '.join(lines)}", inf=math.inf)


def _stepper(equations: Equations, step: Any, action: Sequence[str], noise: Sequence[str]) -> Any:
    """``step`` with the action and the noise that are in these places."""
    chosen = action[0] if len(action) == 1 else f"({', '.join(action)})"
    more, make, end = "", None, "" if equations.rewarded else ", 0.0, False"
    if noise:
        more, make = f", make({', '.join(noise)})", namedtuple("ProcessNoise", equations.process_noise)
    return _written(
        f"def made(constants, state, block, lane): return step(constants, state, {chosen}{more}){end}",
        step=step,
        make=make,
    )


def _drawer(places: Sequence[str], drawn: Mapping[str, Distribution], spreads: Any) -> Any:
    """Draws random numbers to these places; ``spreads`` are numbers, or expressions, for ``Bounds``."""
    lines = ["pass"]
    for place, distribution, (one, other) in zip(places, drawn.values(), spreads, strict=True):
        if isinstance(distribution, Normal):
            lines.append(f"{place} = {one} + {other} * standard_normal(streams, env)")
        else:
            lines.append(f"{place} = uniform(streams, env, {one}, {other} - {one})")
    return _written(
        f"def made(streams, env, block, lane, bounds): {'; '.join(lines)}",
        uniform=uniform,
        standard_normal=standard_normal,
    )


def _reader(make: Any, places: Sequence[str]) -> Any:
    """``make`` of the numbers in these places, written out because numba cannot fill a named tuple in a loop."""
    return _written(f"def made(block, lane): return make({', '.join(places)})", make=make)


def _writer(places: Sequence[str]) -> Any:
    """Writes a tuple's numbers to these places, unless ``keep`` is set."""
    lines = "; ".join(f"{place} = {place} if keep else values[{k}]" for k, place in enumerate(places))
    return _written(f"def made(block, lane, values, keep): {lines}")


def _written(source: str, **names: Any) -> Any:
    """The function ``made`` that a line of code defines, with these names as globals."""
    exec(source, names)
    return njit(**INLINE)(names["made"])
