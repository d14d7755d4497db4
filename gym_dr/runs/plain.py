"""Reads untrusted folders: only plain files of a bounded size."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

from gym_dr.errors import RunFolderError


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
