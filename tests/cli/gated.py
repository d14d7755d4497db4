"""A real ``gymdr`` process that waits at some function until the test lets it go on."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# gymdr, which says on stdout when it is at a function and goes on after a line on stdin
GATED = """
import importlib, sys
from gym_dr.cli.main import main

module, name = sys.argv[1].split(":")
module = importlib.import_module(module)
function = getattr(module, name)

def gated(*args, **kwargs):
    print("at the gate", flush=True)
    sys.stdin.readline()
    return function(*args, **kwargs)

setattr(module, name, gated)
if name != "plot_training":  # which takes longer than the training
    importlib.import_module("gym_dr.api.run").plot_training = lambda _, path: path.touch()
main(sys.argv[2:])
"""


PATIENCE = 120  # seconds until a process that does not say what a test waits for is killed, so that the test fails


@contextmanager
def gated(place: str, *args: str | Path) -> Iterator[subprocess.Popen[str]]:
    """``gymdr ARGS`` in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", GATED, place, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def wait_at_gate(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == "at the gate\n":
            return
    raise AssertionError("it ended before it came to the gate")


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def wait_until_told(process: subprocess.Popen[str]) -> None:
    """Until a first signal has been answered."""
    assert process.stderr is not None
    for line in process.stderr:
        if "again to stop at once" in line:
            return
    raise AssertionError("it ended without a word")
