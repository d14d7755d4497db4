"""Trains several runs, in processes on this machine or as tasks on a Ray cluster.

Each run has its own folder, so its result depends neither on the launcher nor on how many runs train at once. A run
whose process was killed continues from its newest checkpoint, to the same result.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import ConfigError, LostRunError, TrainingError, check_known
from gym_dr.runs.cluster import train_on_ray
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.processes import Ended, resume_command, run_commands
from gym_dr.runs.terminal import Display, Progress, explain_interrupt

LAUNCHERS = ("local", "ray")
TAIL = 4096  # bytes at the end of ``metrics.csv``, which hold at least one row

Failures = dict[str, TrainingError]  # by the path of the run


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Where several runs train, how many at once, and on how many threads.

    Raises:
        UnknownNameError: There is no such launcher.
        ConfigError: Ray is not installed, another launcher gets a Ray address, or a number of threads is impossible.
    """

    launcher: str = "local"  # processes on this machine, or "ray": tasks on a cluster
    workers: int | None = None  # processes at once; None for one per core, or fewer that have their threads
    num_threads: int | None = None  # of each run; None for its share of the cores, with Ray for one
    ray_address: str | None = None  # of a running cluster; None starts one on this machine

    def __post_init__(self) -> None:
        if self.num_threads is not None:
            check_whole_number("`num_threads`", self.num_threads)
        check_known("launcher", self.launcher, LAUNCHERS)
        if self.launcher != "ray" and self.ray_address is not None:
            raise ConfigError("`ray_address`: expected with `launcher='ray'`, got another launcher.")
        if self.launcher == "ray" and importlib.util.find_spec("ray") is None:
            raise ConfigError("`launcher='ray'` needs Ray: pip install 'gym-dr[ray]'.")


def launch(folders: Sequence[RunFolder], how: Launch, *, trust: Collection[str] = (), display: Display = "bar") -> None:
    """Trains runs whose folders hold their configurations; for arguments see ``train_folders``.

    Raises:
        ConfigError: There is no Ray cluster at the address.
        LostRunError: A run's process was killed.
        TrainingError: A run failed; the others are trained.
        Interrupted: A signal stopped the runs; the message says how to continue.
    """
    failed = train_folders(folders, how, trust=trust, display=display)
    if failed:
        lines = "\n".join(f"  {path}: {failed[path]}" for path in sorted(failed))
        kind = LostRunError if any(isinstance(error, LostRunError) for error in failed.values()) else TrainingError
        raise kind(f"{len(failed)} of the runs failed; the others are complete:\n{lines}")


def train_folders(
    folders: Sequence[RunFolder], how: Launch, *, trust: Collection[str] = (), display: Display = "bar"
) -> Failures:
    """Trains runs whose folders hold their configurations; returns the failures.

    Args:
        folders: Their folders.
        how: Where they train, and how many at once.
        trust: Modules and files that their configurations may import.
        display: How to show the progress of all runs.

    Raises:
        ConfigError: There is no Ray cluster at the address.
        BusyFolderError: Another process trains a run, with Ray as the launcher.
        Interrupted: A signal stopped the runs; the message says how to continue.
    """
    runs = {str(folder.path): folder for folder in folders}
    updates = {path: _updates(folder) for path, folder in runs.items()}
    with Progress("update", display) as progress:

        def watch(ended: Collection[str]) -> None:
            done = sum(_updates_made(folder) for folder in folders)
            progress(f"{len(ended)} of {len(runs)} runs done", done, sum(updates.values()))

        watch([])
        with explain_interrupt(f"Stopped. Continue with: gymdr resume {folders[0].path.parent}"):
            if how.launcher == "ray":
                ended = train_on_ray(runs, how.ray_address, trust, watch, how.num_threads or 1)
            else:
                commands = {path: resume_command(path, trust) for path in runs}
                ended = run_commands(commands, how.workers, watch, how.num_threads)
        for one in ended.values():
            if one.code == 1:
                progress.note(one.message)
    return {path: _failure(path, one) for path, one in ended.items() if one.code}


def _failure(path: str, ended: Ended) -> TrainingError:
    """The error of a run that failed."""
    if ended.lost:
        return LostRunError(f"its process was killed. Continue with: gymdr resume {path}")
    message = ended.message or f"its process ended with exit code {ended.code}"
    return TrainingError(message.splitlines()[-1] if ended.code == 1 else message)


def _updates(folder: RunFolder) -> int:
    """The number of updates of a whole run."""
    table = folder.read_config()
    return int(table[table["algorithm"]]["updates"])


def _updates_made(folder: RunFolder) -> int:
    """The number of updates in a run's metrics, which may be growing."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(folder.metrics, "rb") as file:
        file.seek(max(0, folder.metrics.stat().st_size - TAIL))
        return int(file.read().split(b"\n")[-2].split(b",")[0]) + 1
    return 0
