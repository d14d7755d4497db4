from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gym_dr.errors import BusyFolderError
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.lock import OWNER, FolderLock
from tests.cli.command import files, gymdr, refused, train

HOLD = """
import sys
from pathlib import Path
from gym_dr.runs.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_and_told_who_has_the_folder(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(
        BusyFolderError, match=rf"is in use by process {holder.pid} on \S+ since \d{{4}}-\d\d-\d\d \d\d:"
    ):
        FolderLock(tmp_path).acquire()


def test_the_lock_of_a_process_that_was_killed_is_taken_over(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with FolderLock(tmp_path).held():
        assert json.loads((tmp_path / OWNER).read_text())["pid"] == os.getpid()
    assert not (tmp_path / OWNER).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children inherit locks by fork")
def test_workers_that_outlive_their_process_for_a_moment_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the holder forks a child, which has the lock with it, and is killed; the child ends a little later
    hold = HOLD.replace("print(", "import os, time\nif os.fork() == 0:\n    time.sleep(1)\n    os._exit(0)\nprint(")
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    FolderLock(tmp_path).acquire()
    process.communicate()


@pytest.mark.parametrize("command", [["resume"], ["train", "a2c", "--overwrite", "--run-dir"]])
def test_a_run_folder_in_use_is_left_alone(command: list[str], tmp_path: Path) -> None:
    train(tmp_path / "run")
    before = files(tmp_path)
    with RunFolder(tmp_path / "run").locked():
        message = refused(gymdr(*command, tmp_path / "run"))
    assert f"is in use by process {os.getpid()} on " in message
    assert files(tmp_path) == before


def test_training_holds_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gym_dr.runs.session import RunSession

    log = RunSession.log

    def try_too(self: RunSession, update: int, **values: float) -> None:
        with pytest.raises(BusyFolderError):
            FolderLock(self.folder.path).acquire()
        log(self, update, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(RunSession, "log", try_too)
    assert train(tmp_path / "run").code == 0
    FolderLock(tmp_path / "run").acquire()


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 9999, b"\xff", b'{"pid": []}', b'{"pid": 1e999}'])
def test_an_owner_that_cannot_be_read_is_somebody(content: bytes, tmp_path: Path) -> None:
    holder = FolderLock(tmp_path)
    holder.acquire()
    (tmp_path / OWNER).write_bytes(content)
    with pytest.raises(BusyFolderError, match=r"is in use by (another process|process \S+ on)"):
        FolderLock(tmp_path).acquire()
    holder.release()
