from __future__ import annotations

import os
from pathlib import Path

import pytest

from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import write_atomically


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
    monkeypatch.setattr("gym_dr.runs.durable.os.fsync", fail)
    with pytest.raises(error, match=message):
        write_atomically(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        calls.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).partition(".123.")[0])
        fsync(descriptor)

    def rename(source: Path, target: Path) -> None:
        calls.append(f"rename to {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "getpid", lambda: 123)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_atomically(tmp_path / "file", b"new")
    assert calls == [".file", "rename to file", tmp_path.name]
