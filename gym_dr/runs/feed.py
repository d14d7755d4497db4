"""What a run gives its loggers, while it trains or from its files: the same points either way."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.loggers import Loggers
from gym_dr.runs.metrics import read_rows

Written = Mapping[str, Any]  # a row of a file: as texts, or as it is written


class LoggerFeed:
    """Turns rows of a run's files into points of its loggers.

    The step is that of the metrics. Numbers of an update and of the sampler are scalars; the draws of the episodes
    between two checkpoints make a histogram of each parameter.
    """

    def __init__(self, folder: RunFolder, config: RunConfig) -> None:
        """Opens the run's loggers.

        Raises:
            PluginError: One cannot be opened.
        """
        self._folder, self._config = folder, config
        self._loggers = Loggers(config.settings.loggers, folder.loggers, config.to_dict())
        self._drawn: dict[str, list[float]] = defaultdict(list)  # parameter -> draws since the last histogram
        self._learned: dict[str, float] = {}  # of the sampler, since the last update
        self._step = 0

    def replay(self) -> None:
        """Gives the loggers what the run's files hold.

        Raises:
            RunFolderError: A file is damaged.
        """
        if not self._loggers:
            return
        by_update: dict[str, list[tuple[Any, Written]]] = defaultdict(list)
        for path, take in ((self._folder.draws, self.episode), (self._folder.sampler, self.sampler)):
            for row in read_rows(path):
                by_update[row["update"]].append((take, row))
        for row in read_rows(self._folder.metrics):
            for take, other in by_update[row["update"]]:
                take(other)
            self.update(row)

    def episode(self, row: Written) -> None:
        """Takes a row of ``draws.csv``."""
        if self._loggers:
            for name in self._config.randomization or ():
                self._drawn[name].append(float(row[name]))

    def sampler(self, row: Written) -> None:
        """Takes a row of ``sampler.csv``."""
        self._learned = {f"sampler/{name}": value for name, value in _numbers(row, ("update",)).items()}

    def update(self, row: Written) -> None:
        """Takes a row of ``metrics.csv``, after the others of its update, and writes."""
        if not self._loggers:
            return
        self._step, updates = int(row["steps"]), int(row["update"]) + 1
        scalars = {f"training/{name}": value for name, value in _numbers(row, ("update", "steps")).items()}
        histograms = {}
        if updates % self._config.settings.checkpoint_every == 0 or updates == self._config.options.updates:
            histograms = {f"draws/{name}": np.array(values) for name, values in self._drawn.items()}
            self._drawn.clear()
        self._loggers.write(self._step, {**scalars, **self._learned}, histograms)
        self._learned = {}

    def evaluated(self, statistics: Mapping[tuple[str, str], float]) -> None:
        """Takes what an evaluation of the run found: set and statistic -> value."""
        self._loggers.results(self._step, {f"evaluation/{cells}/{name}": v for (cells, name), v in statistics.items()})

    def close(self) -> None:
        """Closes the loggers."""
        self._loggers.close()


def show_results(folder: RunFolder, config: RunConfig, statistics: Mapping[tuple[str, str], float]) -> None:
    """Gives the loggers of a trained run what an evaluation of it found, as ``LoggerFeed.evaluated`` does."""
    if config.settings.loggers:
        with contextlib.closing(LoggerFeed(folder, config)) as feed:
            feed.replay()
            feed.evaluated(statistics)


def _numbers(row: Written, skip: Collection[str]) -> dict[str, float]:
    """The columns of a row that hold numbers."""
    found = {}
    for name, value in row.items():
        if name not in skip:
            with contextlib.suppress(ValueError, TypeError):
                found[name] = float(value)
    return found
