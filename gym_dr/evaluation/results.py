"""The folder of an evaluation: ``episodes.csv`` with a row for each episode, ``evaluation.json`` with the summary."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, RunFolderError, as_path, check_known, listed
from gym_dr.evaluation.failures import best_on
from gym_dr.evaluation.question import FORMAT, Question
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.tables import evaluation_tables
from gym_dr.randomization.space import acts
from gym_dr.runs.folder import CONFIG, EVALUATION, os_errors, read_plain, write_atomically
from gym_dr.table import Table
from gym_dr.version import check_written_by

if TYPE_CHECKING:
    import pandas as pd

MAX_DOCUMENT, MAX_EPISODES = 2**28, 2**32  # bytes that are read
DOCUMENT, EPISODES = "evaluation.json", "episodes.csv"
_RESUME = "The same command, or the same call of gym_dr.evaluate, continues it."
COLUMNS = ("policy", "set", "cell", "episode", "seed", "return", "steps", "terminated", "outcome")  # before parameters


def sampler_notes(document: Mapping[str, Any]) -> list[str]:
    """Notes on policies that were trained with an adaptive sampler."""
    samplers: dict[str, list[str]] = {}
    for policy in document["policies"]:
        if "sampler" in policy:
            samplers.setdefault(policy["sampler"], []).append(policy["name"])
    return [
        f"{', '.join(names)}: trained with the adaptive sampler {sampler}. Training draws and ranges here are those of "
        "the whole randomization, not of the sampler."
        for sampler, names in samplers.items()
    ]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A finished evaluation."""

    folder: Path  # folder of its files
    document: dict[str, Any]  # the content of ``evaluation.json``
    episodes: pd.DataFrame  # the rows of ``episodes.csv``, sorted by policy, set, cell and episode

    @classmethod
    def load(cls, folder: Path, document: dict[str, Any] | None = None) -> Evaluation:
        """Reads a finished evaluation; ``document`` is its ``evaluation.json``, if that has been read.

        Raises:
            RunFolderError: There is none, it was interrupted, or it is damaged.
        """
        document = document or read_document(folder)
        if document is None:
            raise RunFolderError(f"{folder}: holds no evaluation. Make one with gymdr evaluate.")
        if not document.get("complete"):
            raise RunFolderError(f"{folder}: the evaluation was interrupted. {_RESUME}")
        evaluation = cls(folder, document, read_episodes(folder / EPISODES))
        if not evaluation.in_order:
            expected, got = evaluation.question.episodes, len(evaluation.episodes)
            raise RunFolderError(
                f"{folder / EPISODES}: expected each of {expected} episodes once, in order; got {got} rows. {_RESUME}"
            )
        return evaluation

    @property
    def in_order(self) -> bool:
        """Whether ``episodes`` has each episode of each policy, set and cell once, in order."""
        order = {name: k for k, name in enumerate(self.policies)}

        def numbers(cells: CellSet) -> Array:
            rows = self.episodes_of(cells.name)
            found = (rows["policy"].map(order) * cells.num_cells + rows["cell"]) * cells.episodes + rows["episode"]
            return found.to_numpy(np.float64)

        return all(np.array_equal(numbers(each), np.arange(len(order) * each.num_episodes)) for each in self.sets)

    @cached_property
    def question(self) -> Question:
        """The question of the evaluation."""
        return Question.from_document(self.document)

    @property
    def sets(self) -> list[CellSet]:
        """The sets of test conditions on which the policies were evaluated."""
        return list(self.question.sets)

    @property
    def policies(self) -> list[str]:
        """The names of the policies."""
        return self.question.names

    @property
    def summary(self) -> pd.DataFrame:
        """A row for each policy, set and statistic: its value and the ends of its interval, NaN without one."""
        import pandas as pd  # heavy

        rows = [
            {"policy": row["policy"], "set": row["set"], "statistic": name, **number}
            for row in self.document["results"]
            for name, number in row["statistics"].items()
        ]
        return pd.DataFrame(rows, columns=["policy", "set", "statistic", "value", "low", "high"])

    def statistics(self, policy: str) -> dict[tuple[str, str], float]:
        """(Set, statistic) -> value of one policy, without undetermined values."""
        return {
            (row["set"], name): number["value"]
            for row in self.document["results"]
            if row["policy"] == policy
            for name, number in row["statistics"].items()
            if number["value"] is not None
        }

    def __repr__(self) -> str:
        return (
            f"Evaluation({str(self.folder)!r}: {listed(self.policies)} on {self.question.env}, "
            f"{len(self.episodes):,} episodes of {listed([cells.name for cells in self.sets])})"
        )

    @property
    def tables(self) -> list[Table]:
        """The tables that the command line prints."""
        return evaluation_tables(self.document, self.sets)

    def _repr_html_(self) -> str:
        """The tables, for notebooks."""
        return "\n".join(table.__html__() for table in self.tables)

    def cell_set(self, name: str) -> CellSet:
        """The set with a name.

        Raises:
            UnknownNameError: The evaluation has no such set.
        """
        found = {cells.name: cells for cells in self.sets}
        check_known("set of the evaluation", name, found)
        return found[name]

    def episodes_of(self, name: str) -> pd.DataFrame:
        """The rows of ``episodes`` of one set, such as ``grid``.

        Every evaluation also has episodes on nominal values and on the training draws, so group those of one set:

        Example:
            >>> found = gym_dr.evaluate(run, sets=[gym_dr.grid(gravity=(-11, -3, 3))])
            >>> found.episodes_of("grid").groupby("gravity")["return"].mean()  # three rows

        Args:
            name: Name of a set; ``[cells.name for cells in found.sets]`` lists them.

        Raises:
            UnknownNameError: The evaluation has no such set.
        """
        return self.episodes[self.episodes["set"] == self.cell_set(name).name]

    @property
    def regret(self) -> pd.DataFrame:
        """A row for each policy, set and cell: its mean return, that of the best known policy, and its regret.

        ``best`` names the policy with the highest mean in the cell. The highest of several noisy means is too high, so
        ``best_known`` takes policies that one half of the episodes chose and their returns in the other half.
        Parameters are those of cells with fixed values. Empty without references.
        """
        import pandas as pd  # heavy

        rows = []
        for cells in self.sets if self.question.references else ():
            returns = self.returns(cells.name)
            if (known := best_on(cells, returns)) is None:
                continue
            best, own, regret = returns.mean(-1).argmax(0), returns.mean(-1), known.regret.mean(-1)
            values = [dict(zip(cells.names, row, strict=True)) for row in cells.values.tolist()]
            for k, name in enumerate(self.policies):
                for cell, possible in enumerate(known.returns.mean(-1).tolist()):
                    head = {"policy": name, "set": cells.name, "cell": cell, "best": self.policies[best[cell]]}
                    numbers = {"return": own[k, cell], "best_known": possible, "regret": regret[k, cell]}
                    rows.append({**head, **numbers, **values[cell], **cells.fixed})
        columns = ["policy", "set", "cell", "best", "return", "best_known", "regret"]
        parameters = [name for name in self.question.parameters if any(name in row for row in rows)]
        return pd.DataFrame(rows, columns=[*columns, *parameters])

    def varied(self, name: str) -> dict[str, Array]:
        """Varied parameters of a set -> their values in its episodes, NaN where a parameter has no effect.

        Raises:
            UnknownNameError: The evaluation has no such set.
        """
        rows = self.episodes_of(name)
        own = rows[rows["policy"] == self.policies[0]]  # all policies play the same draws
        values = {p: own[p].to_numpy(np.float64) for p in self.question.parameters}
        found = {p: np.where(acts(self.question.needs[p], values, len(own)), values[p], np.nan) for p in values}
        return {p: one for p, one in found.items() if len(np.unique(one[~np.isnan(one)])) > 1}

    def returns(self, name: str) -> Array:
        """Returns of one set's episodes, shape ``(policies, cells, episodes)``.

        Raises:
            UnknownNameError: The evaluation has no such set.
        """
        cells = self.cell_set(name)
        values = np.asarray(self.episodes_of(name)["return"], np.float64)
        return values.reshape(len(self.policies), cells.num_cells, cells.episodes)


def evaluation_folder(defaults: Sequence[Path], output: str | Path | None) -> Path:
    """The folder of an evaluation: ``output``, or the default of a single run or policy.

    Raises:
        ConfigError: There are several defaults and no output.
    """
    if output is not None:
        return as_path(output)
    defaults = list(dict.fromkeys(defaults))
    if len(defaults) != 1:
        raise ConfigError("Expected `output` for an evaluation of several runs or policies, got none.")
    return defaults[0]


def check_folder(folder: Path) -> None:
    """Checks that an evaluation may be written into a folder; changes nothing.

    Raises:
        RunFolderError: The folder holds something else, or its parent is missing.
    """
    with os_errors(folder, "read"):
        if folder.is_dir():
            if (folder / CONFIG).is_file():
                raise RunFolderError(f"{folder}: is a run folder; choose another `output`.")
            owned = (folder / DOCUMENT).is_file() or (folder.name == EVALUATION and (folder.parent / CONFIG).is_file())
            if not owned and any(not path.name.startswith(".") for path in folder.iterdir()):
                raise RunFolderError(f"{folder}: already exists and holds no evaluation; choose another `output`.")
        elif folder.exists():
            raise RunFolderError(f"{folder}: is a file; choose another `output`.")
        elif not folder.absolute().parent.is_dir():
            raise RunFolderError(f"{folder}: there is no folder {folder.parent}.")


def read_document(folder: Path) -> dict[str, Any] | None:
    """Reads ``evaluation.json`` in a folder; None if there is none.

    Raises:
        RunFolderError: The file is damaged, of another version, or not an evaluation.
    """
    path = folder / DOCUMENT
    try:
        document = json.loads(read_plain(path, MAX_DOCUMENT))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}. Delete it to evaluate again.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RunFolderError(f"{path}: is not a gym_dr evaluation. Move it away to evaluate here.")
    check_written_by(path, document)
    if missing := {"complete", "env", "policies", "sets", "success", "results"} - document.keys():
        raise RunFolderError(f"{path}: lacks {', '.join(sorted(missing))}. Delete it to evaluate again.")
    return document


def write_document(folder: Path, document: dict[str, Any]) -> None:
    """Writes ``evaluation.json`` whole or not at all; NaN and infinities become null."""
    write_atomically(folder / DOCUMENT, (json.dumps(finite(document), indent=2, allow_nan=False) + "\n").encode())


def finite(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a file holds it: NaN and infinities are null."""
    return cast(dict[str, Any], json.loads(json.dumps(document), parse_constant=lambda name: None))


def read_episodes(path: Path) -> pd.DataFrame:
    """Reads ``episodes.csv`` without a last line that a crash cut short.

    Raises:
        RunFolderError: The file cannot be read or was not written by an evaluation.
    """
    import pandas as pd  # heavy

    try:
        content = read_plain(path, MAX_EPISODES)
        # as text first: Python parses numbers exactly, whereas pandas may round the last digit
        table = pd.read_csv(io.BytesIO(content[: content.rfind(b"\n") + 1]), dtype=str, keep_default_na=False)
        table = typed(table)
    except FileNotFoundError:
        return pd.DataFrame(columns=list(COLUMNS))
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise RunFolderError(f"{path}: cannot be read as CSV: {error}.") from None
    if tuple(table.columns[: len(COLUMNS)]) != COLUMNS:
        raise RunFolderError(f"{path}: expected the columns {', '.join(COLUMNS)}, got {', '.join(table.columns)}.")
    return table


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """A table of episodes with the type of each column."""
    texts, whole = ("policy", "set", "outcome"), ("cell", "episode", "seed", "steps", "terminated")
    return table.astype({name: "int64" if name in whole else "float64" for name in table if name not in texts})


def write_episodes(path: Path, table: pd.DataFrame) -> None:
    """Writes ``episodes.csv`` whole or not at all."""
    # numpy's print options may leave out digits
    write_atomically(path, table.to_csv(index=False, lineterminator="\n", float_format=float.__repr__).encode())
