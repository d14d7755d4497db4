"""Plays the episodes of a compiled backend: steps and rollouts on the threads of the process."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.compiled import play as compiled
from gym_dr.compiled.policy import Chooser, SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.compiled.structs import Job, Struct, job_of, kind_of
from gym_dr.compiled.threads import Threads
from gym_dr.envs.backend import CompiledBackend, Divergence, Drawn
from gym_dr.randomization.table import ParamTable

Divergences = Callable[[Mask], list[Divergence]]
# observations (N, size), values (P, N), draw indices (N,), rewards (N,), terminations, truncations, divergences (N,)
Results = tuple[npt.NDArray[Any], Array, Indices, Array, Mask, Mask, Mask | None]
_WHAT = "steps of native environments"
_LARGE = 2**17  # bytes: from here on threads copy results to new arrays


class Play:
    """Steps a compiled backend's sub-environments, and begins their next episodes."""

    def __init__(self, backend: CompiledBackend, table: ParamTable, elapsed: Indices, divergences: Divergences) -> None:
        """Prepares for steps; ``backend.num_threads`` threads share them.

        Args:
            backend: The physics.
            table: The parameters.
            elapsed: Steps so far of the current episodes, ``(N,)``, which are counted here.
            divergences: A method of the owner: describes the current episodes of sub-environments that diverged.
        """
        self._backend, self._stepper, self._table, self._elapsed = backend, backend.stepper, table, elapsed
        self._divergences = weakref.WeakMethod(divergences)  # no cycle: memory is freed as soon as it is dropped
        self.threads = Threads(backend.num_threads)
        num_envs, stepper = self._stepper.num_envs, self._stepper
        most = min(backend.num_threads, num_envs // stepper.least)
        chunks = most * math.ceil(num_envs / (most * stepper.chunk)) if most > 1 else 1
        self._chunks, self._bounds = chunks, np.linspace(0, num_envs, chunks + 1).astype(np.int64)
        self._due: Mask = np.zeros(num_envs, np.bool_)
        self._max_steps, self._unfinished = np.zeros((2, 1), np.int64)
        self._changes = -1
        self._struct: Struct | Any = None
        self._play: compiled.Play | Any = None
        self._rollout: Job | None = None

    def _prepare(self, due: Mask | None, max_steps: int) -> None:
        """Sets all that a call which was interrupted may have left."""
        if self._table.changes != self._changes:
            self._pack()
        self._due[:] = False if due is None else due
        self._play.draws.begun.fill(False)
        self._max_steps[0], self._unfinished[0] = max_steps, 0

    def _pack(self) -> None:
        """Packs the arrays, some of which have been replaced."""
        table, backend = self._table, self._backend
        begun = np.zeros(table.num_envs if backend.begins else 0, np.bool_)
        seen, count = self._stepper.buffers.observations, len(table.names) + 1
        numbers, index = np.zeros((count, table.num_envs)), table.index.copy()
        self._results = seen.copy(), numbers, index, np.zeros((2, table.num_envs), np.bool_)
        self._large = numbers.nbytes > _LARGE
        self._play = compiled.Play(
            *(self._results[0].reshape(-1), *self._results[1:]),
            step=self._stepper.job.address,
            groups=self._stepper.addresses,
            buffers=self._stepper.buffers,
            draws=compiled.Draws._make((*table.arrays(), begun)),
            elapsed=self._elapsed,
            max_steps=self._max_steps,
            due=self._due,
            unfinished=self._unfinished,
            bounds=self._bounds,
            seen=seen.reshape(-1),
            copies=self._large,
        )
        self._struct = Struct(self._play)
        self._step = job_of(compiled.step, self._struct.kind, _WHAT)
        self._changes = table.changes

    def _begin(self, envs: Indices) -> None:
        """Prepares the next episodes of sub-environments that the next step begins."""
        if self._backend.begins:
            self._table.begin(envs, {})
            self._backend.reset(envs)
            self._play.draws.begun[envs] = True
        else:
            self._table.make_ahead(envs)

    def step(self, actions: npt.NDArray[Any], due: Mask | None, max_steps: int) -> Results:
        """Steps all sub-environments, except those in ``due``, which begin an episode."""
        self._prepare(due, max_steps)
        self._backend.set_actions(actions)
        if due is not None:
            self._begin(due.nonzero()[0])
        buffers, table = self._stepper.buffers, self._table
        if self._large:
            observations, numbers, index, flags = map(np.empty_like, self._results)
            self._struct.lead((observations.reshape(-1), numbers, index, flags))
        if self._chunks > 1:
            self.threads.run(self._step, self._struct, self._chunks)
        else:
            self._step.call(self._struct.address, 0, 0)
        finished, diverged = not self._unfinished[0], None
        if not finished:
            diverged = self._backend.finish((buffers.rewards == compiled.UNFINISHED).nonzero()[0])
        if self._large and finished:
            return observations, numbers[:-1], index, numbers[-1], flags[0], flags[1], None
        return (
            buffers.observations.copy(),
            table.current.copy(),
            table.index.copy(),
            buffers.rewards.copy(),
            buffers.terminations.copy(),
            self._elapsed >= max_steps,
            diverged,
        )

    def rollout(
        self,
        policy: SmallPolicy,
        noise: Floats,
        steps: Steps,
        rows: tuple[int, int],
        due: Mask | None,
        max_steps: int,
    ) -> tuple[Drawn, Mask, list[Divergence]]:
        """Plays rows, from the first to the one before the last; those in ``due`` begin an episode in the first.

        Returns:
            The episodes that begin, those of each sub-environment in order; the simulations that diverged, ``(T, N)``,
            and the same for users.
        """
        first, last = rows
        self._prepare(due, max_steps)
        num_envs = len(self._due)
        chooser = Chooser(policy, steps, noise)
        count, blocks = self.threads.count, chooser.blocks
        tasks = np.linspace(0, blocks, min(blocks, count if blocks < 8 * count else 2 * count) + 1).astype(np.int64)
        tasks = tasks if count > 1 else tasks[[0, -1]]
        size = 4 * num_envs, len(self._play.draws.nominal)  # notes are read when they are full
        notes = np.zeros(1, np.int64), *np.empty((2, size[0]), np.int64), np.empty(size)
        following = np.full(len(tasks) - 1, first)
        acting = chooser.acting
        given = compiled.Rollout(
            *(self._play, chooser.job.address, chooser.args.address, steps, acting.starts, acting.actions),
            *(acting.width, tasks, following, last, *notes),
        )
        if self._rollout is None:
            self._rollout = job_of(compiled.rollout, kind_of(given), _WHAT)
        args, begun = Struct(given, self._rollout.kind), []
        diverged, divergences = np.zeros((last - first, num_envs), np.bool_), list[Divergence]()
        self._table.make_ahead(np.arange(num_envs))
        while True:
            self.threads.run(self._rollout, args, len(following))
            made, notes[0][0] = int(notes[0][0]), 0
            begun.append([part[:made].copy() for part in notes[1:]])
            if (following == last).all() and not (steps.rewards[last - 1] == compiled.UNFINISHED).any():
                break
            divergences += self._go_on(steps, following, rows, tasks * acting.width, diverged)
        envs, index, values = (np.concatenate(part) for part in zip(*begun, strict=True))
        return (envs, index, values.T), diverged, divergences

    def _go_on(
        self, steps: Steps, following: Indices, rows: tuple[int, int], bounds: Indices, diverged: Mask
    ) -> list[Divergence]:
        """Does what compiled code cannot, in the tasks that have stopped; fills and returns what has diverged."""
        found, stopped, buffers = list[Divergence](), np.zeros_like(self._due), self._stepper.buffers
        for row, low, high in zip(following.tolist(), bounds[:-1], bounds[1:], strict=True):
            stopped[low:high] = row < rows[1]
            t = row - 1
            envs = low + (steps.rewards[t, low:high] == compiled.UNFINISHED).nonzero()[0]
            if row == rows[0] or not len(envs):
                continue
            failed = self._backend.finish(envs)
            steps.observations[row, envs] = buffers.observations[envs]
            steps.rewards[t, envs], steps.terminated[t, envs] = buffers.rewards[envs], buffers.terminations[envs]
            if failed is not None:
                steps.truncated[t] |= failed
                diverged[t - rows[0]] |= failed
                found += cast(Any, self._divergences())(failed)
            self._due[envs] = steps.terminated[t, envs] | steps.truncated[t, envs]
        if self._backend.begins:
            stopped &= ~self._play.draws.begun
        self._begin((stopped & self._due).nonzero()[0])
        return found
