"""Writes that a crash or a power cut leaves either undone or done."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gym_dr.errors import RunFolderError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file so that a reader, or a restart after a crash, finds the old content or the new, never a part.

    The content is on the disk before it gets its name, and the name before this returns.

    Raises:
        RunFolderError: It cannot be written; the old content is there still.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:  # a second Ctrl-C too must leave nothing behind
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None


def sync_folder(path: Path) -> None:
    """Has the names in a folder written to the disk."""
    if os.name == "nt":
        return  # folders cannot be opened there; the file system keeps a journal of its names
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
