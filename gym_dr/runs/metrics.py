"""CSV files that grow by a row at a time and can be cut back when a run is resumed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gym_dr.errors import RunFolderError
from gym_dr.runs.folder import write_atomically


class CsvLog:
    """Appends rows to a CSV file; the first row's keys are the columns."""

    def __init__(self, path: Path) -> None:
        """Opens the file for appending; it is made with the first row."""
        self.path = path
        self._columns: list[str] | None = None
        self._file: io.TextIOWrapper | None = None

    def write(self, row: Mapping[str, Any]) -> None:
        """Appends one row and hands it to the operating system.

        Raises:
            RunFolderError: The file cannot be written, or the row has other columns than the file.
        """
        try:
            if self._file is None:
                new = not self.path.exists() or self.path.stat().st_size == 0
                self._columns = list(row) if new else _columns_of(self.path)
                self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115  closed by close()
                if new:
                    csv.writer(self._file).writerow(self._columns)
            if list(row) != self._columns:
                raise RunFolderError(f"{self.path}: expected the columns {self._columns}, got {list(row)}.")
            csv.writer(self._file).writerow(row.values())
            self._file.flush()
        except OSError as error:
            if isinstance(error, RunFolderError):
                raise
            raise RunFolderError(f"{self.path}: cannot be written: {error.strerror or error}.") from None

    def close(self) -> None:
        """Closes the file; further rows open it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def keep_rows(path: Path, keep: Callable[[dict[str, str]], bool]) -> None:
    """Cuts a CSV file back to the rows that ``keep`` says, in one atomic write; a missing file stays missing.

    Raises:
        RunFolderError: The file cannot be read or written, or its rows make no sense to ``keep``.
    """
    if not path.exists():
        return
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or [])
            # a row that a crash cut short lacks its last columns
            rows = [row for row in reader if all(row.get(c) is not None for c in columns) and keep(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}.") from None
    except (KeyError, ValueError) as error:
        raise RunFolderError(f"{path}: is not what a run has written there ({error}).") from None
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns)
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, out.getvalue().encode())


def last_update(path: Path) -> int:
    """The largest ``update`` in a CSV file; -1 where there is none.

    Raises:
        RunFolderError: The file cannot be read or has something else in that column.
    """
    if not path.exists():
        return -1
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return max((int(row["update"]) for row in csv.DictReader(file)), default=-1)
    except (OSError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{path}: is not what a run has written there ({error}).") from None


def _columns_of(path: Path) -> list[str]:
    with open(path, encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])
