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

from gym_dr.errors import BusyFolderError, RunFolderError
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.plain import check_plain

LOCK = ".lock"
OWNER = ".owner.json"  # describes the process that holds the lock; stays behind if that is killed
GRACE = 10.0  # seconds for the forked workers of a killed process to end


class FolderLock:
    """The lock of one run folder. The operating system releases it when the process ends, even if it is killed."""

    def __init__(self, folder: Path) -> None:
        """Creates the object; nothing is read or written yet."""
        self.folder = folder
        self._lock = FileLock(folder / LOCK)
        self._identity: tuple[int, int] | None = None  # of the lock's file, while it is held

    def acquire(self) -> str:
        """Takes the lock.

        Returns:
            A description of the previous owner if it was killed; otherwise empty.

        Raises:
            BusyFolderError: Another process holds it.
            RunFolderError: The folder cannot be written, or the lock's files are links.
        """
        check_plain(self.folder, [self.folder / LOCK, self.folder / OWNER])
        try:
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                if not _has_ended(self._read_owner()):
                    raise
                self._lock.acquire(timeout=GRACE)  # its workers hold the inherited lock a little longer
            killed = self._read_owner()
            self._identity = identity(self.folder / LOCK)
            mine = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            write_atomically(self.folder / OWNER, json.dumps(mine).encode())
        except Timeout:
            raise BusyFolderError(
                f"{self.folder}: is in use by {_describe(self._read_owner())}. Wait for it to end, or stop it."
            ) from None
        except RunFolderError:
            self.release()
            raise
        except OSError as error:
            raise RunFolderError(f"{self.folder}: cannot be written: {error.strerror or error}.") from None
        return _describe(killed) if killed else ""

    @contextlib.contextmanager
    def held(self) -> Iterator[str]:
        """Holds the lock in the block, which gets what ``acquire`` returns."""
        killed = self.acquire()
        try:
            yield killed
        finally:
            self.release()

    def release(self) -> None:
        """Releases the lock; its file stays, since without it two other processes could hold the lock at once."""
        if self._identity == identity(self.folder / LOCK):
            with contextlib.suppress(OSError):
                (self.folder / OWNER).unlink(missing_ok=True)
        self._identity = None
        self._lock.release()

    def check(self) -> None:
        """Checks that the lock is still the folder's.

        Raises:
            RunFolderError: The folder was removed or replaced.
        """
        if self._identity is not None and self._identity != identity(self.folder / LOCK):
            raise RunFolderError(
                f"{self.folder}: was removed or replaced during the run; nothing more is written there."
            )

    def _read_owner(self) -> dict[str, Any]:
        try:
            with open(self.folder / OWNER, "rb") as file:
                owner = json.loads(file.read(4096))
        except (OSError, ValueError, RecursionError):  # none, or not written by this module
            return {}
        return owner if isinstance(owner, dict) else {}


def identity(path: Path) -> tuple[int, int] | None:
    """Identifies a file or folder even if another one takes its name; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
