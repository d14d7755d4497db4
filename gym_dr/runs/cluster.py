"""Trains runs as tasks on a Ray cluster, whose machines need not share a file system.

A task gets the files of a run, trains it in its own folder, and hands back the changed files at each checkpoint. So a
lost machine or launcher costs at most one interval between checkpoints: the files resume like those of a killed run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, raised_as
from gym_dr.runs.checkpoint import MAX_CHECKPOINTS, checkpoint_paths, updates_saved
from gym_dr.runs.folder import RunFolder, os_errors, write_atomically
from gym_dr.runs.processes import POLL, Ended, ended, resume_command, start

RETRIES = 3  # of a run whose worker was lost

Files = dict[str, bytes]  # content by path below the folder of a run


# the results of a task: the changed files, at each checkpoint and at the end, and, at the end, how it ended
HandedBack = tuple[Files, Ended | None]


def train_on_ray(
    folders: Mapping[str, RunFolder],
    address: str | None,
    trust: Collection[str],
    watch: Callable[[Collection[str]], None],
    num_threads: int = 1,
) -> dict[str, Ended]:
    """Trains runs on a Ray cluster; returns how they ended, with a negative code after too many lost workers.

    Args:
        folders: The runs' folders by path.
        address: The cluster's address; None starts one on this machine.
        trust: Modules and files that configurations may import, on the machines of the cluster.
        watch: Called repeatedly with the paths of the runs that have ended.
        num_threads: Of each run, which gets as many of the cluster's processors.

    Raises:
        ConfigError: There is no Ray cluster at the address.
        BusyFolderError: Another process writes into a folder.
        KeyboardInterrupt: A signal arrived; its number is the argument.
    """
    with contextlib.ExitStack() as stack:
        for folder in folders.values():
            stack.enter_context(folder.locked())
        ray = stack.enter_context(_connected(address))
        task = ray.remote(num_cpus=num_threads, max_retries=0, num_returns="streaming")(train_files)
        running: dict[Any, str] = {}  # a task's results -> the path of its run
        done, lost = dict[str, Ended](), Counter[str]()
        waiting = list(folders)
        try:
            while waiting or running:
                for path in waiting:
                    running[task.remote(path, read_changes(folders[path], {}), tuple(trust), num_threads)] = path
                waiting = []
                for stream in ray.wait(list(running), num_returns=1, timeout=1.0)[0]:
                    path = running.pop(stream)
                    try:
                        changed, end = ray.get(next(stream))
                    except ray.exceptions.RayTaskError as error:  # in our own function, such as a full disk
                        done[path] = Ended(code=1, message=str(error))
                    except ray.exceptions.RayError:
                        lost[path] += 1
                        if lost[path] > RETRIES:
                            done[path] = Ended(code=-1)
                        else:
                            waiting.append(path)
                    else:
                        write_files(folders[path], changed)
                        if end is None:
                            running[stream] = path
                        else:
                            done[path] = end
                watch(done)
        except SystemExit as stopped:  # how Ray answers SIGTERM
            raise KeyboardInterrupt(stopped.code) from None
        finally:
            for stream in running:
                ray.cancel(stream, force=True)
    return done


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    if address is None:
        # binds a cluster of this machine alone to the loopback address; the variable's name is historical
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    started = not ray.is_initialized()
    # without an address, Ray would join the cluster named in a file in /tmp, by whomever, and unpickle its answers
    named = address or os.environ.get("RAY_ADDRESS") or "local"
    with raised_as(ConfigError, f"`ray_address`: there is no Ray cluster at {named!r}"):
        ray.init(address=named, ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def train_files(path: str, files: Files, trust: Collection[str], num_threads: int) -> Iterator[HandedBack]:
    """The task: trains the run with these files; ``path`` is its folder on the launching machine."""
    with tempfile.TemporaryDirectory(prefix="gym_dr-") as place:
        folder = RunFolder(Path(place, Path(path).name))  # the name is recorded in evaluations
        write_files(folder, files)
        known: dict[str, tuple[int, int]] = {}
        read_changes(folder, known)
        saved, process = updates_saved(folder), start(resume_command(str(folder.path), trust), num_threads)
        try:
            while (end := ended(process)) is None:
                time.sleep(POLL)
                if (updates := updates_saved(folder)) > saved:
                    saved = updates
                    yield read_changes(folder, known), None
        finally:
            process.communicate()  # closes its input
        message = end.message.replace(str(folder.path), path)
        yield read_changes(folder, known), Ended(code=end.code, message=message)


def read_changes(folder: RunFolder, known: dict[str, tuple[int, int]]) -> Files:
    """Reads the files of a run, which may be growing, as a kill would leave them.

    Args:
        folder: The run's folder.
        known: Times and sizes of known files, which are left out unless changed; updated in place.
    """
    files = {}
    paths = [path for path in folder.path.rglob("*") if path.is_file() and path.name[0] != "."]
    # checkpoints first: the logs must have the rows before them
    for path in sorted(paths, key=lambda path: path.parent != folder.checkpoints):
        with contextlib.suppress(FileNotFoundError):  # an old checkpoint
            name, stat = path.relative_to(folder.path).as_posix(), path.stat()
            if known.get(name) != (stat.st_mtime_ns, stat.st_size):
                content = path.read_bytes()
                files[name] = content[: content.rfind(b"\n") + 1] if path.suffix == ".csv" else content
                known[name] = stat.st_mtime_ns, stat.st_size
    return files


def write_files(folder: RunFolder, files: Files) -> None:
    """Writes a run's files, checkpoints last, so that the run can resume after a kill at any time."""
    for name in sorted(files, key=lambda name: name.startswith(folder.checkpoints.name)):
        path = folder.path / name
        with os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, files[name])
    for old in checkpoint_paths(folder)[:-MAX_CHECKPOINTS]:
        old.unlink(missing_ok=True)
