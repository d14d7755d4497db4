"""Kills trainings at random points and resumes them; prints what came out otherwise than in a run that was not killed.

A program of its own: it imports everything once and forks a process for each training, which SIGKILL then ends for
good. Some are killed at a random time, some inside a write: with half of a file written, before it is synced, before or
after it is renamed.

    python -m tests.runs.kill_points POINTS SEED FOLDER ALGORITHM...
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import gym_dr.api.run
from gym_dr.cli.main import main
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.runs import folder as files
from gym_dr.runs.checkpoint import checkpoint_paths, load_newest
from gym_dr.runs.folder import RunFolder
from tests.plugins.parts.growing import GROWING

ENV = ["--env", "gym_dr/LunarLanderDR-v3", "--vectorization", "sync", "--num-envs", "2"]
TINY = [*ENV, "--updates", "7", "--checkpoint-every", "2", "--eval-episodes", "0", "--hidden-sizes", "8"]
OPTIONS = {
    "a2c": [*TINY, "--rollout-steps", "48", "--resample-every", "1", "--optimizer", "adam"],
    "ppo": [
        *(*TINY, "--rollout-steps", "48", "--epochs", "2", "--minibatches", "2", "--critic-context"),
        *("--sampler", "adr", "--success", "-300", "--cohort", "2"),
    ],
    "reinforce": [*TINY, "--episodes-per-env", "1", "--baseline", "learned", "--sampler", "growing"],
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_write(number: int) -> Callable[[], None]:
    """Prepares a process to kill itself at its write of that number; each has five places to die in."""

    def prepare() -> None:
        count = 0
        fsync, replace = os.fsync, os.replace

        def dies_here() -> bool:
            nonlocal count
            count += 1
            return count == number

        def open_and_die(*args: Any, **kwargs: Any) -> Any:
            file = builtins.open(*args, **kwargs)  # noqa: SIM115  the caller closes it
            if dies_here():
                die()  # with an empty file
            if dies_here():
                file.write = lambda content: (file.raw.write(content[: len(content) // 2]), die())
            return file

        def fsync_or_die(descriptor: int) -> None:
            if dies_here():
                die()
            fsync(descriptor)

        def replace_or_die(*args: Any) -> None:
            if dies_here():
                die()
            replace(*args)
            if dies_here():
                die()

        files.open = open_and_die  # type: ignore[attr-defined]  # hides the built-in one
        os.fsync, os.replace = fsync_or_die, replace_or_die  # type: ignore[assignment]

    return prepare


def run(args: list[str], prepare: Callable[[], None] = lambda: None, kill_after: float | None = None) -> int:
    """Runs ``gymdr ARGS`` in a forked process; returns its exit status, negative for a signal."""
    process = os.fork()
    if process == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # pytest has replaced them
        prepare()
        code: Any = 1
        try:
            main(args)
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        finally:
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def result(path: Path) -> dict[str, Any]:
    """Everything that a finished run has written, but for the seconds that it took."""
    folder = RunFolder(path)
    newest = load_newest(folder)
    newest["session"].pop("seconds")
    found: dict[str, Any] = {
        "metrics": [row.rpartition(",")[0] for row in folder.metrics.read_text().splitlines()],
        "draws": folder.draws.read_text(),
        "sampler": folder.sampler.read_text() if folder.sampler.exists() else None,
        "checkpoint": repr_exactly(newest),
        "checkpoints": [file.name for file in checkpoint_paths(folder)],
        "config": folder.config.read_text(),
        "names": sorted(str(file.relative_to(path)) for file in path.rglob("*")),
    }
    return found | {file.name: file.read_bytes() for file in folder.weights}


def repr_exactly(value: Any) -> Any:
    """A form in which tensors are equal if all their bits are."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return {key: repr_exactly(item) for key, item in value.items()}
    return [repr_exactly(item) for item in value] if isinstance(value, list | tuple) else value


def go_on(path: Path, train: list[str]) -> list[str]:
    """What a user does after a kill; before there is a configuration there is nothing to resume."""
    return ["resume", str(path)] if (path / "config.json").exists() else train


def check(algorithm: str, points: int, seed: int, base: Path) -> int:
    """Returns how often a training was killed, at least once a point; exits with a message at the first difference."""
    random.seed(seed)
    torch.set_num_threads(1)
    if "growing" not in SAMPLERS:
        SAMPLERS.add("growing", GROWING, "tests")
    whole = ["train", algorithm, *OPTIONS[algorithm], "--run-dir"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for draw in ("plot_training", "plot_growth"):  # pictures take longer than the training here
            setattr(gym_dr.api.run, draw, lambda *_: None)
        main([*whole, str(base / "warm")])  # in this process, which so imports and compiles what its forks then have
    began = time.perf_counter()
    assert run([*whole, str(base / "whole")]) == 0
    seconds = time.perf_counter() - began
    expected, kills = result(base / "whole"), 0
    for point in range(points):
        path = base / f"{point}"
        train = [*whole, str(path)]
        history: list[tuple[float | int, int]] = []  # second or write of each kill, exit status
        deaths = random.choice([1, 1, 2, 3])  # a run may be killed more than once
        while len(history) < deaths:
            if random.random() < 0.5:
                number = random.randint(1, 100)
                history.append((number, run(go_on(path, train), prepare=die_at_write(number))))
            else:
                after = random.uniform(0.0, seconds)
                history.append((after, run(go_on(path, train), kill_after=after)))
            if history[-1][1] == 0:  # it was through before; another try
                shutil.rmtree(path)
                history.clear()
        kills += sum(status == -signal.SIGKILL for _, status in history)
        status = run(go_on(path, train))
        if status or result(path) != expected:
            different = [name for name, value in result(path).items() if value != expected[name]] if not status else []
            sys.exit(f"{algorithm}, seed {seed}, point {point}: {history}, then {status}: {different} differ in {path}")
        shutil.rmtree(path)
    return kills


if __name__ == "__main__":
    for name in sys.argv[4:]:
        print(check(name, int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) / name))
