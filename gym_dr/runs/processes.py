"""Runs ``gymdr`` commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from gym_dr.compiled.threads import usable_threads
from gym_dr.runs.stopping import children_end_with_us, stop_signals

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

    code: int  # its exit code: 0, 1 for a bug, 2 for an error that its message explains; negative if it was killed
    message: str = ""  # of the error; for a bug, its traceback


class Process:
    """A process that runs a command, and ends when this process does. Ctrl-C does not reach it."""

    def __init__(self, command: Command) -> None:
        """Starts it."""
        # its output, which becomes the message of an error; in a file, since nobody reads it before the end
        self._message = tempfile.TemporaryFile()  # noqa: SIM115  closed by end()
        modules = os.pathsep.join(folder or os.getcwd() for folder in sys.path)  # are found where this process does
        with children_end_with_us():
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, *command],
                stdin=subprocess.PIPE,  # it ends when this is closed, as when this process is killed
                stdout=self._message,
                env={**os.environ, "PYTHONPATH": modules},
            )

    def stop(self) -> None:
        """Asks for a stop after the current update; the second time, for one at once."""
        self._process.terminate()

    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        if (code := self._process.poll()) is None:
            return None
        self._message.seek(0)
        return Ended(code=code, message=self._message.read().decode(errors="replace").strip())

    def end(self) -> None:
        """Ends it at once, if it still runs."""
        self._process.communicate()  # closes its input
        self._message.close()


def run_commands(
    commands: Mapping[str, Command], workers: int | None, watch: Callable[[Collection[str]], None] = lambda ended: None
) -> dict[str, Ended]:
    """Runs commands in processes.

    Args:
        commands: By name.
        workers: Processes at once, at most; None for one per core.
        watch: Called again and again with the names of the commands that have ended.

    Returns:
        How they ended, by name.

    Raises:
        KeyboardInterrupt: A signal arrived, and all commands have ended; its number is the argument.
    """
    waiting, running, ended = list(commands), dict[str, Process](), dict[str, Ended]()
    received: list[int] = []
    passed_on = 0  # of them
    with stop_signals(received.append):
        try:
            while running or (waiting and not received):
                while waiting and not received and len(running) < (workers or usable_threads()):
                    name = waiting.pop(0)
                    running[name] = Process(commands[name])
                time.sleep(POLL)
                for _ in received[passed_on:]:  # the first lets them finish their updates, the second does not
                    passed_on += 1
                    for process in running.values():
                        process.stop()
                for name, process in list(running.items()):
                    if (found := process.ended()) is not None:
                        process.end()
                        ended[name] = found
                        del running[name]
                watch(ended)
        finally:
            for process in running.values():
                process.end()
    if received:
        raise KeyboardInterrupt(received[0])
    return ended
