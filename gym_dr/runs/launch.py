"""Trains several runs, in processes on this machine or as tasks on a Ray cluster.

Each run is in its own folder, so its result depends neither on the launcher nor on how many are trained at once. One
whose process was killed goes on from its newest checkpoint, to the same result.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from gym_dr.compiled.threads import usable_threads
from gym_dr.errors import (
    ConfigError,
    GymDrError,
    Interrupted,
    LostRunError,
    TrainingError,
    check_known,
)
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.configure import open_run
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.progress import Display, Progress
from gym_dr.runs.stopping import children_end_with_us, explain_interrupt, stop_signals

LAUNCHERS = ("local", "ray")
RETRIES = 3  # of a Ray task whose worker was lost

Failures = dict[str, TrainingError]  # by the path of the run
Calls = Mapping[str, Sequence[Any]]  # name -> arguments


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Where several runs train, and how many at once.

    Raises:
        UnknownNameError: There is no such launcher.
        ConfigError: Ray is not installed, or another launcher gets an address of Ray.
    """

    launcher: str = "local"  # processes on this machine, or "ray": tasks on a cluster
    workers: int | None = None  # processes at once; None for one per core
    ray_address: str | None = None  # of a running cluster; None starts one on this machine

    def __post_init__(self) -> None:
        check_known("launcher", self.launcher, LAUNCHERS)
        if self.launcher != "ray" and self.ray_address is not None:
            raise ConfigError("`ray_address`: expected with `launcher='ray'`, got another launcher.")
        if self.launcher == "ray" and importlib.util.find_spec("ray") is None:
            raise ConfigError("`launcher='ray'` needs Ray: pip install 'gym-dr[ray]'.")


def launch(
    folders: Sequence[RunFolder], how: Launch, *, trust: Collection[str] = (), display: Display = "lines"
) -> None:
    """Trains runs whose folders have their configurations; for the arguments see ``train_folders``.

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
    """Trains runs whose folders have their configurations; returns those that failed.

    Args:
        folders: Their folders; with Ray, on a file system that all machines share.
        how: Where they train, and how many at once.
        trust: Modules that their configurations may import.
        display: How to show progress: a bar over the runs, or lines, those of each run among them.

    Raises:
        ConfigError: There is no Ray cluster at the address.
        Interrupted: A signal stopped the runs; the message says how to continue.
    """
    of_each = "lines" if display == "lines" else "nothing"
    # tasks of Ray have folders of their own to work in
    paths = {
        str(folder.path): str(folder.path.resolve() if how.launcher == "ray" else folder.path) for folder in folders
    }
    calls = {name: (path, tuple(trust), of_each) for name, path in paths.items()}
    message = f"Stopped. Continue with: gymdr resume {folders[0].path.parent}"
    with Progress("run", display) as progress, explain_interrupt(message):
        show = functools.partial(progress, "training", total=len(folders))
        show(done=0)
        if how.launcher == "ray":
            messages = _call_on_ray(train_folder, calls, how.ray_address, lambda count: show(done=count))
        else:
            messages = call_in_processes(train_folder, calls, how.workers, lambda count: show(done=count))
    failed: Failures = {}
    for path, text in messages.items():
        if text is None:
            failed[path] = LostRunError(f"its process was killed. Continue with: gymdr resume {path}")
        elif text:
            failed[path] = TrainingError(text)
    return failed


def train_folder(path: str, trust: Collection[str], display: Display) -> str:
    """Trains the run whose configuration is in a folder, from its newest checkpoint if there is one.

    Returns the message of an error, or an empty text if all went well.
    """
    from gym_dr.api.training import train_and_evaluate  # it begins where this ends

    try:
        load_plugins()
        train_and_evaluate(open_run(path, trust), resume=True, display=display)
    except Interrupted as stopped:  # the launching process says how to continue all runs
        print(stopped, file=sys.stderr, flush=True)
        raise
    except GymDrError as error:
        return str(error)
    except Exception as error:  # a bug in a plugin's algorithm or in gym_dr: other runs continue
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


def call_in_processes(
    function: Callable[..., Any], calls: Calls, workers: int | None, ended: Callable[[int], None] = lambda count: None
) -> dict[str, Any]:
    """Calls a function in spawned processes, one for each call: a fork would copy torch's threads in an unknown state.

    Args:
        function: Of a module. It handles SIGTERM.
        calls: Name -> arguments.
        workers: Processes at once, at most; None for one per core.
        ended: Called with the number of calls that have ended.

    Returns:
        The results by name; None for calls whose process was killed.

    Raises:
        KeyboardInterrupt: A signal arrived; its number is the argument.
    """
    waiting, running, results = list(calls), dict[Any, str](), dict[str, Any]()  # running: see ``_begin``
    received: list[int] = []

    def stop(number: int) -> None:
        """Forwards a signal: runs end after the current update, or at once at a second signal."""
        received.append(number)
        for child in multiprocessing.active_children():
            child.terminate()

    with stop_signals(stop):
        while running or (waiting and not received):
            while waiting and not received and len(running) < (workers or usable_threads()):
                name = waiting.pop(0)
                running[_begin(function, calls[name])] = name
            ready: list[Any] = wait(list(running))
            for answer in ready:
                name = running.pop(answer)
                try:
                    results[name] = answer.recv()
                except EOFError:
                    results[name] = None
                answer.close()
                ended(len(results))
    if received:
        raise KeyboardInterrupt(received[0])
    return results


def _begin(function: Callable[..., Any], arguments: Sequence[Any]) -> Connection:
    """Begins a call in a process of its own; returns where its result arrives."""
    context = multiprocessing.get_context("spawn")
    answer, own_end = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(own_end, function, *arguments))
    with children_end_with_us():
        process.start()
    own_end.close()
    return answer


def _answer(end: Connection, function: Callable[..., Any], *arguments: Any) -> None:
    """Calls a function in this process, and sends what it returns."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        end.send(function(*arguments))
    except KeyboardInterrupt:  # which the function has explained
        sys.exit(1)


def _end_with_parent() -> None:
    """Ends this process when its parent is killed, since nothing would continue the other runs."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a child
    parent.join()
    os._exit(1)


def _call_on_ray(
    function: Callable[..., Any], calls: Calls, address: str | None, ended: Callable[[int], None]
) -> dict[str, Any]:
    """As ``call_in_processes``, on a Ray cluster; None for calls that were lost more often than they are retried."""
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
        raise ConfigError(f"`ray_address`: there is no Ray cluster at {named!r}: {error}") from None
    results: dict[str, Any] = {}
    try:
        # Ray restarts a task whose worker or machine is lost; it goes on from the run's newest checkpoint
        task = ray.remote(max_retries=RETRIES, num_cpus=1)(function)
        waiting = {task.remote(*arguments): name for name, arguments in calls.items()}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            name = waiting.pop(done)
            try:
                results[name] = ray.get(done)
            except ray.exceptions.RayError:
                results[name] = None
            ended(len(results))
    finally:
        if started:
            ray.shutdown()
    return results
