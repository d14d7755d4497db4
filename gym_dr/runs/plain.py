"""Files of a folder that a stranger may have sent: plain ones of a bounded size, no links and no pipes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path

from gym_dr.errors import RunFolderError


def check_plain(root: Path, paths: Iterable[Path], folders: Collection[Path] = ()) -> None:
    """Rejects links and special files, which would redirect or block reads and writes. Missing paths are fine.

    Args:
        root: The folder that the user named; may be a link itself.
        paths: Paths inside it.
        folders: Those of them that are folders.

    Raises:
        RunFolderError: A path is a link, leads through one, or is neither a plain file nor one of the folders.
    """
    real = root.resolve()
    for path in paths:
        whole = path.is_dir() if path in folders else path.is_file()
        place = real / path.relative_to(root)
        if (path.is_symlink() or path.exists()) and not (whole and path.resolve() == place):
            raise RunFolderError(
                f"{path}: expected a plain file or folder of the run, got something else, such as a link. "
                "If you trust the target of the link, copy it into the run folder."
            )


def read_plain(path: Path, most: int) -> bytes:
    """Reads a file of at most ``most`` bytes, if it is no link and no pipe.

    Raises:
        OSError: It is missing, cannot be read, is larger, or is something else.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link")
    # without waiting for the writer of a pipe
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most} bytes")
    return content
