"""CSV files that grow by rows, and are cut back when a run resumes."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.plain import read_plain

if TYPE_CHECKING:
    import pandas as pd

MAX_LOG = 2**30  # bytes; logs are read as a whole


class CsvLog:
    """Appends rows to a CSV file; the first row's keys are the columns."""

    def __init__(self, path: Path) -> None:
        """Names the file; the first row creates it."""
        self.path = path
        self._columns: list[str] | None = None
        self._file: io.FileIO | None = None  # unbuffered, so closing it cannot fail

    def write(self, row: Mapping[str, Any]) -> None:
        """Appends one row and hands it to the operating system.

        Raises:
            RunFolderError: The file cannot be written, or its columns differ from the row's; it is unchanged.
        """
        with os_errors(self.path):
            if self._file is None:
                self._open(list(row))
            if list(row) != self._columns:
                raise RunFolderError(f"{self.path}: expected the columns {self._columns}, got {list(row)}.")
            self._append(row.values())

    def sync(self) -> None:
        """Waits until all rows are on the disk.

        Raises:
            RunFolderError: They cannot be written.
        """
        if self._file is not None:
            with os_errors(self.path):
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file; further rows open it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, columns: list[str]) -> None:
        new = not self.path.exists() or self.path.stat().st_size == 0
        self._columns = columns if new else next(csv.reader(io.StringIO(whole_rows(self.path))), [])
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  closed by close()
        if new:
            self._append(columns)

    def _append(self, values: Any) -> None:
        """Writes a line; readers ignore the part of one that a full disk accepts."""
        assert self._file is not None
        line = io.StringIO(newline="")
        csv.writer(line, lineterminator="\n").writerow(values)
        rest = line.getvalue().encode()
        while rest:
            rest = rest[self._file.write(rest) :]


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Writes a table whole or not at all, with all digits: numpy's print options may leave out some.

    Raises:
        RunFolderError: The file cannot be written.
    """
    content = table.to_csv(index=False, lineterminator="\n", float_format=float.__repr__)
    write_atomically(path, content.encode())


def whole_rows(path: Path) -> str:
    """Reads the text of a CSV file up to its last whole row.

    A killed process may leave part of a row at the end; a power cut may leave zeros.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: The file is not text.
    """
    content = read_plain(path, MAX_LOG).partition(b"\0")[0]
    return content[: content.rfind(b"\n") + 1].decode()


def cut_back(path: Path, updates: int) -> None:
    """Rewrites a CSV file atomically with the rows of the first updates; a missing file stays missing.

    Raises:
        RunFolderError: The file cannot be read or written, or was not written by a run.
    """
    if not path.exists():
        return
    with _readable(path):
        lines = whole_rows(path).splitlines(keepends=True)
        kept = lines[:1] + [line for line in lines[1:] if int(line.partition(",")[0]) < updates]
        if any(line.count(",") != lines[0].count(",") for line in kept):
            raise ValueError("a row's columns differ from the header")
    write_atomically(path, "".join(kept).encode())


def last_row(path: Path) -> dict[str, float]:
    """The last row of a CSV file of numbers; empty if there is none.

    Raises:
        RunFolderError: The file cannot be read, or was not written by a run.
    """
    with _readable(path):
        lines = whole_rows(path).splitlines() if path.exists() else []
        values = zip(lines[0].split(","), map(float, lines[-1].split(",")), strict=True) if len(lines) > 1 else ()
        return dict(values)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}.") from None
    except ValueError as error:
        raise RunFolderError(f"{path}: was not written by a run ({error}).") from None


def read_metrics(folder: RunFolder) -> pd.DataFrame:
    """Reads a run's metrics, one row per update.

    Raises:
        RunFolderError: There are none, or the file is damaged.
    """
    if not folder.metrics.exists():
        raise RunFolderError(f"{folder.metrics}: this run has no metrics yet.")
    table = read_csv(folder.metrics, ("update", "steps", "return_mean"))
    if table.empty:
        raise RunFolderError(f"{folder.metrics}: expected at least one row.")
    return table


def read_csv(path: Path, columns: Collection[str]) -> pd.DataFrame:
    """Reads a CSV file of a run, which must have ``columns``.

    Raises:
        RunFolderError: The file is missing or damaged.
    """
    import pandas as pd  # heavy: only when rows are wanted as a table

    try:
        table = pd.read_csv(io.StringIO(whole_rows(path)))
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        reason = getattr(error, "strerror", None) or error
        raise RunFolderError(f"{path}: cannot be read as CSV: {reason}.") from None
    if not set(columns) <= set(table.columns):
        raise RunFolderError(f"{path}: expected columns {', '.join(columns)}, got {', '.join(table.columns)}.")
    return table
