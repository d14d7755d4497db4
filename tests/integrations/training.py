"""A small training by the command line, for the tests of loggers."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

UPDATES = 6
GYMDR = [sys.executable, "-c", "from gym_dr.cli.main import main; main()"]
SMALL = ["--env", "gym_dr/CartPoleDR-v1", "--updates", str(UPDATES), "--checkpoint-every", "2", "--num-envs", "2"]
SMALL += ["--rollout-steps", "64", "--hidden-sizes", "4", "--eval-episodes", "2", "--randomization", "wide"]


def gymdr(*args: str | Path, cwd: Path) -> str:
    """Runs a command; returns what it prints."""
    done = subprocess.run([*GYMDR, *map(str, args)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def killed_and_resumed(logger: str, cwd: Path) -> Path:
    """Trains with a logger, kills the training after its first checkpoint, and resumes it; returns the run's folder."""
    run = cwd / "run"
    # slow enough to be killed: each update is long, and the last one far away
    long = [*SMALL, "--rollout-steps", "4096", "--updates", "40"]
    command = [*GYMDR, "train", "a2c", *long, "--log", logger, "--run-dir", str(run)]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as training:
        while training.poll() is None and len(rows(run)) < 5:
            time.sleep(0.01)
        os.kill(training.pid, signal.SIGKILL)
        training.wait()
    assert 5 <= len(rows(run)) < 40
    gymdr("resume", run, cwd=cwd)
    assert len(rows(run)) == 40
    return run


def rows(run: Path) -> list[dict[str, str]]:
    """Of the run's metrics."""
    if not (run / "metrics.csv").exists():
        return []
    with open(run / "metrics.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if None not in row.values()]
