from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gym_dr.errors import BusyFolderError
from gym_dr.runs.folder import RunFolder, locked
from tests.cli.command import files, gymdr, refused, train

HOLD = """
import sys
from pathlib import Path
from gym_dr.runs.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Does not wait for a lock."""
    monkeypatch.setattr("gym_dr.runs.folder.GRACE", 0.0)


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


@pytest.mark.usefixtures("at_once")
def test_a_second_process_is_refused_until_the_first_is_killed(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(BusyFolderError, match="is in use by another process"), locked(tmp_path):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with locked(tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children inherit locks by fork")
def test_workers_that_outlive_their_process_for_a_moment_are_waited_for(tmp_path: Path) -> None:
    # the holder forks a child, which has the lock with it, and is killed; the child ends a little later
    forks = "import os, time\n    if os.fork() == 0:\n        time.sleep(1)\n        os._exit(0)\n    print("
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("print(", forks), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    with locked(tmp_path):
        pass
    process.communicate()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("command", [["resume"], ["train", "a2c", "--overwrite", "--run-dir"]])
def test_a_run_folder_in_use_is_left_alone(command: list[str], tmp_path: Path) -> None:
    train(tmp_path / "run")
    before = files(tmp_path)
    with RunFolder(tmp_path / "run").locked():
        message = refused(gymdr(*command, tmp_path / "run"))
    assert "is in use by another process" in message
    assert files(tmp_path) == before


@pytest.mark.usefixtures("at_once")
def test_training_holds_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gym_dr.runs.session import RunSession

    log = RunSession.log

    def try_too(self: RunSession, update: int, **values: float) -> None:
        with pytest.raises(BusyFolderError), locked(self.folder.path):
            pass
        log(self, update, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(RunSession, "log", try_too)
    assert train(tmp_path / "run").code == 0
    with locked(tmp_path / "run"):
        pass
