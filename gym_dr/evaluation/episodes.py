"""The table of an evaluation's episodes: read once, appended to while episodes are played, then sorted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.arrays import Mask
from gym_dr.envs.played import TERM
from gym_dr.errors import RunFolderError
from gym_dr.evaluation.question import Question
from gym_dr.evaluation.results import COLUMNS, EPISODES, read_episodes, typed, write_episodes
from gym_dr.evaluation.sets import CellSet
from gym_dr.runs.metrics import CsvLog

KEYS = ["policy", "set", "cell", "episode"]  # of a row


class EpisodeTable:
    """Rows of a file of episodes."""

    def __init__(self, path: Path) -> None:
        """Reads the file, if there is one.

        Raises:
            RunFolderError: It cannot be read or was not written by an evaluation.
        """
        self.path, self.rows = path, read_episodes(path)

    def check(self, sets: Sequence[CellSet], episodes: Callable[[CellSet], int]) -> None:
        """Checks that rows of these sets are of their cells; ``episodes`` is the number of episodes of a cell.

        Raises:
            RunFolderError: A row is not.
        """
        for cells in sets:
            own, count = self.rows[self.rows["set"] == cells.name], episodes(cells)
            fits = own["cell"].between(0, cells.num_cells - 1) & own["episode"].between(0, count - 1)
            if not fits.all():
                got = "cell {}, episode {}".format(*own.loc[~fits, ["cell", "episode"]].iloc[0])
                raise RunFolderError(
                    f"{self.path}: expected {cells.name} to have cells 0 to {cells.num_cells - 1} and episodes 0 to "
                    f"{count - 1} of each, got {got}. Delete the file to play its episodes again."
                )

    def rename(self, names: Mapping[str, str]) -> None:
        """Renames policies and drops the rows of policies without a new name; in memory only."""
        self.rows = self.rows.assign(policy=self.rows["policy"].map(names)).dropna(subset=["policy"])

    def finished(self, policy: str, cells: CellSet, first_cell: int = 0) -> Mask:
        """Which episodes of a set have been played, shape ``(cells.num_episodes,)``."""
        last = first_cell + cells.num_cells - 1
        own = (self.rows["policy"] == policy) & (self.rows["set"] == cells.name)
        rows = self.rows[own & self.rows["cell"].between(first_cell, last)]
        numbers = ((rows["cell"] - first_cell) * cells.episodes + rows["episode"]).to_numpy(np.int64)
        return np.isin(np.arange(cells.num_episodes), numbers)

    @contextlib.contextmanager
    def growing(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """Yields a function that appends a row to the file; ``rows`` has the new rows after the block."""
        import pandas as pd  # heavy

        new: list[Mapping[str, Any]] = []
        columns = list(map(str, self.rows)) if len(self.rows) else []
        if not columns:  # which terms of the reward there are is known with the first episode
            self.path.unlink(missing_ok=True)
        with contextlib.closing(CsvLog(self.path)) as log:

            def add(row: Mapping[str, Any]) -> None:
                columns.extend(() if columns else row)
                new.append({name: row.get(name, 0.0) for name in columns})  # a term may be missing or new
                log.write(new[-1])

            yield add
        if new:
            grown = typed(pd.DataFrame(new))
            self.rows = pd.concat([self.rows, grown]) if len(self.rows) else grown

    def write(self, question: Question) -> None:
        """Writes the file, with the question's parameters, order and outcomes; none if there are no worst cells."""
        nominal = question.nominal
        rows = self.rows.assign(**{name: value for name, value in nominal.items() if name not in self.rows})
        orders = {"policy": question.names, "set": [cells.name for cells in question.sets]}

        def place(column: Any) -> Any:
            return column.map(orders[column.name].index) if column.name in orders else column

        terms = [name for name in map(str, rows) if name.startswith(TERM) and name not in nominal]
        ordered = rows[[*COLUMNS, *nominal, *terms]].drop_duplicates(KEYS).sort_values(KEYS, key=place)
        self.rows = ordered.assign(outcome=ordered["return"].map(question.outcome)).reset_index(drop=True)
        if len(self.rows) or self.path.name == EPISODES or self.path.exists():
            write_episodes(self.path, self.rows)
