"""The folder of an evaluation: ``episodes.csv`` with a row for each, ``evaluation.json`` with what they sum up to."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.evaluation.cells import CellSet
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import CONFIG, EVALUATION

if TYPE_CHECKING:
    import pandas as pd

FORMAT, VERSION = "gym_dr evaluation", 1
DOCUMENT, EPISODES = "evaluation.json", "episodes.csv"
COLUMNS = ("policy", "set", "cell", "episode", "seed", "return", "length", "terminated", "outcome")  # before parameters

Array = npt.NDArray[np.float64]


class Evaluation:
    """A finished evaluation.

    Attributes:
        folder: That it is in.
        document: What ``evaluation.json`` says.
        episodes: The rows of ``episodes.csv``, sorted by policy, set, cell and episode.
    """

    def __init__(self, folder: Path, document: dict[str, Any], episodes: pd.DataFrame) -> None:
        """Takes over all three; ``load`` reads them."""
        self.folder = folder
        self.document = document
        self.episodes = episodes

    @classmethod
    def load(cls, folder: Path) -> Evaluation:
        """Reads a finished evaluation.

        Raises:
            RunFolderError: There is none, it was interrupted, or it is damaged.
        """
        document = read_document(folder)
        if document is None:
            raise RunFolderError(f"{folder}: holds no evaluation. Make one with 'gymdr evaluate'.")
        if not document.get("complete"):
            raise RunFolderError(f"{folder}: the evaluation was interrupted. {_again(document)}")
        evaluation = cls(folder, document, read_episodes(folder / EPISODES))
        expected = sum(cells.total for cells in evaluation.sets) * len(document["policies"])
        if len(evaluation.episodes) != expected:
            raise RunFolderError(
                f"{folder / EPISODES}: expected {expected} episodes, got {len(evaluation.episodes)}. {_again(document)}"
            )
        return evaluation

    @cached_property
    def sets(self) -> list[CellSet]:
        """Where the policies were looked at."""
        return [CellSet.from_dict(form) for form in self.document["sets"]]

    @property
    def policies(self) -> list[str]:
        """The names of the policies."""
        return [policy["name"] for policy in self.document["policies"]]

    @property
    def runs(self) -> list[Path]:
        """The run folders of the policies; they may have been moved since."""
        return [Path(os.path.normpath(self.folder / policy["path"])) for policy in self.document["policies"]]

    @property
    def summary(self) -> pd.DataFrame:
        """A row for each policy, set and statistic: its value and the ends of its interval, NaN where it has none."""
        import pandas as pd  # heavy

        rows = [
            {"policy": row["policy"], "set": row["set"], "statistic": name, **number}
            for row in self.document["results"]
            for name, number in row["statistics"].items()
        ]
        return pd.DataFrame(rows, columns=["policy", "set", "statistic", "value", "low", "high"])

    def cell_set(self, name: str) -> CellSet:
        """The set of a name."""
        return next(cells for cells in self.sets if cells.name == name)

    def returns(self, name: str) -> Array:
        """Returns of one set's episodes, shape ``(policies, cells, episodes)``."""
        cells = self.cell_set(name)
        rows = self.episodes[self.episodes["set"] == name]
        table: Array = rows["return"].to_numpy(np.float64)
        return table.reshape(len(self.policies), cells.cells, cells.episodes)


def _again(document: dict[str, Any]) -> str:
    return f"Go on with: {document.get('command') or 'gymdr evaluate RUN'}"


def evaluation_folder(runs: Sequence[str], output: str | None) -> Path:
    """Where an evaluation of some arguments of the command line is: in the one folder that was named, or in ``output``.

    Raises:
        ConfigError: Several were named, and no output.
    """
    if output is not None:
        return Path(output)
    if len(runs) != 1:
        raise ConfigError("Expected --output FOLDER for an evaluation of several runs.")
    return Path(runs[0]) / EVALUATION


def check_folder(folder: Path) -> None:
    """Checks that an evaluation may be written into a folder; changes nothing.

    Raises:
        RunFolderError: There is something else, or its parent is missing.
    """
    try:
        if folder.is_dir():
            if (folder / CONFIG).is_file():
                raise RunFolderError(f"{folder}: is the folder of a run; choose another --output.")
            if not (folder / DOCUMENT).is_file() and any(not path.name.startswith(".") for path in folder.iterdir()):
                raise RunFolderError(f"{folder}: exists already and holds no evaluation; choose another --output.")
        elif folder.exists():
            raise RunFolderError(f"{folder}: is a file; choose another --output.")
        elif not folder.absolute().parent.is_dir():
            raise RunFolderError(f"{folder}: there is no folder {folder.parent}.")
    except OSError as error:
        if isinstance(error, RunFolderError):
            raise
        raise RunFolderError(f"{folder}: cannot be read: {error.strerror or error}.") from None


def read_document(folder: Path) -> dict[str, Any] | None:
    """What ``evaluation.json`` in a folder says; None where there is none.

    Raises:
        RunFolderError: It is damaged, of another version or something else.
    """
    path = folder / DOCUMENT
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}. Delete it to evaluate anew.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RunFolderError(f"{path}: is not an evaluation of gym_dr. Move it away to evaluate here.")
    if document.get("version") != VERSION:
        raise RunFolderError(
            f"{path}: expected version {VERSION}, got {document.get('version')!r}. Use the version of gym_dr that "
            "wrote it, or delete it to evaluate anew."
        )
    missing = {"complete", "env", "policies", "sets", "success", "results"} - document.keys()
    if missing:
        raise RunFolderError(f"{path}: lacks {', '.join(sorted(missing))}. Delete it to evaluate anew.")
    return document


def write_document(folder: Path, document: dict[str, Any]) -> None:
    """Writes ``evaluation.json`` whole or not at all; numbers that are not finite become null, as JSON has none."""
    finite = json.loads(json.dumps(document), parse_constant=lambda name: None)
    write_atomically(folder / DOCUMENT, (json.dumps(finite, indent=2, allow_nan=False) + "\n").encode())


def read_episodes(path: Path) -> pd.DataFrame:
    """Reads ``episodes.csv``; a last line that a crash cut short is left out.

    Raises:
        RunFolderError: It cannot be read or is not what an evaluation writes.
    """
    import pandas as pd  # heavy

    try:
        content = path.read_bytes()
        # as text first: Python reads every number back as it was, pandas may round the last digit
        table = pd.read_csv(io.BytesIO(content[: content.rfind(b"\n") + 1]), dtype=str, keep_default_na=False)
        texts, whole = ("policy", "set", "outcome"), ("cell", "episode", "seed", "length", "terminated")
        table = table.astype({name: "int64" if name in whole else "float64" for name in table if name not in texts})
    except FileNotFoundError:
        return pd.DataFrame(columns=list(COLUMNS))
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise RunFolderError(f"{path}: cannot be read as CSV: {error}.") from None
    if tuple(table.columns[: len(COLUMNS)]) != COLUMNS:
        raise RunFolderError(f"{path}: expected the columns {', '.join(COLUMNS)}, got {', '.join(table.columns)}.")
    return table


def write_episodes(path: Path, table: pd.DataFrame) -> None:
    """Writes ``episodes.csv`` whole or not at all."""
    write_atomically(path, table.to_csv(index=False, lineterminator="\n").encode())
