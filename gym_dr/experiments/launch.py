"""Trains several seeds, in processes on this machine or as tasks on a Ray cluster.

Each seed is a run in its own folder, so its result depends neither on the launcher nor on how many run at once, and a
seed that is run again gives the same result.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, GymDrError, Interrupted, LostRunError, TrainingError, check_known
from gym_dr.experiments.progress import Display
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.configure import open_run
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.stopping import StopRequest, children_end_with_us, explain_interrupt, stop_signals
from gym_dr.wording import addressing, at_command_line, how_to_resume, short_warnings, spelled

LAUNCHERS = ("local", "ray")
RETRIES = 3  # of a Ray task whose worker was lost

Failures = dict[str, TrainingError]  # by the path of the run


def check_launcher(launcher: str, ray_address: str | None = None) -> None:
    """Checks that a launcher is available, before any folder is touched.

    Raises:
        UnknownNameError: There is no such launcher.
        ConfigError: Ray is not installed, or another launcher gets an address of Ray.
    """
    check_known("launcher", launcher, LAUNCHERS)
    if launcher != "ray" and ray_address is not None:
        raise ConfigError(
            f"{spelled('ray_address')}: expected with {spelled('launcher', 'ray')}, got another launcher."
        )
    if launcher == "ray" and importlib.util.find_spec("ray") is None:
        raise ConfigError(f"{spelled('launcher', 'ray')} needs Ray: pip install 'gym-dr[ray]'.")


def launch(
    folders: Sequence[RunFolder],
    *,
    launcher: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    trust: Collection[str] = (),
    display: Display = "lines",
) -> None:
    """Trains runs whose folders have their configurations; for the arguments see ``gym_dr.train``.

    Raises:
        ConfigError: There is no Ray cluster at the address.
        LostRunError: A run's process was killed.
        TrainingError: A run failed; the others are trained.
        Interrupted: A signal stopped the runs; the message says how to continue.
    """
    failed = train_folders(
        folders, launcher=launcher, workers=workers, ray_address=ray_address, trust=trust, display=display
    )
    if failed:
        lines = "\n".join(f"  {path}: {failed[path]}" for path in sorted(failed))
        kind = LostRunError if any(isinstance(error, LostRunError) for error in failed.values()) else TrainingError
        raise kind(f"{len(failed)} of the runs failed; the others are complete:\n{lines}")


def train_folders(
    folders: Sequence[RunFolder],
    *,
    launcher: str,
    workers: int | None,
    ray_address: str | None,
    trust: Collection[str],
    display: Display,
) -> Failures:
    """Trains runs like ``launch``, but returns those that failed instead of raising.

    Raises:
        ConfigError: There is no Ray cluster at the address.
        Interrupted: A signal stopped the runs; the message says how to continue.
    """
    if launcher != "ray":
        return _launch_local(folders, workers or os.cpu_count() or 1, trust, display)
    with contextlib.ExitStack() as held:  # the tasks write elsewhere
        for folder in folders:
            held.enter_context(folder.locked())
        return _launch_ray(folders, ray_address, trust, display)


def train_folder(path: str, trust: Collection[str], display: Display, stop: StopRequest | None = None) -> str:
    """Trains the run whose configuration is in a folder, from its newest checkpoint if there is one.

    Runs in a separate process; its signal handler sets ``stop``, if given. Returns the message of an error, or an empty
    text if all went well.
    """
    from gym_dr.experiments.one_run import train_run  # heavy

    try:
        load_plugins()
        with warnings.catch_warnings(record=True) as found:  # the launching process has shown them
            warnings.simplefilter("always")
            opened = open_run(path, trust)
        with short_warnings("/".join(Path(path).parts[-2:]), known=[str(warning.message) for warning in found]):
            train_run(*opened, resume=True, display=display, stop=stop)
    except Interrupted as stopped:  # the launching process says how to continue all runs
        print(stopped, file=sys.stderr, flush=True)
        raise
    except GymDrError as error:
        return str(error)
    except Exception as error:  # a bug in a plugin's algorithm or in gym_dr: other runs continue
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


def train_config(
    name: str, config_json: str, trust: Collection[str], display: Display, command_line: bool
) -> tuple[str, dict[str, bytes]]:
    """Trains a run in a temporary folder; returns the result of ``train_folder`` and the files that the run wrote.

    A task on another machine cannot write to this one's folders, so the files travel back with the result. They contain
    the name of the folder, so the temporary one has the name of the final one.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = RunFolder.create(Path(temporary) / name, config_json, overwrite=False)
        with addressing(command_line=command_line):
            message = train_folder(str(folder.path), trust, display)
        written = [path for path in folder.path.rglob("*") if path.is_file() and not path.name.startswith(".")]
        files = {str(path.relative_to(folder.path)): path.read_bytes() for path in written}
    return message, files


def _launch_local(folders: Sequence[RunFolder], workers: int, trust: Collection[str], display: Display) -> Failures:
    """Trains runs in processes on this machine."""
    calls = {str(folder.path): (str(folder.path), trust, display) for folder in folders}
    with explain_interrupt(f"Stopped. Continue with: {how_to_resume(folders[0].path.parent)}"):
        messages, lost = call_in_processes(train_folder, calls, workers)
    failed: Failures = {path: TrainingError(message) for path, message in messages.items() if message}
    return failed | {
        path: LostRunError(f"its process was killed. Continue with: {how_to_resume(path)}") for path in lost
    }


def call_in_processes(
    function: Callable[..., Any], calls: Mapping[str, Sequence[Any]], workers: int
) -> tuple[dict[str, Any], list[str]]:
    """Calls a function in spawned processes: a fork would copy torch's threads in an unknown state.

    Args:
        function: Of a module. It gets the ``StopRequest`` of its process after its arguments.
        calls: Name -> arguments.
        workers: Processes, at most.

    Returns:
        The results by name, and the names of calls that were lost with a process that was killed.

    Raises:
        KeyboardInterrupt: A signal arrived; its number is the argument.
    """
    context = multiprocessing.get_context("spawn")
    results: dict[str, Any] = {}
    lost: list[str] = []
    received: list[int] = []

    def stop(number: int) -> None:
        """Forwards a signal: runs end after the current update, or at once at a second signal."""
        received.append(number)
        for child in multiprocessing.active_children():
            child.terminate()
        if len(received) > 1:
            raise KeyboardInterrupt(number)

    size = min(workers, len(calls))
    with (
        stop_signals(stop),
        ProcessPoolExecutor(max_workers=size, mp_context=context, initializer=_begin_worker) as pool,
    ):
        with children_end_with_us():
            shared = function, at_command_line()
            futures = {pool.submit(_call_in_worker, *shared, *arguments): name for name, arguments in calls.items()}
        try:
            for future in as_completed(futures):
                try:
                    results[futures[future]] = future.result()
                except BrokenProcessPool:
                    lost.append(futures[future])
                if received:
                    raise KeyboardInterrupt(received[0])
            if received:  # after the last call had ended
                raise KeyboardInterrupt(received[0])
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise KeyboardInterrupt(*received[:1]) from None
    return results, lost


# ---- a process of the pool -------------------------------------------------------------------------------------------

_stop = StopRequest()  # of this process; it outlives a run, since the pool may have another one for this process
_training = threading.Event()


def _begin_worker() -> None:
    """Prepares a process of the pool for signals and for the end of its parent."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda number, _: _request_stop(number))


def _request_stop(number: int) -> None:
    """Requests a stop, but never ends a process between runs: it may hold a queue's lock that all others need."""
    if _training.is_set():
        _stop(number)
    else:
        _stop.number = _stop.number or number


def _call_in_worker(function: Callable[..., Any], command_line: bool, *arguments: Any) -> Any:
    """Calls the function, unless this process has been asked to stop."""
    _training.set()
    try:
        _stop.check()
        with addressing(command_line=command_line):
            return function(*arguments, _stop)
    finally:
        _training.clear()


def _end_with_parent() -> None:
    """Ends this process when its parent is killed, since nothing would continue the other runs."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a child
    parent.join()
    os._exit(1)


def _launch_ray(
    folders: Sequence[RunFolder], address: str | None, trust: Collection[str], display: Display
) -> Failures:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    if address is None:
        # binds a cluster on only this machine to the loopback address; the variable's name is historical
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    started = not ray.is_initialized()
    # without an address Ray joins the cluster that a file in /tmp names, whoever wrote it, and unpickles its answers
    named = address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        ray.init(address=named, ignore_reinit_error=True, log_to_driver=True, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{spelled('ray_address')}: there is no Ray cluster at {named!r}: {error}") from None
    try:
        # Ray restarts a task whose worker or machine is lost; the seed gives the same result
        task = ray.remote(max_retries=RETRIES, num_cpus=1)(train_config)
        waiting = {
            task.remote(
                folder.path.name, folder.config.read_text(encoding="utf-8"), trust, display, at_command_line()
            ): folder
            for folder in folders
        }
        failed: Failures = {}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            folder = waiting.pop(done)
            try:
                message, files = ray.get(done)
            except ray.exceptions.RayError as error:
                problem = f"its task was lost {RETRIES + 1} times ({type(error).__name__})"
                failed[str(folder.path)] = LostRunError(problem)
            else:
                _unpack(folder, files)
                if message:
                    failed[str(folder.path)] = TrainingError(message)
    finally:
        if started:
            ray.shutdown()
    return failed


def _unpack(folder: RunFolder, files: dict[str, bytes]) -> None:
    """Writes the files of a run that was trained elsewhere into its folder."""
    for path in (folder.checkpoints, folder.loggers):  # of an earlier attempt
        shutil.rmtree(path, ignore_errors=True)
    # checkpoints last: a run with its last checkpoint then has everything else
    for name, content in sorted(files.items(), key=lambda item: ("checkpoints" in Path(item[0]).parts, item[0])):
        path = folder.path / name
        if not path.resolve().is_relative_to(folder.path.resolve()):
            raise TrainingError(f"{folder.path}: a task sent the file {name!r}, which is outside the run folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


def aggregate_runs(folders: Sequence[RunFolder], root: Path) -> None:
    """Writes the aggregate of several trained seeds.

    Raises:
        RunFolderError: A run has no metrics, or a file cannot be written.
        Interrupted: A signal arrived.
    """
    from gym_dr.evaluation.aggregate import aggregate  # heavy

    stop = StopRequest()
    with explain_interrupt(f"All runs are trained. Aggregate them with: {how_to_resume(root)}"):
        with stop_signals(stop):
            aggregate(folders, root)
        stop.check()
