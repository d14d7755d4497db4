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
from gym_dr.runs.folder import LOG_MARK, RunFolder, is_ours, os_errors, read_plain

if TYPE_CHECKING:
    import pandas as pd

MAX_LOG = 2**30  # bytes; logs are read as a whole


class CsvLog:
    """Appends rows to a CSV file; the first row's keys are the columns."""

    def __init__(self, path: Path, rows: int = 0, size: int | None = None) -> None:
        """Names the file; the first row creates it.

        Args:
            path: The file.
            rows: Rows in the part of the file that stays.
            size: Bytes of that part; the first row is written behind it. None for the whole file.
        """
        self.path, self.rows, self._size = path, rows, size
        self._columns: list[str] | None = None
        self._file: io.FileIO | None = None  # unbuffered, so closing it cannot fail

    def write(self, *rows: Mapping[str, Any]) -> None:
        """Appends rows and hands them to the operating system.

        Raises:
            RunFolderError: The file cannot be written, or its columns differ from those of a row; it is unchanged.
        """
        with os_errors(self.path):
            for columns in map(list, rows):
                if self._file is None:
                    self._open(columns)
                if columns != self._columns:
                    raise RunFolderError(f"{self.path}: expected the columns {self._columns}, got {columns}.")
            self._append(*(row.values() for row in rows))
            self.rows += len(rows)

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
        if self._size is not None and self.path.exists():
            os.truncate(self.path, self._size)
            self._size = None
        new = not self.path.exists() or self.path.stat().st_size == 0
        self._columns = columns if new else next(csv.reader(io.StringIO(whole_rows(self.path))), [])
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  closed by close()
        if new:
            self._append(columns)

    def _append(self, *lines: Any) -> None:
        """Writes lines; readers ignore the part of one that a full disk accepts."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(lines)
        rest = text.getvalue().encode()
        while rest and self._file is not None:
            rest = rest[self._file.write(rest) :]


def whole_rows(path: Path) -> str:
    """Reads the text of a CSV file up to its last whole row.

    A killed process may leave part of a row at the end; a power cut may leave zeros there.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: The file is not text.
        ValueError: There are zeros elsewhere.
    """
    content = read_plain(path, MAX_LOG).rstrip(b"\0")
    if b"\0" in content:
        raise ValueError("it has zeros between its rows")
    return content[: content.rfind(b"\n") + 1].decode()


def size_of_rows(path: Path, rows: int, updates: int, *, one_each: bool = False) -> int:
    """The size of the first rows of a CSV file that an update's number begins; changes nothing.

    Args:
        path: The file.
        rows: How many there must be.
        updates: The updates that wrote them; the other rows are those of later ones, which are made again.
        one_each: Whether each update wrote one row.

    Raises:
        RunFolderError: The file cannot be read, lacks rows or was not written by a run.
    """
    with _readable(path):
        content = read_plain(path, MAX_LOG) if rows or path.exists() else b""
        if not is_ours(path, LOG_MARK):
            raise ValueError("it has another header")
        lines = content.split(b"\n")[: rows + 1] if rows else []
        first = [line.partition(b",")[0] for line in lines[1:]]
        made = [int(one) if one.isdigit() else updates for one in first]
        size = sum(len(line) + 1 for line in lines)
        kept = content[:size].decode()
        whole = len(made) == rows and len(kept.encode()) == size and "\0" not in kept
        whole = whole and all(line.count(b",") == lines[0].count(b",") for line in lines)
    if not whole or made != sorted(made) or (rows and made[-1] >= updates) or (one_each and made != [*range(rows)]):
        raise RunFolderError(
            f"{path}: lacks some of the {rows} rows of the first {updates} updates. Put them back, or train again with "
            "`overwrite=True`."
        )
    return size


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
    """Raises RunFolderError if a file cannot be read, or is no CSV; pandas' own errors are ValueErrors too."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
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
    numbers = table.select_dtypes("number")
    if table.empty or numbers.shape != table.shape or table["update"].tolist() != [*range(len(table))]:
        raise RunFolderError(f"{folder.metrics}: expected a row of numbers for each update from 0 on, in order.")
    return table


def read_csv(path: Path, columns: Collection[str]) -> pd.DataFrame:
    """Reads a CSV file of a run, which must have ``columns``.

    Raises:
        RunFolderError: The file is missing or damaged.
    """
    import pandas as pd  # heavy: only when rows are wanted as a table

    with _readable(path):
        table = pd.read_csv(io.StringIO(whole_rows(path)))
    numbers = table.select_dtypes(["number", "bool"]).columns if len(table) else table.columns
    if not set(columns) <= set(numbers):
        wanted, got = ", ".join(columns), ", ".join(numbers)
        raise RunFolderError(f"{path}: expected columns {wanted} of numbers, got {got or 'none'}.")
    return table
