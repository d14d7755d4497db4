"""Passes a run's values to its loggers while it trains."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np

from gym_dr.errors import PluginError, PluginWarning, warn
from gym_dr.registry import load_object
from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.loggers import LOGGERS, LogWriter
from gym_dr.runs.metrics import last_row

MAX_REASON = 300  # characters of a failure's message


class RunLoggers:
    """The loggers of a run, which get the rows of its files. A logger that fails is disabled; training continues.

    The step is that of the metrics. Numbers of an update and of the sampler are scalars; the draws of the episodes
    between two checkpoints make a histogram of each parameter. A run that resumes repeats the points after its newest
    checkpoint.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, *, required: bool) -> None:
        """Opens nothing yet; ``required`` loggers must open later, others are disabled if they fail."""
        self._folder, self._config, self._required = folder, config, required
        self._writers: dict[str, LogWriter] = {}
        self._drawn: dict[str, list[float]] = defaultdict(list)  # parameter -> draws since the last histogram
        self._sampler: dict[str, float] = {}  # of the sampler, since the last point
        self._step = 0  # of the last point

    def open(self) -> None:
        """Opens the loggers, each with its own folder.

        Raises:
            PluginError: A required logger cannot be opened.
            RunFolderError: The metrics so far are damaged.
        """
        names = self._config.settings.loggers
        if names:
            self._step = int(last_row(self._folder.metrics).get("steps", 0))
        for name in names:
            path = self._folder.loggers.resolve() / name
            try:
                path.mkdir(parents=True, exist_ok=True)
                self._writers[name] = load_object(LOGGERS.get(name).open)(path, self._config.to_dict())
            except Exception as error:  # a service may raise anything
                with contextlib.suppress(OSError):  # the folder holds files
                    path.rmdir()
                why = f"cannot be opened: {_described(error)}"
                if self._required:
                    self.close()
                    raise PluginError(f"Logger {name!r} {why}") from error
                self._disable(name, why)

    def episode(self, row: Mapping[str, Any]) -> None:
        """Takes a row of ``draws.csv``."""
        if self._writers:
            for name in self._config.randomization or ():
                self._drawn[name].append(float(row[name]))

    def sampler(self, row: Mapping[str, Any]) -> None:
        """Takes a row of ``sampler.csv``."""
        self._sampler = _numbers(row, "sampler", ("update",))

    def update(self, row: Mapping[str, Any], *, saved: bool) -> None:
        """Takes a row of ``metrics.csv``, after the update's other rows, and writes.

        Args:
            row: The row.
            saved: Whether a checkpoint follows even if none is due.
        """
        if not self._writers:
            return
        self._step, updates = row["steps"], row["update"] + 1
        histograms = {}
        if saved or updates % self._config.settings.checkpoint_every == 0 or updates == self._config.options.updates:
            histograms = {f"draws/{name}": np.array(values) for name, values in self._drawn.items()}
            self._drawn.clear()
        scalars = {**_numbers(row, "training", ("update", "steps")), **self._sampler}
        self._each(lambda writer: writer.write(self._step, scalars, histograms))
        self._sampler = {}

    def evaluated(self, statistics: Mapping[tuple[str, str], float]) -> None:
        """Takes the results of an evaluation: (set, statistic) -> value."""
        values = {f"{cells}/{name}": value for (cells, name), value in statistics.items()}
        self._each(lambda writer: writer.results(self._step, _numbers(values, "evaluation")))

    def close(self) -> None:
        """Closes the loggers."""
        self._each(lambda writer: writer.close())
        self._writers.clear()

    def _each(self, call: Callable[[LogWriter], None]) -> None:
        for name, writer in list(self._writers.items()):
            try:
                call(writer)
            except Exception as error:  # a service may raise anything
                self._disable(name, f"failed: {_described(error)}")

    def _disable(self, name: str, why: str) -> None:
        self._writers.pop(name, None)
        warn(f"Logger {name!r} {why} It is disabled for the rest of the run.", PluginWarning)


def show_results(folder: RunFolder, config: RunConfig, statistics: Mapping[tuple[str, str], float]) -> None:
    """Gives the results of an evaluation to the loggers of a trained run; see ``RunLoggers.evaluated``."""
    if config.settings.loggers:
        with folder.locked(), contextlib.closing(RunLoggers(folder, config, required=False)) as loggers:
            loggers.open()
            loggers.evaluated(statistics)


def _numbers(row: Mapping[str, Any], prefix: str, skip: Collection[str] = ()) -> dict[str, float]:
    """The finite numbers of a row, as PREFIX/NAME."""
    found = {name: float(value) for name, value in row.items() if isinstance(value, Real) and name not in skip}
    return {f"{prefix}/{name}": value for name, value in found.items() if math.isfinite(value)}


def _described(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:MAX_REASON].rstrip('.')}."
