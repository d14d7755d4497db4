"""Calls the command line inside the test's own process."""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path

from gym_dr.cli.main import main

TINY = ["--updates", "2", "--num-envs", "2", "--rollout-steps", "8", "--eval-episodes", "0"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def gymdr(*args: str | Path) -> Result:
    """What ``gymdr ARGS`` prints and exits with; an exception other than SystemExit reaches the test."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")  # pytest makes errors of warnings; the command prints them
        try:
            main([str(arg) for arg in args])
        except SystemExit as stop:
            code = stop.code or 0
    assert isinstance(code, int)
    return Result(code, out.getvalue(), err.getvalue())


def train(folder: Path, *args: str | Path) -> Result:
    """``gymdr train a2c`` with a tiny budget, which ``args`` may override."""
    return gymdr("train", "a2c", *TINY, "--run-dir", folder, *args)


def refused(result: Result) -> str:
    """The one message of a command that refused its input."""
    assert result.code == 2, result
    assert "Traceback" not in result.err
    assert result.err.count("Error: ") == 1, result.err
    return result.err.partition("Error: ")[2].strip()


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
