from __future__ import annotations

import os
from pathlib import Path

import pytest

from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import write_atomically


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gym_dr.runs.durable.os.fsync", fail)
    with pytest.raises(RunFolderError, match="file: cannot be written: No space left on device"):
        write_atomically(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_an_interrupted_write_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gym_dr.runs.durable.os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
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
