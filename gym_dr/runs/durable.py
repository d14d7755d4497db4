"""Atomic writes, and reporting of operating system errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gym_dr.errors import GymDrError, RunFolderError


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with os_errors(path):
        try:
            temporary.unlink(missing_ok=True)  # of a killed process, or a stranger's link
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
        for path in folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Flushes the names in a folder to the disk."""
    if os.name == "nt":
        return  # Windows cannot open folders; its file system journals names
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
