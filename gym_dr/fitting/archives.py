"""Files of logs: .npz archives, possibly from a stranger, and folders that are written whole or not at all.

An archive holds only numbers and texts, never pickles, and unpacks to at most ``LARGEST`` bytes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import GymDrError, LogError, shortened
from gym_dr.paths import temporary_beside

SUFFIX = ".npz"
KINDS = "biufUS"  # of arrays: numbers and texts
LARGEST = 2**33  # bytes that a log unpacks to
_EXPECTED = f"an {SUFFIX} file, as numpy.savez writes"


# ---- reading ---------------------------------------------------------------------------------------------------------


def archives_in(folder: Path) -> list[Path]:
    """The archives of a folder, sorted by name; hidden and other files are ignored.

    Raises:
        LogError: It has none, or cannot be read.
    """
    with readable(folder, _EXPECTED):
        names = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    found = [path for path in names if path.suffix.lower() == SUFFIX]
    if not found:
        raise LogError(f"{folder}: expected a folder of {SUFFIX} files, one for each episode, got none.")
    return found


def read_archives(paths: Sequence[Path]) -> list[dict[str, npt.NDArray[Any]]]:
    """The arrays of .npz files by name.

    Raises:
        LogError: A file cannot be read, is damaged or holds Python objects, or all together are too large.
    """
    found, size = [], 0
    for path in paths:
        with readable(path, _EXPECTED):
            if path.exists() and not path.is_file():
                raise LogError(f"{path}: expected a plain file, got something else, such as a pipe.")
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                size += sum(member.file_size for member in archive.zip.infolist())
                check_size(size, str(path))
                found.append({name: archive[name] for name in archive.files})
    return found


def check_size(size: int, place: str) -> None:
    """Raises LogError if a log unpacks to too many bytes."""
    if size > LARGEST:
        raise LogError(
            f"{place}: expected a log of at most {LARGEST / 2**30:g} GiB, got {size / 2**30:,.1f} GiB. Give fewer "
            "episodes, or leave out arrays that are not needed."
        )


@contextlib.contextmanager
def readable(path: Path, expected: str) -> Iterator[None]:
    """Raises ``LogError`` whatever error the block raises, since a stranger's file may cause any."""
    try:
        yield
    except GymDrError:
        raise
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # a header may also say a size for which there is no memory
        raise LogError(
            f"{path}: expected {expected}, got one that is damaged or something else: "
            f"{type(error).__name__}: {shortened(str(error))[1:-1]}."
        ) from None


# ---- writing ---------------------------------------------------------------------------------------------------------


def check_new(target: Path) -> None:
    """Raises LogError if a folder exists."""
    if target.exists() or target.is_symlink():
        raise LogError(f"{target}: already exists. Choose another `output`, or remove it.")


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name if the block succeeds; otherwise it is removed. Makes missing parents.

    Raises:
        LogError: The folder exists already, or cannot be written.
    """
    check_new(target)
    temporary = temporary_beside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        check_new(target)
        os.rename(temporary, target)
    except BaseException as error:  # a second Ctrl-C too must leave nothing behind
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, GymDrError):
            raise LogError(f"{target}: cannot be written: {error.strerror or error}.") from None
        raise
