"""A compiled step behind a plain Python interface: threads and a single call into machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Indices
from gym_dr.compiled.pointers import Address, entry_point
from gym_dr.compiled.rollout import StepBuffers
from gym_dr.compiled.rollout import rollout as play_rollout
from gym_dr.compiled.threads import Threads, usable_threads
from gym_dr.envs.box2d.solver.layout import LANES

ENVIRONMENTS_A_THREAD = 128  # with fewer, another thread costs more than it saves


def threads_for(num_envs: int, num_threads: int | None) -> int:
    """How many threads step ``num_envs`` sub-environments, at most ``num_threads``."""
    if num_threads is not None:
        return min(num_threads, max(1, num_envs // LANES))
    return min(usable_threads(), max(1, num_envs // ENVIRONMENTS_A_THREAD))


class Stepper:
    """Steps sub-environments; a step may begin an episode instead."""

    def __init__(self, step: Any, groups: Sequence[Any], buffers: StepBuffers) -> None:
        """Compiles the step, or loads it from the cache.

        Args:
            step: Compiled ``step(group, envs, first, last)``.
            groups: Everything that a step reads and writes, one for each thread, with its own scratch memory.
            buffers: Those of ``groups``.
        """
        self._groups = groups
        self._fresh: npt.NDArray[np.int64] = buffers.fresh
        self._threads = Threads(len(groups))
        step(groups[0], np.zeros(0, np.int64), 0, 0)  # compiles
        self._step = entry_point(step)
        self._rollout = partial(play_rollout, Address(step), groups[0], buffers)
        self._all: Indices = np.arange(len(buffers.fresh))
        self._begun: Indices | None = None  # marked, but not yet stepped

    def begin(self, envs: Indices) -> None:
        """Marks sub-environments so that their next step begins an episode with the current parameters."""
        self._fresh[envs], self._begun = 1, envs

    def finish(self) -> None:
        """Makes the steps that begin episodes and are still due."""
        if self._begun is not None:
            self._run(self._begun)

    def step(self) -> None:
        """Steps all sub-environments with their actions."""
        self._run(self._all)

    def rollout(self, *arguments: Any) -> int:
        """Plays many steps of all sub-environments on the calling thread, see ``PlayRollout``."""
        self._begun = None
        return int(self._rollout(*arguments[:-1]))  # the environments to skip are marked

    def _run(self, envs: Indices) -> None:
        """Steps ``envs``, each once."""
        self._begun = None
        if self._threads.count == 1:
            self._step(self._groups[0], envs, 0, len(envs))
            return
        # whole pairs of blocks for each thread
        share = -(-len(envs) // self._threads.count)
        share += -share % (2 * LANES)
        jobs: list[Callable[[], None]] = [
            partial(self._step, group, envs, first, min(first + share, len(envs)))
            for first, group in zip(range(0, len(envs), share), self._groups, strict=False)
        ]
        self._threads.run(jobs)

    def close(self) -> None:
        """Ends the threads."""
        self._threads.close()
