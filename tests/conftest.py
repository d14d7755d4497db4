"""Set-up of the whole suite: no window, no display, no plugins of the machine that it runs on."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with contextlib.suppress(ImportError):  # CUDA builds of torch have it
    import triton  # noqa: F401  crashes in a process into which Mesa, which draws robots, has loaded its own LLVM

pytest.register_assert_rewrite("gym_dr.testing", "tests.contracts.wrappers")

# images of containers set it; then every process that a test starts compiles gym_dr to bytecode again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray reads these when it is imported: no reports to its maker, every node bound to the loopback address
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # while modules are imported and tests collected, nothing is thrown away


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_collect() -> None:
    """Spares the garbage collector, and forked processes, which collect too, what was there before the tests of a file.

    That is modules, compiled code and the tests themselves: a collection of all of it takes long.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """What tests write need not outlive a loss of power, so that no test waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def leave_empty(patch: pytest.MonkeyPatch) -> None:
    """Has every picture be an empty one, and those of a run be written without anything being drawn for them."""
    from matplotlib.figure import Figure  # after MPLBACKEND is set

    from gym_dr.reports.plots import read_growth
    from gym_dr.runs.folder import write_atomically
    from gym_dr.runs.metrics import read_metrics

    draw, picture = Figure.savefig, io.BytesIO()
    draw(Figure(figsize=(1, 1)), picture, metadata={"Software": "gym_dr"})

    def save(figure: Any, *args: Any, **kwargs: Any) -> None:
        draw(Figure(figsize=(1, 1)), *args, **kwargs)

    def plot_training(folders: Any, path: Path) -> None:
        for folder in folders:
            read_metrics(folder)
        write_atomically(path, picture.getvalue())

    def plot_growth(folder: Any, config: Any) -> None:
        if read_growth(folder, config):
            write_atomically(folder.growth, picture.getvalue())

    patch.setattr(Figure, "savefig", save)
    patch.setattr(Figure, "findobj", lambda *_: [])  # which makes every tick, to be thrown away
    patch.setattr("gym_dr.api.run.plot_training", plot_training)
    patch.setattr("gym_dr.api.run.plot_growth", plot_growth)


@pytest.fixture(scope="session", autouse=True)
def empty_pictures() -> Iterator[pytest.MonkeyPatch]:
    """Pictures of training are left empty, since drawing them takes longer than the trainings of most tests."""
    with pytest.MonkeyPatch.context() as patch:
        leave_empty(patch)
        yield patch


@pytest.fixture
def full_pictures(empty_pictures: pytest.MonkeyPatch) -> Iterator[None]:
    """Pictures as users get them, for tests that look at them."""
    empty_pictures.undo()
    yield
    leave_empty(empty_pictures)


@pytest.fixture
def few_particles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the particles, which takes half of a fit's time."""
    for module in ("draws", "job", "shooting"):
        monkeypatch.setattr(f"gym_dr.fitting.{module}.PARTICLES", 1000)


def run_here(commands: Any, *_: Any) -> dict[str, Any]:
    """In place of ``launch.run_commands``: no processes, each of which would import everything again."""
    from gym_dr.cli.main import main
    from gym_dr.runs.launch import Ended

    ended = {}
    for name, command in commands.items():
        messages: list[str] = []
        code: Any = 0
        try:
            main(command, tell=messages.append)
        except SystemExit as stop:
            code = stop.code
        except Exception:
            code = 1
            messages.append(traceback.format_exc())
        ended[name] = Ended(code=code or 0, message="".join(messages))
    return ended


@pytest.fixture
def seeds_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trains several seeds without processes; test_launch.py has them."""
    monkeypatch.setattr("gym_dr.runs.launch.run_commands", run_here)
