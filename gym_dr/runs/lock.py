"""The lock of a run folder, which one process at a time may write into."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gym_dr.errors import BusyFolderError
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.plain import refuse_links

LOCK = ".lock"
OWNER = ".owner.json"  # describes the process that holds the lock; stays behind if that is killed
GRACE = 10.0  # seconds for the forked workers of a killed process to end


class FolderLock:
    """The lock of one run folder. The operating system releases it when the process ends, even if it is killed."""

    def __init__(self, folder: Path) -> None:
        """Creates the object; nothing is read or written yet."""
        self.folder = folder
        self._lock = FileLock(folder / LOCK)

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
            BusyFolderError: Another process holds it.
            RunFolderError: The folder cannot be written, or the lock's files are links.
        """
        refuse_links([self.folder / LOCK, self.folder / OWNER])
        with os_errors(self.folder):
            try:
                # the workers of a killed process hold the lock that they inherited a little longer
                self._lock.acquire(timeout=GRACE if _has_ended(self._owner()) else 0)
            except Timeout:
                raise BusyFolderError(
                    f"{self.folder}: is in use by {_describe(self._owner())}. Wait for it to end, or stop it."
                ) from None
            try:
                mine = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
                write_atomically(self.folder / OWNER, json.dumps(mine).encode())
            except BaseException:
                self.release()
                raise

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock in the block; see ``acquire``."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Releases the lock; its file stays, since without it two other processes could hold the lock at once."""
        with contextlib.suppress(OSError):
            (self.folder / OWNER).unlink(missing_ok=True)
        self._lock.release()

    def _owner(self) -> dict[str, Any]:
        try:
            with open(self.folder / OWNER, "rb") as file:
                owner = json.loads(file.read(4096))
        except (OSError, ValueError, RecursionError):  # none, or not written by this module
            return {}
        return owner if isinstance(owner, dict) else {}


def _has_ended(owner: dict[str, Any]) -> bool:
    """Whether the owner was a process on this machine that no longer exists."""
    if os.name == "nt" or owner.get("host") != socket.gethostname() or not isinstance(owner.get("pid"), int):
        return False  # Windows has no signal 0
    try:
        os.kill(owner["pid"], 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, ProcessLookupError)
    return False


def _describe(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    pid, host, since = (str(owner.get(name, "?"))[:80] for name in ("pid", "host", "since"))
    text = f"process {pid} on {host} since {since}"
    return "".join(letter if letter.isprintable() else "?" for letter in text)  # a file may hold anything
