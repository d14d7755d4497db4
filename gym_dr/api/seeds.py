"""Trains runs that differ only in their seed, and aggregates them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from gym_dr.runs.folder import RunFolder
from gym_dr.runs.launch import Launch, launch
from gym_dr.runs.stopping import StopRequest, explain_interrupt, stop_signals


def train_seeds(
    folders: Sequence[RunFolder], root: Path, how: Launch, *, trust: Collection[str], progress: bool
) -> None:
    """Trains the runs in a folder and writes their aggregate into it; raises what ``launch`` and the next one raise."""
    launch(folders, how, trust=trust, display="lines" if progress else "nothing")
    aggregate_runs(folders, root)


def aggregate_runs(folders: Sequence[RunFolder], root: Path) -> None:
    """Writes the aggregate of several trained seeds.

    Raises:
        RunFolderError: A run has no metrics, or a file cannot be written.
        Interrupted: A signal arrived.
    """
    from gym_dr.evaluation.aggregate import aggregate  # heavy

    stop = StopRequest()
    with explain_interrupt(f"All runs are trained. Aggregate them with: gymdr resume {root}"):
        with stop_signals(stop):
            aggregate(folders, root)
        stop.check()
