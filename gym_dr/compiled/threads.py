"""Threads that run machine code in parallel.

These are plain Python threads, since compiled functions release the interpreter lock. Numba's own pool would be shared
with the user's code, and does not survive ``fork``.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

Task = Callable[[], None]
Outbox = queue.SimpleQueue[BaseException | None]  # what a task raised, or None
Inbox = queue.SimpleQueue[tuple[Task, Outbox] | None]  # None ends the thread


def usable_threads() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs tasks on several threads, including the calling one."""

    def __init__(self, threads: int) -> None:
        """Sets the number of threads; they start with the first call of ``run``.

        Args:
            threads: How many tasks run at once.
        """
        self.threads = threads
        self._inboxes: list[Inbox] = []
        self._process = os.getpid()

    def run(self, tasks: list[Task]) -> None:
        """Runs at most ``threads`` tasks and returns when all are done.

        Raises:
            BaseException: What a task raised.
        """
        if len(tasks) > 1:
            self._start()
        outbox: Outbox = queue.SimpleQueue()  # a new one each time, so that an interrupted run leaves nothing behind
        for inbox, task in zip(self._inboxes, tasks[1:], strict=False):
            inbox.put((task, outbox))
        failure = None
        try:
            tasks[0]()
        finally:
            for _ in tasks[1:]:
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
        while len(self._inboxes) < self.threads - 1:
            inbox: Inbox = queue.SimpleQueue()
            thread = threading.Thread(target=_serve, args=(inbox,), name="gym_dr", daemon=True)
            thread.start()
            self._inboxes.append(inbox)


def _serve(inbox: Inbox) -> None:
    """Runs in a worker thread: tasks until None. Holds no reference to its pool, so that it can be collected."""
    while (order := inbox.get()) is not None:
        task, outbox = order
        failure: BaseException | None = None
        try:
            task()
        except BaseException as error:  # passed to the waiting thread
            failure = error
        del order, task  # otherwise an idle thread would keep the environments alive
        outbox.put(failure)
