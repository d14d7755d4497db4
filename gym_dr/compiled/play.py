"""Steps of the episodes of many sub-environments, with a small policy or without, in jobs that threads share.

An environment's compiled step is a job ``step(group, first, last)``, called by its address, so that nothing here is
compiled anew for another environment. A sub-environment whose episode has ended begins the next one in place of a step
(NEXT_STEP), with a draw that has been made ahead.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.compiled import atomics
from gym_dr.compiled.flags import KERNEL
from gym_dr.compiled.steps import Steps

add, call, load = cast(Any, (atomics.add, atomics.call, atomics.load))  # numba supplies the typing context
# reward that the step of a sub-environment leaves if compiled code cannot make it, or has been ended by an error
UNFINISHED = float(np.finfo(np.float64).min)
BEGUN: Final = 2  # in ``StepBuffers.fresh``: the episode has been begun already


class StepBuffers(NamedTuple):
    """Inputs and outputs of the compiled step of N sub-environments, in the environment's own arrays."""

    discrete: Indices  # (N,) actions, counted from 0
    continuous: npt.NDArray[Any]  # (N, actions)
    fresh: npt.NDArray[np.int64]  # (N,) nonzero where the next step begins an episode instead, and gives reward 0
    observations: Floats  # (N, size)
    rewards: Array  # (N,)
    terminations: Mask  # (N,)


class Draws(NamedTuple):
    """Parameters of the current episodes and of those to come; see ``ParamTable``."""

    current: Array  # (P, N)
    nominal: Array  # (P,)
    drawn: Indices  # (D,) parameters that are drawn
    ahead: Array  # (D, N, K) draws made ahead
    first: Indices  # (N,) draw index of the first of them
    depth: Indices  # (1,) how many of K there are
    draw_index: Indices  # (N,) draw index of the current episodes
    held: Indices  # (N,) draw index of all episodes; no rows to count on
    pins: Array  # (P, N) values set by hand, nan for none; no rows if there are none
    begun: Mask  # (N,) next episodes that Python has begun; no rows if it need not


class Play(NamedTuple):
    """What a step of N sub-environments needs, and where to copy its results, new arrays in each step."""

    observations: Floats  # (N * size,)
    numbers: Array  # (P + 1, N) values of parameters, and rewards
    draw_index: Indices  # (N,)
    flags: Mask  # (2, N) terminations and truncations
    step: int  # address of the environment's step
    groups: Indices  # (threads,) addresses of its arguments
    buffers: StepBuffers
    draws: Draws
    elapsed: Indices  # (N,) steps so far of the current episodes
    max_steps: Indices  # (1,) steps after which an episode is truncated
    due: Mask  # (N,) episodes that the next step begins
    unfinished: Indices  # (1,) set where a step is left unfinished
    bounds: Indices  # (chunks + 1,) the sub-environments of each chunk
    seen: Floats  # (N * size,) the observations in ``buffers``
    copies: bool  # whether to fill the results


class Rollout(NamedTuple):
    """What a rollout needs besides."""

    play: Play
    act: int  # address of the policy's job, see ``policy.py``
    policy: int  # address of its arguments
    steps: Steps
    starts: Mask  # (N,) where an observation is the first of an episode
    actions: Floats  # (N, actions) from the policy
    width: int  # sub-environments of a block of the policy
    tasks: Indices  # (tasks + 1,) the blocks of each task
    rows: Indices  # (tasks,) the next row to play
    last: int  # the row after the last
    noted: Indices  # (1,) episodes that have begun so far; of each, in the order of each sub-environment's:
    envs: Indices  # (C,) its sub-environment
    draw_index: Indices  # (C,) its draw index
    values: Array  # (C, P) its parameters


@njit(**KERNEL)
def _has_draw(draws, env):
    """Whether the draw of the next episode has been made."""
    if len(draws.begun) > 0:
        return draws.begun[env]
    index = draws.held[env] if len(draws.held) > 0 else draws.draw_index[env] + 1
    place = index - draws.first[env]
    return len(draws.drawn) == 0 or (place >= 0 and place < draws.depth[0])


@njit(**KERNEL)
def _begin(play, env):
    """Before a step that begins an episode: its parameters."""
    play.elapsed[env] = 0
    play.buffers.fresh[env] = 1
    draws = play.draws
    if len(draws.begun) > 0:
        play.buffers.fresh[env] = BEGUN
        draws.begun[env] = False
        return
    draws.draw_index[env] = draws.held[env] if len(draws.held) > 0 else draws.draw_index[env] + 1
    for k in range(len(draws.nominal)):
        draws.current[k, env] = draws.nominal[k]
    for d in range(len(draws.drawn)):
        draws.current[draws.drawn[d], env] = draws.ahead[d, env, draws.draw_index[env] - draws.first[env]]
    for k in range(len(draws.pins)):
        if not np.isnan(draws.pins[k, env]):
            draws.current[k, env] = draws.pins[k, env]


@njit(**KERNEL)
def _copy(target, source):
    """Loops over whole slices become SIMD: numba knows that their indices are not negative."""
    for i in range(len(source)):
        target[i] = source[i]


@njit(**KERNEL)
def _advance(play, group, first, last):
    """Steps some sub-environments, after those in ``due`` have begun their episodes; returns whether all could be."""
    elapsed, due, rewards = play.elapsed[first:last], play.due[first:last], play.buffers.rewards[first:last]
    for i in range(len(due)):
        elapsed[i] += 0 if due[i] else 1
    for i in range(len(due)):
        rewards[i] = UNFINISHED
    call(play.step, group, first, last)
    finished = True
    for i in range(len(due)):
        finished &= rewards[i] != UNFINISHED
    return finished


@njit(**KERNEL)
def step(play, slot, chunk):
    """A step of the sub-environments of a chunk."""
    first, last = play.bounds[chunk], play.bounds[chunk + 1]
    for env in range(first, last):
        if play.due[env]:
            _begin(play, env)
    if not _advance(play, play.groups[slot], first, last):
        play.unfinished[0] = 1
    if not play.copies:
        return
    buffers, count, size = play.buffers, len(play.draws.nominal), play.buffers.observations.shape[1]
    for k in range(count):
        _copy(play.numbers[k, first:last], play.draws.current[k, first:last])
    _copy(play.numbers[count, first:last], buffers.rewards[first:last])
    _copy(play.observations[first * size : last * size], play.seen[first * size : last * size])
    _copy(play.draw_index[first:last], play.draws.draw_index[first:last])
    _copy(play.flags[0, first:last], buffers.terminations[first:last])
    elapsed, truncations, most = play.elapsed[first:last], play.flags[1, first:last], play.max_steps[0]
    for i in range(len(elapsed)):
        truncations[i] = elapsed[i] >= most


@njit(**KERNEL)
def _note(args, env):
    """Notes an episode that begins."""
    place = add(args.noted.ctypes.data, 1)
    draws = args.play.draws
    args.envs[place], args.draw_index[place] = env, draws.draw_index[env]
    for k in range(len(draws.current)):
        args.values[place, k] = draws.current[k, env]


@njit(**KERNEL)
def rollout(args, slot, task):
    """All rows of a task's sub-environments.

    It stops where a draw is missing or notes are full, and after a step that is unfinished.
    """
    play, steps, width = args.play, args.steps, args.width
    num_envs = len(play.due)
    blocks = (num_envs + width - 1) // width
    first, last = args.tasks[task] * width, min(args.tasks[task + 1] * width, num_envs)
    unfinished = False
    while args.rows[task] < args.last and not unfinished:
        t = args.rows[task]
        if load(args.noted.ctypes.data) + num_envs > len(args.envs):
            return
        for env in range(first, last):
            if play.due[env] and not _has_draw(play.draws, env):
                return
        for env in range(first, last):
            args.starts[env] = play.elapsed[env] == 0 and not play.due[env]
        for block in range(args.tasks[task], args.tasks[task + 1]):
            call(args.act, args.policy, slot, t * blocks + block)
        for env in range(first, last):
            play.buffers.discrete[env] = steps.discrete[t, env]
            for j in range(args.actions.shape[1]):
                play.buffers.continuous[env, j] = args.actions[env, j]
            if play.due[env]:
                _begin(play, env)
                _note(args, env)
        unfinished = not _advance(play, play.groups[slot], first, last)
        for env in range(first, last):
            for j in range(play.buffers.observations.shape[1]):
                steps.observations[t + 1, env, j] = play.buffers.observations[env, j]
            steps.rewards[t, env] = play.buffers.rewards[env]
            steps.terminated[t, env] = play.buffers.terminations[env]
            steps.truncated[t, env] = play.elapsed[env] >= play.max_steps[0]
            play.due[env] = steps.terminated[t, env] or steps.truncated[t, env]
        args.rows[task] = t + 1
