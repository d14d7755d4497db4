"""Trains several runs, in processes on this machine or as tasks on a Ray cluster.

Each run has its own folder, so its result depends neither on the launcher nor on how many runs train at once. A run
whose process was killed continues from its newest checkpoint, to the same result.

The machines of a cluster need not share a file system. A task gets the files of a run, trains it in its own folder, and
hands back the changed files at each checkpoint. So a lost machine or launcher costs at most one interval between
checkpoints: the files resume like those of a killed run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_dr.compiled.processors import usable_threads
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import ConfigError, LostRunError, TrainingError, check_known, raised_as
from gym_dr.runs.checkpoint import MAX_CHECKPOINTS, checkpoint_paths, updates_saved
from gym_dr.runs.folder import RunFolder, os_errors, write_atomically
from gym_dr.runs.terminal import Display, Progress, children_end_with_us, explain_interrupt, stop_signals

LAUNCHERS = ("local", "ray")
TAIL = 4096  # bytes at the end of ``metrics.csv``, which hold at least one row

Failures = dict[str, TrainingError]  # by the path of the run

PROGRAM = "from gym_dr.cli.launched import main; main()"
POLL = 0.1  # seconds between looks at processes
Command = Sequence[str]  # the arguments of gymdr
RETRIES = 3  # of a run whose worker was lost
Files = dict[str, bytes]  # content by path below the folder of a run


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


# ---- processes that run commands -------------------------------------------------------------------------------------


def resume_command(path: str, trust: Collection[str]) -> Command:
    """The command that trains a run to its end; ``trust`` are modules and files that its configuration may import."""
    return ["resume", path, "--quiet", *trusting(trust)]


def trusting(sources: Collection[str]) -> Command:
    """The options that trust modules and files."""
    return [f"--trust={source}" for source in sources if source]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int  # exit code: 0, 1 for a bug, 2 for an error that its message explains; see ``lost`` for others
    message: str = ""  # of the error; for a bug, its traceback

    @property
    def lost(self) -> bool:
        """Whether a signal killed or stopped it."""
        return self.code < 0 or self.code > 128


def start(command: Command, num_threads: int) -> subprocess.Popen[str]:
    """Starts a process that runs a command, on so many threads, and ends when its input closes.

    That happens when this process is killed, too. Ctrl-C does not reach it. SIGTERM stops it after the current update;
    the second time, at once.
    """
    modules = os.pathsep.join(folder or os.getcwd() for folder in sys.path)  # found as in this process
    with children_end_with_us():
        return subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, *command, f"--num-threads={num_threads}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,  # an error's message, which fits into a pipe
            text=True,
            env={**os.environ, "PYTHONPATH": modules},
        )


def ended(process: subprocess.Popen[str]) -> Ended | None:
    """How a process ended; None while it runs."""
    if (code := process.poll()) is None:
        return None
    return Ended(code=code, message=process.communicate()[0].strip())


def processes_at_once(workers: int | None, num_threads: int | None) -> int:
    """How many processes run at once: ``workers``, or as many as have a processor for each of their threads."""
    return workers or max(1, usable_threads() // (num_threads or 1))


def run_commands(
    commands: Mapping[str, Command],
    workers: int | None,
    watch: Callable[[Collection[str]], None] = lambda done: None,
    num_threads: int | None = None,
) -> dict[str, Ended]:
    """Runs commands in processes.

    Args:
        commands: By name.
        workers: Processes at once, at most; see ``processes_at_once``.
        watch: Called repeatedly with the names of the commands that have ended.
        num_threads: Threads of each; None for its share of the processors.

    Returns:
        How they ended, by name.

    Raises:
        KeyboardInterrupt: A signal arrived, and all commands have ended; its number is the argument.
    """
    at_once = processes_at_once(workers, num_threads)
    share = num_threads or max(1, usable_threads() // min(at_once, max(1, len(commands))))
    waiting, running, done = list(commands), dict[str, subprocess.Popen[str]](), dict[str, Ended]()
    received: list[int] = []
    passed_on = 0  # signals passed on
    with stop_signals(received.append):
        try:
            while running or (waiting and not received):
                while waiting and not received and len(running) < at_once:
                    name = waiting.pop(0)
                    running[name] = start(commands[name], share)
                time.sleep(POLL)
                for _ in received[passed_on:]:  # the first lets updates finish, the second does not
                    passed_on += 1
                    for process in running.values():
                        process.terminate()
                for name, process in list(running.items()):
                    if (found := ended(process)) is not None:
                        done[name] = found
                        del running[name]
                watch(done)
        finally:
            for process in running.values():
                process.communicate()  # closes its input
    if received:
        raise KeyboardInterrupt(received[0])
    return done


# the results of a task: the changed files, at each checkpoint and at the end, and, at the end, how it ended
HandedBack = tuple[Files, Ended | None]


# ---- tasks on a Ray cluster ------------------------------------------------------------------------------------------


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
