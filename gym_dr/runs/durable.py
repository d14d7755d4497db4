"""The files of a folder that others may have changed: atomic writes, plain reads, locks, and errors of the system."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gym_dr.errors import BusyFolderError, GymDrError, RunFolderError
from gym_dr.paths import UNFINISHED, temporary_beside

HEAD = 4096  # bytes of a file that tell what wrote it
EMPTY = b"gym_dr: nothing"  # no file holds it, so only an empty one is ours
LOCK = ".lock"
GRACE = 3.0  # seconds for the forked workers of a killed process, which hold its lock, to end


@contextlib.contextmanager
def os_errors(path: Path, verb: str = "written") -> Iterator[None]:
    """Raises operating system errors as ``RunFolderError`` with the path; gym_dr's own errors pass unchanged.

    Args:
        path: The file or folder.
        verb: Completes the message "cannot be ...": "written", "read" or "removed".
    """
    try:
        yield
    except GymDrError:
        raise
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be {verb}: {error.strerror or error}.") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file atomically: readers, and restarts after a crash, find the old content or the new, never a mixture.

    The content is on the disk before the file gets its name, and the name is on the disk before the function returns.

    Raises:
        RunFolderError: The file cannot be written; its old content is intact.
    """
    temporary = temporary_beside(path)
    with os_errors(path):
        try:
            with open(temporary, "xb") as file:  # follows no link
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        except BaseException:  # not even a second Ctrl-C may leave the file behind
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def remove_unfinished(*folders: Path) -> None:
    """Removes half-written files of killed processes."""
    for folder in folders:
        for path in folder.glob(f".*{UNFINISHED}"):
            path.unlink(missing_ok=True)


def is_ours(path: Path, mark: bytes) -> bool:
    """Whether gym_dr may replace or delete a file: it wrote ``mark`` at the beginning, or nothing is there to lose."""
    if not path.is_file():
        return not os.path.lexists(path)
    with open(path, "rb") as file:
        head = file.read(HEAD)
    return mark in head or not head.strip(b"\0")  # a power cut may leave zeros


def check_output(path: Path, mark: bytes = b"") -> None:
    """Checks that a file can be written, before the work that ends in it; leaves nothing behind.

    Args:
        path: The file.
        mark: Bytes near its beginning; an existing file without them, which gym_dr did not write, is not replaced.

    Raises:
        RunFolderError: It cannot be written.
    """
    with os_errors(path):
        if not is_ours(path, mark):
            raise RunFolderError(f"{path}: already exists and is no file of gym_dr. Move it, or choose another place.")
        temporary = temporary_beside(path)
        temporary.touch(exist_ok=False)
        temporary.unlink()


def sync_folder(path: Path) -> None:
    """Flushes the names in a folder to the disk."""
    if os.name == "nt":
        return  # Windows cannot open folders; its file system journals names
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_links(paths: Iterable[Path]) -> None:
    """Refuses links, which would redirect writes.

    Raises:
        RunFolderError: A path is a link.
    """
    for path in paths:
        if path.is_symlink():
            raise RunFolderError(
                f"{path}: expected a plain file or folder, got a link. If you trust its target, copy that here."
            )


def read_plain(path: Path, most: int) -> bytes:
    """Reads a plain file of at most ``most`` bytes: no link, and no pipe, which would block.

    Raises:
        OSError: It is missing, cannot be read, is larger, or is not a plain file.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError(errno.EINVAL, "it is not a plain file")
    if path.stat().st_size > most:
        raise OSError(errno.EFBIG, f"it is larger than {most} bytes")
    with open(path, "rb") as file:
        return file.read(most)


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
