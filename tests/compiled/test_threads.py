"""How threads share work."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit

from gym_dr.compiled import threads as pools
from gym_dr.compiled.flags import KERNEL
from gym_dr.compiled.structs import Job, Struct
from gym_dr.compiled.threads import Threads


class Sum(NamedTuple):
    """A chunk adds its number to every cell, slowly; ``seen`` counts calls by slot."""

    cells: npt.NDArray[np.int64]  # (chunks,)
    seen: npt.NDArray[np.int64]  # (slots,)
    rounds: int


@njit(**KERNEL)
def _count(args, slot, chunk):
    for _ in range(args.rounds):
        args.cells[chunk] += chunk + 1
    args.seen[slot] += 1


@pytest.fixture(scope="module")
def job() -> Job:
    return Job(_count, Struct(Sum(np.zeros(1, np.int64), np.zeros(1, np.int64), 1)).kind, "a test")


def run(job: Job, threads: Threads, chunks: int, *, rounds: int = 10, times: int = 1) -> npt.NDArray[np.int64]:
    """Runs the job; returns the calls by slot."""
    given = Sum(np.zeros(chunks, np.int64), np.zeros(threads.count, np.int64), rounds)
    args = Struct(given)
    for _ in range(times):
        threads.run(job, args, chunks)
    assert given.cells.tolist() == [times * rounds * (chunk + 1) for chunk in range(chunks)]
    return given.seen


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A pool of its own, since others of the process may have users that earlier tests have left."""
    own = pools._Pool()
    monkeypatch.setattr(pools, "_POOL", own)
    yield own
    own.end()


def served() -> int:
    """Threads of the current pool."""
    return sum(thread.is_alive() for thread in pools._POOL.threads)


def ends(expected: int) -> bool:
    """Whether only so many threads are left after a moment."""
    deadline = time.monotonic() + 20
    while served() != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    return served() == expected


@pytest.mark.parametrize("count", [1, 2, 3, 16])
@pytest.mark.parametrize("chunks", [0, 1, 2, 7, 100])
def test_every_chunk_is_taken_once(job: Job, count: int, chunks: int) -> None:
    assert run(job, Threads(count), chunks, times=50).sum() == 50 * chunks


def test_several_threads_take_part_in_long_work(job: Job) -> None:
    threads = Threads(3)
    seen = np.zeros(3, np.int64)
    deadline = time.monotonic() + 60
    while (seen > 0).sum() < 2 and time.monotonic() < deadline:
        seen += run(job, threads, 64, rounds=100_000)
    assert (seen > 0).sum() >= 2


def test_a_second_caller_at_the_same_time_works_alone_and_right(job: Job) -> None:
    threads = [Threads(2) for _ in range(4)]
    callers = [threading.Thread(target=run, args=(job, each, 20), kwargs={"times": 200}) for each in threads]
    failures: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", failures.append)
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not failures


@pytest.mark.usefixtures("pool")
def test_threads_end_with_their_last_user(job: Job) -> None:
    assert ends(0)
    first, second = Threads(2), Threads(3)
    run(job, first, 4)
    run(job, second, 4)
    assert served() == 2  # two besides the caller serve both
    del second
    assert served() == 2
    first.close()
    assert ends(0)
    run(job, Threads(2), 4)  # and begin again


@pytest.mark.usefixtures("pool")
def test_an_interrupt_while_threads_start_leaves_one_for_each_seat(job: Job) -> None:
    start, first, second = threading.Thread.start, Threads(2), Threads(3)

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(job, first, 4)
    run(job, second, 64, times=20)
    assert served() == 2
    first.close()
    second.close()
    assert ends(0)


def test_idle_threads_use_no_processor_time(job: Job) -> None:
    threads = Threads(3)
    run(job, threads, 64, times=20)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1
    run(job, threads, 64, times=20)  # they wake


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_has_threads_of_its_own(job: Job) -> None:
    threads = Threads(2)
    run(job, threads, 64, times=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        run(job, threads, 64, times=20)
        os._exit(served())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    run(job, threads, 64, times=20)
