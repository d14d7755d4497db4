"""A compiled step behind a plain Python interface: threads and a single call into machine code."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Indices
from gym_dr.compiled.pointers import Address, entry_point
from gym_dr.compiled.processors import usable_threads
from gym_dr.compiled.rollout import StepBuffers
from gym_dr.compiled.rollout import rollout as play_rollout
from gym_dr.envs.box2d.solver.layout import LANES

ENVIRONMENTS_A_THREAD = 128  # with fewer, another thread costs more than it saves


def threads_for(num_envs: int, num_threads: int | None) -> int:
    """How many threads step ``num_envs`` sub-environments, at most ``num_threads``."""
    if num_threads is not None:
        return min(num_threads, max(1, num_envs // LANES))
    return min(usable_threads(), max(1, num_envs // ENVIRONMENTS_A_THREAD))


Job = Callable[[], None]
Outbox = queue.SimpleQueue[BaseException | None]  # what a job raised, or None
Inbox = queue.SimpleQueue[tuple[Job, Outbox] | None]  # None ends the thread


class Threads:
    """Runs jobs on several threads, including the calling one."""

    def __init__(self, count: int) -> None:
        """Sets the number of threads; they start with the first call of ``run``.

        Args:
            count: How many jobs run at once.
        """
        self.count = count
        self._inboxes: list[Inbox] = []
        self._process = os.getpid()

    def run(self, jobs: list[Job]) -> None:
        """Runs at most ``count`` jobs and returns when all are done.

        Raises:
            BaseException: What a job raised.
        """
        if len(jobs) > 1:
            self._start()
        outbox: Outbox = queue.SimpleQueue()  # a new one each time, so that an interrupted run leaves nothing behind
        for inbox, job in zip(self._inboxes, jobs[1:], strict=False):
            inbox.put((job, outbox))
        failure = None
        try:
            jobs[0]()
        finally:
            for _ in jobs[1:]:
                failure = outbox.get() or failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Ends the threads."""
        if self._process == os.getpid():
            for inbox in self._inboxes:
                inbox.put(None)
        self._inboxes = []

    def _start(self) -> None:
        if self._process != os.getpid():  # threads do not survive a fork
            self._inboxes = []
            self._process = os.getpid()
        while len(self._inboxes) < self.count - 1:
            inbox: Inbox = queue.SimpleQueue()
            thread = threading.Thread(target=_serve, args=(inbox,), name="gym_dr", daemon=True)
            thread.start()
            self._inboxes.append(inbox)


def _serve(inbox: Inbox) -> None:
    """Runs in a thread: jobs until None. Holds no reference to ``Threads``, so that they can be collected."""
    while (order := inbox.get()) is not None:
        job, outbox = order
        failure: BaseException | None = None
        try:
            job()
        except BaseException as error:  # passed to the waiting thread
            failure = error
        del order, job  # otherwise an idle thread would keep the environments alive
        outbox.put(failure)


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
