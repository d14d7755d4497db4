"""One pool of threads for the process, which wait in machine code and share the chunks of a job.

The threads are plain Python threads in a compiled loop that holds no interpreter lock. They spin for some microseconds,
then sleep. A caller opens its job, works on chunks itself, closes the job when no chunk is left, and waits for those
who have joined; whoever comes late does nothing. So a job never waits for a thread that the system does not schedule,
and gives the same result with any number of threads. A caller that finds the pool busy does all its chunks alone.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.compiled import atomics
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL
from gym_dr.compiled.structs import Job, Struct

# numba supplies their first argument, the typing context
acquire, add, call, exchange, load, pause, release = cast(
    Any, (atomics.acquire, atomics.add, atomics.call, atomics.exchange, atomics.load, atomics.pause, atomics.release)
)
SEATS = 128  # threads besides the caller
_SPINS = 1000  # pauses before a thread sleeps: 10 to 40 us

# bytes from the start of the pool; words that different threads write are on cache lines of their own
_LINE = 64
_GENERATION, _OPEN, _BUSY, _ACTIVE, _NEXT, _SLOTS, _WAITING = (_LINE * k for k in range(7))
_WANTED = _LINE * 7  # these change only while no job is open
_JOB, _ARGS, _CHUNKS, _LIMIT, _OWN_LOCK = (_WANTED + 8 * k for k in range(1, 6))
_LOCKS = _LINE * 8  # a lock for each seat
_ASLEEP = _LOCKS + 8 * SEATS  # whether the thread of a seat sleeps, or is about to


# ---- machine code ----------------------------------------------------------------------------------------------------


@njit(**KERNEL)
def _work(pool, slot):
    """Takes chunks of the open job until none is left."""
    job, args, chunks = load(pool + _JOB), load(pool + _ARGS), load(pool + _CHUNKS)
    chunk = add(pool + _NEXT, 1)
    while chunk < chunks:
        call(job, args, slot, chunk)
        chunk = add(pool + _NEXT, 1)


@njit(**KERNEL)
def _sleep(flag, lock, watched, seen):
    """Sleeps unless the watched word has changed, or until ``_wake``."""
    exchange(flag, 1)
    if load(watched) == seen or exchange(flag, 0) == 0:  # unchanged, or somebody is waking this thread already
        acquire(lock)


@njit(**KERNEL)
def _wake(flag, lock):
    if load(flag) != 0 and exchange(flag, 0) != 0:
        release(lock)


@njit(**KERNEL)
def _wait(flag, lock, watched, seen):
    """Waits while the watched word has this value: spins, then sleeps."""
    spins = 0
    while load(watched) == seen:
        pause()
        spins += 1
        if spins == _SPINS:
            _sleep(flag, lock, watched, seen)
            spins = 0


@njit(**KERNEL)
def run(pool, job, args, chunks, limit):
    """Calls ``job(args, slot, chunk)`` for each chunk, on at most ``limit`` threads, this one included."""
    helpers = min(limit, chunks) - 1
    if helpers < 1 or exchange(pool + _BUSY, 1) != 0:
        for chunk in range(chunks):
            call(job, args, 0, chunk)
        return
    exchange(pool + _JOB, job)
    exchange(pool + _ARGS, args)
    exchange(pool + _CHUNKS, chunks)
    exchange(pool + _LIMIT, limit)
    exchange(pool + _NEXT, 0)
    exchange(pool + _SLOTS, 1)
    exchange(pool + _OPEN, 1)
    add(pool + _GENERATION, 1)
    for seat in range(min(helpers, load(pool + _WANTED))):
        _wake(pool + _ASLEEP + 8 * seat, load(pool + _LOCKS + 8 * seat))
    _work(pool, 0)
    exchange(pool + _OPEN, 0)
    active = load(pool + _ACTIVE)
    while active != 0:
        _wait(pool + _WAITING, load(pool + _OWN_LOCK), pool + _ACTIVE, active)
        active = load(pool + _ACTIVE)
    exchange(pool + _BUSY, 0)


@njit(**ENTRY)
def _run(pool, job, args, chunks, limit):
    """``run``, callable from Python."""
    run(pool, job, args, chunks, limit)


@njit(**ENTRY)
def _serve(pool, seat):
    """The life of a thread."""
    seen = 0
    while load(pool + _WANTED) > seat:
        if load(pool + _OPEN) != 0:
            add(pool + _ACTIVE, 1)
            if load(pool + _OPEN) != 0:
                slot = add(pool + _SLOTS, 1)
                if slot < load(pool + _LIMIT):
                    _work(pool, slot)
            add(pool + _ACTIVE, -1)
            _wake(pool + _WAITING, load(pool + _OWN_LOCK))
        _wait(pool + _ASLEEP + 8 * seat, load(pool + _LOCKS + 8 * seat), pool + _GENERATION, seen)
        seen = load(pool + _GENERATION)


@njit(**ENTRY)
def _dismiss(pool):
    """Ends all threads, which may take a moment."""
    count = exchange(pool + _WANTED, 0)
    add(pool + _GENERATION, 1)
    for seat in range(count):
        _wake(pool + _ASLEEP + 8 * seat, load(pool + _LOCKS + 8 * seat))


for _function in (_run, _serve, _dismiss):
    cache_on_disk(_function, "threads")


# ---- the pool --------------------------------------------------------------------------------------------------------

_ALLOCATE = ctypes.pythonapi.PyThread_allocate_lock
_ALLOCATE.restype = ctypes.c_void_p


class _Pool:
    """The threads of this process: as many as the largest user has asked for, until the last user leaves."""

    def __init__(self) -> None:
        memory: npt.NDArray[np.int64] = np.zeros((_ASLEEP + 8 * SEATS + _LINE) // 8, np.int64)
        self.words = memory[-memory.ctypes.data % _LINE // 8 :]
        self.address = int(self.words.ctypes.data)
        self.users: set[int] = set()
        self.threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def grow(self, count: int) -> None:
        """Makes sure that ``count`` threads wait for work."""
        if self.words[_WANTED // 8] >= count:
            return
        with self._lock:
            if not self.words[_WANTED // 8]:
                self._join()  # those that were dismissed
                self.threads.clear()
            count = min(count, SEATS)
            for place in (_OWN_LOCK, *range(_LOCKS, _LOCKS + 8 * count, 8)):
                if not self.words[place // 8]:
                    self.words[place // 8] = _new_lock()
            for seat in range(len(self.threads), count):  # an interrupt may come anywhere: a seat is for one thread
                serve = cast(Any, _serve), (self.address, seat)
                self.threads.append(threading.Thread(target=serve[0], args=serve[1], name="gym_dr", daemon=True))
                self.words[_WANTED // 8] = seat + 1
                self.threads[seat].start()

    def leave(self, user: int) -> None:
        """Ends the threads if this was the last user; called by the garbage collector, so it waits for nothing."""
        self.users.discard(user)
        if not self.users and self.threads:
            cast(Any, _dismiss)(self.address)

    def forget(self) -> None:
        """Begins anew after a fork, in a process that has none of the threads."""
        self.words[:] = 0
        self.threads = []
        self._lock = threading.Lock()

    def end(self) -> None:
        """Ends the threads before the interpreter and its machine code go."""
        if self.threads:
            cast(Any, _dismiss)(self.address)
            self._join()

    def _join(self) -> None:
        for thread in self.threads:
            if thread.is_alive():  # it is not if its start was interrupted
                thread.join()


def _new_lock() -> int:
    """A lock of Python's, already held: whoever acquires it waits for the next release."""
    lock = int(_ALLOCATE())
    ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
    return lock


_POOL = _Pool()
atexit.register(_POOL.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forget)


class Threads:
    """What one user, such as an environment, may use of the process's threads.

    Attributes:
        count: How many at once, the calling thread included.
        pool: Address of the pool, for compiled code that calls ``run``.
    """

    def __init__(self, count: int) -> None:
        """Starts no thread yet."""
        self.count, self.pool = count, _POOL.address
        self.close: Callable[[], object] = lambda: None
        if count > 1:
            _POOL.users.add(id(self))
            self.close = weakref.finalize(self, _POOL.leave, id(self))

    def start(self) -> None:
        """Makes sure that the threads wait for work; before each call of compiled code that calls ``run``."""
        if self.count > 1:
            _POOL.grow(self.count - 1)

    def run(self, job: Job, args: Struct, chunks: int) -> None:
        """Calls a job for each chunk, without the interpreter lock."""
        if chunks > 1 and self.count > 1:
            self.start()
            cast(Any, _run)(self.pool, job.address, args.address, chunks, self.count)
        else:
            for chunk in range(chunks):
                job(args, 0, chunk)
