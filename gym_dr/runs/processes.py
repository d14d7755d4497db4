"""Runs ``gymdr`` commands in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from gym_dr.compiled.processors import usable_threads
from gym_dr.runs.terminal import children_end_with_us, stop_signals

PROGRAM = "from gym_dr.cli.launched import main; main()"
POLL = 0.1  # seconds between looks at processes

Command = Sequence[str]  # the arguments of gymdr


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
