from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gym_dr.errors import RunFolderError
from gym_dr.runs.folder import write_atomically


@pytest.mark.parametrize(
    ("cause", "error", "message"),
    [
        (OSError(28, "No space left on device"), RunFolderError, "file: cannot be written: No space left on device"),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
    ids=["failed", "interrupted"],
)
def test_a_write_that_comes_to_no_end_leaves_the_old_file_and_nothing_else(
    cause: BaseException,
    error: type[BaseException],
    message: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(descriptor: int) -> None:
        raise cause

    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr("gym_dr.runs.folder.os.fsync", fail)
    with pytest.raises(error, match=message):
        write_atomically(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        calls.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))[: len(".file")])
        fsync(descriptor)

    def rename(source: Path, target: Path) -> None:
        calls.append(f"rename to {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_atomically(tmp_path / "file", b"new")
    assert calls == [".file", "rename to file", tmp_path.name[: len(".file")]]


def test_two_threads_that_write_one_file_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meet, fsync = threading.Barrier(2, timeout=20), os.fsync

    def sync_together(descriptor: int) -> None:
        meet.wait()  # both have written, and neither has renamed
        fsync(descriptor)

    monkeypatch.setattr("gym_dr.runs.folder.os.fsync", sync_together)
    with ThreadPoolExecutor(2) as pool:
        for written in [pool.submit(write_atomically, tmp_path / "file", content) for content in (b"a" * 9, b"b" * 9)]:
            written.result()
    assert (tmp_path / "file").read_bytes() in (b"a" * 9, b"b" * 9)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
