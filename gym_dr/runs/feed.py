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
from gym_dr.runs.metrics import reading
from gym_dr.wording import how_to_resume

Written = Mapping[str, Any]  # a row of a file: as texts, or as it is written


class LoggerFeed:
    """Turns rows of a run's files into points of its loggers.

    The step is that of the metrics. Numbers of an update and of the sampler are scalars; the draws of the episodes
    between two checkpoints make a histogram of each parameter. An update that was skipped makes no point of its own.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, *, required: bool) -> None:
        """Stores what to open; ``required`` as for ``Loggers``."""
        self._folder, self._config, self._required = folder, config, required
        self._loggers: Loggers | None = None
        self._drawn: dict[str, list[float]] = defaultdict(list)  # parameter -> draws since the last histogram
        self._learned: dict[str, float] = {}  # of the sampler, since the last point
        self._step = -1  # of the last point

    def open(self) -> None:
        """Opens the run's loggers and gives them what its files hold.

        Raises:
            PluginError: One cannot be opened, and is required.
            RunFolderError: A file is damaged.
        """
        names = self._config.settings.loggers
        if not names:
            return
        later = f" For what it lacks, once it works: {how_to_resume(self._folder.path)}"
        shown = self._config.to_dict()
        self._loggers = Loggers(names, self._folder.loggers, shown, required=self._required, later=later)
        updates = self._replay()
        if updates % self._config.settings.checkpoint_every:  # a callback ended the run, whose episodes are others now
            self._loggers.leave_out_beyond(self._step)

    def _replay(self) -> int:
        """Writes what the files hold; returns how many updates that are."""
        before: dict[int, list[Any]] = defaultdict(list)  # update -> what precedes its row of metrics
        names = list(self._config.randomization or ())
        with reading(self._folder.draws) as reader:
            for row in reader:
                before[int(row["update"])].append((self.episode, {name: float(row[name]) for name in names}))
        with reading(self._folder.sampler) as reader:
            for row in reader:
                before[int(row["update"])].append((self.sampler, _numbers(row, ())))
        with reading(self._folder.metrics) as reader:
            rows = list(reader)
            for place, row in enumerate(rows, 1):
                for take, other in before.pop(int(row["update"]), ()):
                    take(other)
                self.update(row, saved=place == len(rows))  # what a run that goes on has not saved is cut off
        return len(rows)

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
        if not self._loggers or int(row["steps"]) <= self._step:  # a skipped update makes no steps
            return
        self._step, updates = int(row["steps"]), int(row["update"]) + 1
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
            self._loggers.results(max(self._step, 0), values)

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
    found = {}
    for name, value in row.items():
        if name not in skip:
            with contextlib.suppress(ValueError, TypeError):
                found[name] = float(value)
    return found
