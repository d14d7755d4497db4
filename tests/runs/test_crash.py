"""What is lost when a process is killed, a disk is full or a folder goes away: nothing that was saved."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from tests.cli.command import Result, gymdr, refused
from tests.processes import training_processes
from tests.runs.kill_points import OPTIONS, check, result

A2C = ("train", "a2c", *OPTIONS["a2c"], "--run-dir")
ASYNC = (*A2C[:-1], "--vectorization", "async", "--run-dir")


def kill(points: int, seed: int, base: Path, *algorithms: str) -> list[int]:
    with training_processes() as context, ProcessPoolExecutor(1, context) as pool:
        return [pool.submit(check, name, points, seed, base / name).result() for name in algorithms]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
def test_a_run_killed_anywhere_resumes_to_the_same_bits(tmp_path: Path) -> None:
    # the next test has all algorithms; contracts have each of them cut and resumed
    assert min(kill(1, 1, tmp_path, "ppo")) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", OPTIONS)
def test_a_run_killed_at_any_of_60_points_resumes_to_the_same_bits(algorithm: str, tmp_path: Path) -> None:
    assert kill(60, 2, tmp_path, algorithm)[0] >= 60


def undisturbed(folder: Path, *command: str) -> dict[str, Any]:
    assert gymdr(*command, folder).code == 0
    return without_pictures(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of a run that nothing has disturbed."""
    return undisturbed(tmp_path_factory.mktemp("whole") / "run", *A2C)


@pytest.fixture(scope="module")
def whole_async(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return undisturbed(tmp_path_factory.mktemp("async") / "run", *ASYNC)


def without_pictures(folder: Path) -> dict[str, Any]:
    found = result(folder)
    found["names"].remove("training.png")
    return found


def disturb(monkeypatch: pytest.MonkeyPatch, at: int, action: Callable[[], Any], *args: str | Path) -> Result:
    """``gymdr ARGS`` with something happening between two updates."""
    log = RunSession.log

    def log_and_act(self: RunSession, update: int, **values: Any) -> None:
        log(self, update, **values)
        if update == at:
            action()

    with monkeypatch.context() as patched:
        patched.setattr(RunSession, "log", log_and_act)
        return gymdr(*args)


def assert_intact(folder: Path, update: int) -> None:
    """The newest checkpoint is that of an update, whole, and nothing half written is beside it."""
    assert load_newest(RunFolder(folder))["update"] == update
    assert list(folder.rglob("*.tmp")) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("only root may mount a small disk; files of limited size are tested in any case")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> None:
    with open(disk / "filler", "wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_worker_that_dies_ends_the_run_and_resume_goes_on_to_the_same_result(
    whole_async: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_class: Any = type(gym.make("gym_dr/LunarLanderDR-v3").unwrapped)
    step, fails = env_class.step, tmp_path / "fails"

    def step_or_fail(self: Any, action: Any) -> Any:
        if fails.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, action)

    monkeypatch.setattr(env_class, "step", step_or_fail)  # of the forks
    refusal = disturb(monkeypatch, 2, fails.touch, *ASYNC, tmp_path / "run")
    assert refusal.code == 2
    assert refusal.err.strip().endswith(f"Continue with: gymdr resume {tmp_path / 'run'}")
    assert multiprocessing.active_children() == []
    fails.unlink()
    assert gymdr("resume", tmp_path / "run").code == 0
    assert without_pictures(tmp_path / "run") == whole_async


def test_a_full_disk_ends_the_run_and_resume_goes_on_when_there_is_room(
    small_disk: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_disk / "run"
    # checkpoints are due after updates 1, 3, 5 and 6: the disk is full from the middle of the second segment on
    message = refused(disturb(monkeypatch, 2, lambda: fill(small_disk), *A2C, folder))
    assert message.startswith(f"{folder}/") or message.startswith(str(folder))
    assert "cannot be written: No space left on device." in message
    assert_intact(folder, 2)
    assert "No space left" in refused(gymdr("resume", folder))
    assert_intact(folder, 2)
    (small_disk / "filler").unlink()
    assert gymdr("resume", folder).code == 0
    assert without_pictures(folder) == whole


def test_a_folder_that_became_read_only_is_named_and_as_it_was(
    small_disk: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_disk / "run"
    assert disturb(monkeypatch, 4, lambda: os.kill(os.getpid(), signal.SIGINT), *A2C, folder).code == 130
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert refused(gymdr("resume", folder)) == f"{folder}: cannot be written: Read-only file system."
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert gymdr("resume", folder).code == 0
    assert without_pictures(folder) == whole


@pytest.fixture
def limit_file_size() -> Iterator[Callable[[int], None]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100, 1500])  # the rows of metrics no longer fit, or only checkpoints do not
def test_files_that_may_not_grow_end_the_run_like_a_full_disk(
    size: int,
    limit_file_size: Callable[[int], None],
    whole: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "run"
    result = disturb(monkeypatch, 2, lambda: limit_file_size(size), *A2C, folder)
    limit_file_size(resource.RLIM_INFINITY)
    assert "cannot be written: File too large." in refused(result)
    assert_intact(folder, 2)
    assert folder.joinpath("metrics.csv").read_bytes().endswith(b"\n")
    assert gymdr("resume", folder).code == 0
    assert without_pictures(folder) == whole


@pytest.mark.parametrize("made_again", [False, True])
def test_a_folder_that_is_removed_ends_the_run_and_is_not_written_again(
    made_again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def remove() -> None:
        shutil.rmtree(folder)
        if made_again:
            folder.mkdir()
            (folder / ".lock").touch()

    message = refused(disturb(monkeypatch, 2, remove, *A2C, folder))
    assert message.startswith(f"{folder}: was removed or replaced")
    assert [path.name for path in tmp_path.rglob("*")] == (["run", ".lock"] if made_again else [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_after_the_update_and_resume_gives_the_same_bits(
    number: int, code: int, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    stopped = disturb(monkeypatch, 4, lambda: os.kill(os.getpid(), number), *A2C, folder)
    assert stopped.code == code
    assert "Stopped with 5 of 7 updates made and 4 saved." in stopped.err
    assert f"with: gymdr resume {folder}" in stopped.err
    assert len((folder / "metrics.csv").read_text().splitlines()) == 1 + 5
    assert gymdr("resume", folder).code == 0
    assert without_pictures(folder) == whole


def test_a_signal_in_the_update_of_a_checkpoint_ends_the_run_after_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = disturb(monkeypatch, 3, lambda: os.kill(os.getpid(), signal.SIGTERM), *A2C, tmp_path / "run")
    assert "Stopped with 4 of 7 updates made and 4 saved." in stopped.err
    assert_intact(tmp_path / "run", 4)


def test_a_second_signal_ends_the_run_at_once(
    whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    happened: list[str] = []

    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        happened.append("first")
        os.kill(os.getpid(), signal.SIGINT)
        happened.append("never")

    # in the update of a checkpoint, which is not saved any more
    stopped = disturb(monkeypatch, 3, twice, *A2C, folder)
    assert (stopped.code, happened) == (130, ["first"])
    assert "Stopped with 4 of 7 updates made and 2 saved." in stopped.err
    assert gymdr("resume", folder).code == 0
    assert without_pictures(folder) == whole


def test_signals_are_given_back_after_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    disturb(monkeypatch, 0, lambda: os.kill(os.getpid(), signal.SIGTERM), *A2C, tmp_path / "run")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
