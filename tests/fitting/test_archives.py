"""Files of strangers run no code and fill no memory; folders are written whole or not at all."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.errors import LogError
from gym_dr.fitting import archives
from gym_dr.fitting.archives import new_folder
from gym_dr.fitting.logs import read_log

EPISODE: dict[str, Any] = {"observations": np.zeros((4, 2)), "actions": np.zeros(3)}


def refusal(path: Path) -> str:
    with pytest.raises(LogError) as refused:
        read_log(path)
    assert str(path) in str(refused.value)
    return str(refused.value)


def saved(path: Path, **changes: Any) -> Path:
    np.savez(path, **{**EPISODE, **changes})
    return path


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "boom"),)

    assert "allow_pickle=False" in refusal(saved(tmp_path / "a.npz", extra=np.array([Bomb()], object)))
    assert not (tmp_path / "boom").exists()


def test_damaged_and_other_files_are_refused(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.npz").read_bytes()
    for name, content in {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"a,b\n1,2\n"}.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        assert "damaged or something else" in refusal(path)
    flipped = bytearray(whole)
    flipped[whole.index(b"NUMPY") + 150] ^= 0xFF  # a number of the first array
    (tmp_path / "flipped.npz").write_bytes(bytes(flipped))
    assert "Bad CRC-32" in refusal(tmp_path / "flipped.npz")


def test_any_single_changed_byte_is_read_or_refused(tmp_path: Path) -> None:
    whole, path = saved(tmp_path / "whole.npz").read_bytes(), tmp_path / "changed.npz"
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60).tolist():
        changed = bytearray(whole)
        changed[place] = int(rng.integers(256))
        path.write_bytes(bytes(changed))
        try:
            read_log(path)
        except LogError:
            continue


def test_a_header_that_says_another_size_is_refused(tmp_path: Path) -> None:
    head, file = {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}, io.BytesIO()
    np.lib.format.write_array_header_1_0(file, head)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("observations.npy", file.getvalue())
    refusal(tmp_path / "a.npz")


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in "ab":  # compressed to almost nothing
        np.savez_compressed(folder / f"{name}.npz", **{**EPISODE, "zeros": np.zeros(2**17)})
    monkeypatch.setattr(archives, "LARGEST", 3 * 2**19)
    assert len(read_log(folder / "a.npz")[0]) == 3
    with pytest.raises(LogError, match=r"b\.npz: expected a log of at most"):
        read_log(folder)


def test_missing_files_folders_without_archives_and_other_suffixes_are_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "none.npz")
    assert "expected a folder of .npz files, one for each episode, got none" in refusal(tmp_path)
    (tmp_path / "log.csv").write_text("")
    assert "got no folder and no .npz file" in refusal(tmp_path / "log.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    assert "expected a plain file, got something else, such as a pipe" in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path, stop: type[BaseException]) -> None:
    def write_half() -> None:
        with new_folder(tmp_path / "logs") as folder:
            (folder / "a").write_text("half")
            raise stop

    with pytest.raises(stop):
        write_half()
    assert not list(tmp_path.iterdir())
    with new_folder(tmp_path / "logs") as folder:
        (folder / "a").write_text("whole")
        assert not (tmp_path / "logs").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    with pytest.raises(LogError, match="already exists"), new_folder(tmp_path / "logs"):
        pass
