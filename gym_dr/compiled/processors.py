"""How many threads there may be; without anything heavy."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

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
