"""Locks a folder, so that one process at a time writes into it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gym_dr.errors import BusyFolderError, RunFolderError
from gym_dr.runs.durable import EMPTY, is_ours, os_errors
from gym_dr.runs.plain import refuse_links

LOCK = ".lock"
GRACE = 3.0  # seconds for the forked workers of a killed process, which hold its lock, to end


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks a folder in the block; the operating system releases the lock of a process that is killed.

    The lock's file stays: if it were removed, two other processes could hold the lock at once.

    Raises:
        BusyFolderError: Another process holds the lock.
        RunFolderError: The folder cannot be written, or the lock's file is a link or holds something.
    """
    refuse_links([folder / LOCK])
    lock = FileLock(folder / LOCK)
    with os_errors(folder):
        if not is_ours(folder / LOCK, EMPTY):  # locking would empty it
            raise RunFolderError(f"{folder / LOCK}: expected an empty file, got another program's. Move it.")
        try:
            lock.acquire(timeout=GRACE)
        except Timeout:
            message = f"{folder}: is in use by another process. Wait for it to end, or stop it."
            raise BusyFolderError(message) from None
    try:
        yield
    finally:
        lock.release()
