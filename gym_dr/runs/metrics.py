"""CSV files that grow row by row and can be cut back when a run resumes."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Callable, Collection, Iterator, Mapping
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
        """Writes one whole line or nothing, even if a full disk accepts a part of it."""
        assert self._file is not None
        line = io.StringIO(newline="")
        csv.writer(line, lineterminator="\n").writerow(values)
        before, rest = self._file.tell(), line.getvalue().encode()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(before)
            raise


def whole_rows(path: Path) -> str:
    """Reads the text of a CSV file up to its last whole row.

    A killed process may leave part of a row at the end; a power cut may leave zeros.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: The file is not text.
    """
    content = read_plain(path, MAX_LOG).partition(b"\0")[0]
    return content[: content.rfind(b"\n") + 1].decode()


def filter_rows(path: Path, predicate: Callable[[dict[str, str]], bool]) -> None:
    """Rewrites a CSV file atomically with the rows for which ``predicate`` is true; a missing file stays missing.

    Raises:
        RunFolderError: The file cannot be read or written, or ``predicate`` fails on a row.
    """
    if not path.exists():
        return
    with reading(path) as reader:
        columns = list(reader.fieldnames or [])
        rows = [row for row in reader if predicate(row)]
    if any(None in row or None in row.values() for row in rows):  # how csv marks too many or too few values
        raise RunFolderError(f"{path}: was not written by a run (a row's columns differ from the header).")
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    if columns:
        writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, out.getvalue().encode())


def last_row(path: Path) -> dict[str, float]:
    """The last row of a CSV file of numbers; empty if it has none.

    Raises:
        RunFolderError: The file cannot be read, or holds something other than numbers.
    """
    with reading(path) as reader:
        rows = list(reader)
        return {name: float(value) for name, value in rows[-1].items()} if rows else {}


@contextlib.contextmanager
def reading(path: Path) -> Iterator[csv.DictReader[str]]:
    """The rows of a file as texts; none if it is missing.

    Raises:
        RunFolderError: The file cannot be read, or the block cannot use a row.
    """
    try:
        yield csv.DictReader(io.StringIO(whole_rows(path) if path.exists() else ""))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}.") from None
    except (KeyError, TypeError, ValueError) as error:
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
