"""Shows how training or an evaluation goes: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tqdm import tqdm

LINES = 20  # plain lines in a whole run or evaluation


class Progress:
    """Reports updates, steps per second, return and time left; a context manager."""

    def __init__(self, total: int, first: int, title: str, *, bar: bool = True) -> None:
        """Starts the display.

        Args:
            total: Updates of the whole run.
            first: Updates made before, by a run that is resumed.
            title: Shown before the numbers.
            bar: Whether a terminal gets a bar.
        """
        self.total, self.title = total, title
        self._first, self._started = first, time.perf_counter()
        self._steps: float | None = None  # environment steps made before this display began
        fits = bar and _has_room()
        self._bar = (
            tqdm(total=total, initial=first, desc=title, unit="update", dynamic_ncols=True, mininterval=0.2)
            if fits
            else None
        )

    def __call__(self, updates: int, row: Mapping[str, float]) -> None:
        """Shows the state after an update.

        Args:
            updates: Made so far.
            row: Metrics of the last one.
        """
        if self._steps is None:  # steps of earlier sessions do not count for the speed of this one
            self._steps = row["steps"] * (1 - 1 / max(1, updates)) if self._first else 0
        elapsed = time.perf_counter() - self._started
        speed = (row["steps"] - self._steps) / max(elapsed, 1e-9)
        if self._bar is not None:
            self._bar.set_postfix_str(f"{speed:,.0f} steps/s, {_return(row)}", refresh=False)
            self._bar.update(updates - self._bar.n)
        elif updates == self.total or updates * LINES // self.total > (updates - 1) * LINES // self.total:
            left = elapsed / max(1, updates - self._first) * (self.total - updates)
            print(
                f"{self.title}: update {updates}/{self.total}, {speed:,.0f} steps/s, {_return(row)}, {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    def __enter__(self) -> Progress:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the display."""
        if self._bar is not None:
            self._bar.close()


class EpisodeProgress:
    """Reports episodes of an evaluation: a bar on a terminal, plain lines elsewhere; a context manager."""

    def __init__(self) -> None:
        """Shows nothing until the first call."""
        self._bar: tqdm[Any] | None = None
        self._started, self._first, self._lines = 0.0, -1, 0

    def __call__(self, title: str, done: int, total: int) -> None:
        """Shows where the evaluation is.

        Args:
            title: What is played now.
            done: Episodes so far; those before the first call were there already.
            total: Episodes in all.
        """
        if self._first < 0:
            self._started, self._first, self._lines = time.perf_counter(), done, done * LINES // total
            if _has_room():
                self._bar = tqdm(total=total, initial=done, unit="episode", dynamic_ncols=True, mininterval=0.2)
        if self._bar is not None:
            self._bar.set_description(title, refresh=False)
            self._bar.update(done - self._bar.n)
        elif done * LINES // total > self._lines:
            self._lines = done * LINES // total
            speed = (done - self._first) / (time.perf_counter() - self._started)
            print(
                f"{title}: episode {done}/{total}, {speed:,.0f} episodes/s, {(total - done) / speed:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    def __enter__(self) -> EpisodeProgress:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the display."""
        if self._bar is not None:
            self._bar.close()


def _has_room() -> bool:
    """Whether stderr is a terminal with room for a bar; those in some logs of builds do not know their size."""
    return sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).columns > 0


def _return(row: Mapping[str, float]) -> str:
    """The mean return; nothing to tell before the first episode has ended."""
    return "no episode yet" if math.isnan(row["return_mean"]) else f"return {row['return_mean']:.1f}"
