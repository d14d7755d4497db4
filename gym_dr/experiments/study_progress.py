"""Progress of a study: all runs and episodes in one bar, with the time left."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from gym_dr.experiments.progress import Progress
from gym_dr.runs.metrics import first_and_last


@dataclass
class Training:
    """One run and its progress.

    Attributes:
        variant: Its variant; runs of a variant are assumed to be equally fast.
        updates: Total number of updates.
        metrics: The file that it writes; on Ray it only appears at the end.
        made: Updates so far.
        pace: Seconds per update; NaN until known.
        step_seconds: Seconds per environment step; NaN until known.
        length: Mean length of the last episodes, in steps; NaN until known.
    """

    variant: str
    updates: int
    metrics: Path
    made: int = 0
    pace: float = math.nan
    step_seconds: float = math.nan
    length: float = math.nan

    def read(self) -> None:
        """Reads its progress.

        Raises:
            RunFolderError: The file cannot be read.
        """
        ends = None if self.made == self.updates else first_and_last(self.metrics)
        if ends is None:
            return
        first, last = ends
        self.made, seconds = int(last["update"]) + 1, last["seconds"] - first["seconds"]
        if self.made > 1:  # the first update includes compilation
            self.pace = seconds / (last["update"] - first["update"])
            self.step_seconds = seconds / max(last["steps"] - first["steps"], 1.0)
        if not math.isnan(last["length_mean"]):
            self.length = last["length_mean"]


class StudyProgress:
    """Shows training and then evaluation as shares of the total time.

    A run that has not started is assumed to be as fast as others of its variant, or else as all others. Until episodes
    are played, they are assumed to be as long as the last ones of training, with steps that take as long; times that
    depend on this are shown with "about".
    """

    def __init__(self, display: Progress, trainings: Sequence[Training], episodes: int, workers: int) -> None:
        """Shows nothing yet.

        Args:
            display: The display to update.
            trainings: All runs, including finished ones.
            episodes: Number of episodes of all policies on all sets.
            workers: Runs that train in parallel.
        """
        self.note = display.note
        self._display, self._trainings = display, trainings
        self._episodes, self._workers = episodes, workers
        self._playing_from: tuple[float, int] | None = None  # time when the first episodes ended, and their number

    def trained(self) -> None:
        """Shows the progress of training, from the files that the runs write.

        Raises:
            RunFolderError: A file cannot be read; it may be half written.
        """
        for training in self._trainings:
            training.read()
        done, left = self._training_seconds()
        through = sum(training.made == training.updates for training in self._trainings)
        title = f"training, {through} of {len(self._trainings)} runs done"
        together = max(sum(left) / self._workers, max(left, default=0.0))
        play = self._playing_seconds()
        self._show(title, done, done + sum(left) + play, f"about {in_words(together + play)} left")

    def played(self, title: str, done: int, total: int) -> None:
        """Shows the progress of evaluation; a ``ProgressCallback``."""
        spent, _ = self._training_seconds()
        play, now = self._playing_seconds(), time.perf_counter()
        left = f"about {in_words(play * (total - done) / total)} left"
        if self._playing_from is None or done < self._playing_from[1]:
            self._playing_from = now, done
        began, before = self._playing_from
        if done > before:
            left = f"{in_words((total - done) * (now - began) / (done - before))} left"
        self._show(title or "all episodes played", spent + play * done / total, spent + play, left)

    def _show(self, title: str, done: float, total: float, left: str) -> None:
        known = math.isfinite(total) and total > 0.0
        self._display(title, round(1000 * done / total) if known else 0, 1000, left=left if known else "")

    def _training_seconds(self) -> tuple[float, list[float]]:
        """Seconds of all updates so far, and of each run's remaining updates; NaN while unknown."""
        known = [training for training in self._trainings if not math.isnan(training.pace)]
        paces: dict[str, list[float]] = defaultdict(list)
        for training in known:
            paces[training.variant].append(training.pace)
        others = fmean(training.pace for training in known) if known else math.nan
        pace = {t.variant: fmean(paces[t.variant]) if paces[t.variant] else others for t in self._trainings}
        own = [pace[t.variant] if math.isnan(t.pace) else t.pace for t in self._trainings]
        done = sum(seconds * t.made for seconds, t in zip(own, self._trainings, strict=True))
        return done, [seconds * (t.updates - t.made) for seconds, t in zip(own, self._trainings, strict=True)]

    def _playing_seconds(self) -> float:
        """Seconds of all episodes, estimated from training."""
        found = [(t.length, t.step_seconds) for t in self._trainings if not math.isnan(t.length * t.step_seconds)]
        return self._episodes * fmean(length * seconds for length, seconds in found) if found else math.nan


def in_words(seconds: float) -> str:
    """Formats a time in seconds, minutes or hours."""
    if seconds < 120 or math.isnan(seconds):
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
