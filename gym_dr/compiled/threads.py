"""Threads that run machine code in parallel.

These are plain Python threads, since compiled functions release the interpreter lock. Numba's own pool would be shared
with the user's code, and does not survive ``fork``.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

Job = Callable[[], None]
Outbox = queue.SimpleQueue[BaseException | None]  # what a job raised, or None
Inbox = queue.SimpleQueue[tuple[Job, Outbox] | None]  # None ends the thread

_given: ContextVar[int | None] = ContextVar("num_threads", default=None)


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Makes ``count`` the result of ``usable_threads`` in the block; None changes nothing."""
    before = _given.set(_given.get() if count is None else count)
    try:
        yield
    finally:
        _given.reset(before)


def usable_threads(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Processors that this process may run on, and that its container may use at once; see also ``using_threads``.

    Args:
        groups: The folder of Linux's control groups, of version 1 or 2.
    """
    if (given := _given.get()) is not None:
        return given
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    files = map(groups.joinpath, ("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
    quota = " ".join(file.read_text() for file in files if file.is_file()).split()  # microseconds, of this many
    if len(quota) == 2 and quota[0] not in ("max", "-1"):
        count = min(count, -(-int(quota[0]) // int(quota[1])))
    return count


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
