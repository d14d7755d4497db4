"""What a run gives its loggers while it trains."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np

from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.loggers import Loggers
from gym_dr.runs.metrics import last_row

Written = Mapping[str, Any]  # a row of a file, as it is written


class LoggerFeed:
    """Turns rows of a run's files into points of its loggers.

    The step is that of the metrics. Numbers of an update and of the sampler are scalars; the draws of the episodes
    between two checkpoints make a histogram of each parameter. A run that resumes repeats the points after its newest
    checkpoint.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, *, required: bool) -> None:
        """Stores what to open; ``required`` as for ``Loggers``."""
        self._folder, self._config, self._required = folder, config, required
        self._loggers: Loggers | None = None
        self._drawn: dict[str, list[float]] = defaultdict(list)  # parameter -> draws since the last histogram
        self._learned: dict[str, float] = {}  # of the sampler, since the last point
        self._step = 0  # of the last point

    def open(self) -> None:
        """Opens the run's loggers.

        Raises:
            PluginError: One cannot be opened, and is required.
            RunFolderError: The metrics so far are damaged.
        """
        if names := self._config.settings.loggers:
            self._step = int(last_row(self._folder.metrics).get("steps", 0))
            self._loggers = Loggers(names, self._folder.loggers, self._config.to_dict(), required=self._required)

    def episode(self, row: Written) -> None:
        """Takes a row of ``draws.csv``."""
        if self._loggers:
            for name in self._config.randomization or ():
                self._drawn[name].append(float(row[name]))

    def sampler(self, row: Written) -> None:
        """Takes a row of ``sampler.csv``."""
        self._learned = {f"sampler/{name}": value for name, value in _numbers(row, ("update",)).items()}

    def update(self, row: Written, *, saved: bool) -> None:
        """Takes a row of ``metrics.csv``, after the others of its update, and writes.

        Args:
            row: The row.
            saved: Whether a checkpoint follows, wherever one is due or not.
        """
        if not self._loggers:
            return
        self._step, updates = row["steps"], row["update"] + 1
        scalars = {f"training/{name}": value for name, value in _numbers(row, ("update", "steps")).items()}
        histograms = {}
        if saved or updates % self._config.settings.checkpoint_every == 0 or updates == self._config.options.updates:
            histograms = {f"draws/{name}": np.array(values) for name, values in self._drawn.items()}
            self._drawn.clear()
        self._loggers.write(self._step, {**scalars, **self._learned}, histograms)
        self._learned = {}

    def evaluated(self, statistics: Mapping[tuple[str, str], float]) -> None:
        """Takes what an evaluation of the run found: set and statistic -> value."""
        if self._loggers:
            values = {f"evaluation/{cells}/{name}": value for (cells, name), value in statistics.items()}
            self._loggers.results(self._step, values)

    def close(self) -> None:
        """Closes the loggers."""
        if self._loggers is not None:
            self._loggers.close()


def show_results(folder: RunFolder, config: RunConfig, statistics: Mapping[tuple[str, str], float]) -> None:
    """Gives the loggers of a trained run what an evaluation of it found, as ``LoggerFeed.evaluated`` does."""
    if config.settings.loggers:
        with folder.locked(), contextlib.closing(LoggerFeed(folder, config, required=False)) as feed:
            feed.open()
            feed.evaluated(statistics)


def _numbers(row: Written, skip: Collection[str]) -> dict[str, float]:
    """The columns of a row that hold numbers."""
    return {name: float(value) for name, value in row.items() if isinstance(value, Real) and name not in skip}
