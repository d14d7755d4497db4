"""Files of logs: .npz archives that a stranger may have sent, and folders that are written whole or not at all.

An archive holds numbers and texts only, never pickles, and is measured by its headers before anything is loaded.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gym_dr.errors import GymDrError, LogError, shortened
from gym_dr.wording import spelled

SUFFIX = ".npz"
NOTES = (".md", ".txt", ".json", ".toml", ".yaml", ".yml")  # files beside the archives of a folder that are no data
KINDS = "biufUS"  # of arrays: numbers and texts

_MEMBER = ".npy"  # ends the name of an array in an archive
_NUMBER = 8  # bytes of a number, once it has been converted
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


# ---- reading ---------------------------------------------------------------------------------------------------------


def archives_in(folder: Path) -> list[Path]:
    """The archives of a folder, sorted by name. Hidden files and notes (``NOTES``) may lie beside them.

    Raises:
        LogError: It has none, holds something else, or cannot be read.
    """
    with _readable(folder):
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    found = [path for path in paths if path.suffix.lower() == SUFFIX]
    others = [path.name for path in paths if path not in found and path.suffix.lower() not in NOTES]
    if not found:
        held = f"{shortened(others[:5])}" if others else "none"
        raise LogError(f"{folder}: expected a folder of {SUFFIX} files, one for each episode, got {held}.")
    if others:
        raise LogError(
            f"{folder}: expected only {SUFFIX} files, one for each episode, got {others[0]!r} too. Move it elsewhere."
        )
    for path in found:
        if path.is_symlink() or not path.is_file():
            raise LogError(
                f"{path}: expected a plain file, got something else, such as a link. Copy its target into the folder, "
                "or name the file itself."
            )
    return found


def read_archives(paths: Sequence[Path]) -> list[dict[str, npt.NDArray[Any]]]:
    """The arrays of .npz files by name.

    Raises:
        LogError: A file cannot be read, is damaged, or holds something else than numbers and texts, or all do not fit
            into memory.
    """
    place = str(paths[0]) if len(paths) == 1 else f"{paths[0].parent}"
    check_memory(sum(map(_needed, paths)), place)
    return [_read(path) for path in paths]


def free_memory() -> int:
    """Bytes that may be used, without what others would have to give up."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(free, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)  # caches can be evicted
    except (AttributeError, ValueError, OSError):  # not available on this system
        return 2**36


def check_memory(needed: int, place: str) -> None:
    """Checks that ``needed`` bytes fit into free memory.

    Raises:
        LogError: They do not.
    """
    free = free_memory()
    if needed > free:
        raise LogError(
            f"{place}: expected a log that fits into memory, got one that needs {needed / 2**30:,.1f} GiB; "
            f"{free / 2**30:.1f} GiB are free. Give fewer episodes, or leave out what is not needed."
        )


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raises ``LogError`` if the block cannot read the file or folder; any code may fail on what a stranger sent."""
    try:
        yield
    except (GymDrError, MemoryError):
        raise
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except Exception as error:
        raise LogError(
            f"{path}: expected an {SUFFIX} file, as numpy.savez writes, got one that is damaged or something else: "
            f"{shortened(str(error))[1:-1]}."
        ) from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive; does not wait for the writer of a pipe.

    Raises:
        LogError: It is no plain file, or the block cannot read it.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with _readable(path), open(os.open(path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise LogError(f"{path}: expected a plain file, got something else, such as a pipe.")
        check_memory(about.st_size, str(path))
        with zipfile.ZipFile(file) as archive:
            yield archive


def _members(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """The arrays of an archive.

    Raises:
        LogError: It holds something else, or an array twice.
    """
    members = archive.infolist()
    for name, count in Counter(member.filename for member in members).items():
        if count > 1 or not name.endswith(_MEMBER):
            what = "two of that name" if count > 1 else "something else"
            raise LogError(f"{path}: {shortened(name)}: expected an array, got {what}. Write it with numpy.savez.")
    return members


def _check_header(file: Any, member: zipfile.ZipInfo, path: Path) -> int:
    """The bytes that an array needs once it is loaded and converted.

    Raises:
        LogError: It holds something else than numbers and texts, or is not as long as it says.
    """
    name = member.filename.removesuffix(_MEMBER)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise LogError(f"{path}: {shortened(name)}: expected an array of numbers, got version {version} of the format.")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise LogError(
            f"{path}: {shortened(name)}: expected numbers, got Python objects, which only a pickle could hold; pickles "
            "are not loaded. Arrays of rows with different lengths become objects: write one file for each episode."
        )
    if dtype.kind not in KINDS:
        raise LogError(f"{path}: {shortened(name)}: expected numbers, got {shortened(str(dtype))[1:-1]}.")
    size = math.prod(shape)
    if size * dtype.itemsize != member.file_size - file.tell():
        raise LogError(
            f"{path}: {shortened(name)}: expected {size * dtype.itemsize:,} bytes for an array of shape {shape}, got "
            f"{member.file_size - file.tell():,}. The file is damaged; write it again."
        )
    return size * (dtype.itemsize + _NUMBER)


def _needed(path: Path) -> int:
    """The bytes that a file's arrays need, by their headers."""
    total = 0
    with _opened(path) as archive:
        for member in _members(archive, path):
            with archive.open(member) as file:
                total += _check_header(file, member, path)
    return total


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    with _opened(path) as archive:
        for member in _members(archive, path):
            with archive.open(member) as file:
                _check_header(file, member, path)  # again: another file may have this name by now
            with archive.open(member) as file:
                found[member.filename.removesuffix(_MEMBER)] = np.lib.format.read_array(file, allow_pickle=False)
                file.read()  # to the end, where the checksum is
    return found


# ---- writing ---------------------------------------------------------------------------------------------------------


def check_new(target: Path, *, makes_parents: bool = False) -> None:
    """Checks that a folder can be made, and unless it makes them that the folders around it exist.

    Raises:
        LogError: It exists, or the folder around it does not.
    """
    if target.exists() or target.is_symlink():
        raise LogError(f"{target}: already exists. Choose another {spelled('output')}, or remove it.")
    if not makes_parents and not target.absolute().parent.is_dir():
        raise LogError(f"{target}: there is no folder {target.absolute().parent} to write it into.")


@contextlib.contextmanager
def new_folder(target: Path, *, makes_parents: bool = False) -> Iterator[Path]:
    """A folder to fill, which gets its name when the block succeeds; otherwise nothing of it remains.

    Args:
        target: Its path.
        makes_parents: Whether to make missing folders around it.

    Raises:
        LogError: The folder exists already, or cannot be written.
    """
    check_new(target, makes_parents=makes_parents)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if makes_parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        if temporary.is_dir() and not temporary.is_symlink():  # of a killed process
            shutil.rmtree(temporary)
        temporary.mkdir()
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                _flush(path)
        check_new(target)
        os.rename(temporary, target)
        _flush(target.absolute().parent)
    except BaseException as error:  # a second Ctrl-C too must leave nothing behind
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, GymDrError):
            raise LogError(f"{target}: cannot be written: {error.strerror or error}.") from None
        raise


def write_archive(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Writes arrays by name as a compressed .npz file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}{_MEMBER}", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(values), allow_pickle=False)


def _flush(path: Path) -> None:
    """Flushes a file, or the names in a folder, to the disk."""
    if os.name == "nt":
        return  # Windows cannot open folders; its file system journals names
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
