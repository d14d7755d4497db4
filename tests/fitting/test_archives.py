"""Files of strangers are measured and checked before they are loaded; folders are written whole or not at all."""

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
from gym_dr.fitting.archives import new_folder, write_archive
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


def npy(values: Any, shape: tuple[int, ...] | None = None) -> bytes:
    """An array as a file, whose header may say another shape."""
    file = io.BytesIO()
    if shape is None:
        np.lib.format.write_array(file, values)
    else:
        head = {"descr": values.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        file.write(values.tobytes())
    return file.getvalue()


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "boom"),)

    message = refusal(saved(tmp_path / "a.npz", extra=np.array([Bomb()], object)))
    assert "'extra.npy'" not in message
    assert "'extra': expected numbers, got Python objects, which only a pickle could hold" in message
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
    for place in rng.integers(0, len(whole), 150).tolist():
        changed = bytearray(whole)
        changed[place] = int(rng.integers(256))
        path.write_bytes(bytes(changed))
        try:
            read_log(path)
        except LogError:
            continue


def test_a_header_that_says_another_size_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.npz", {"observations.npy": npy(np.zeros(2), (10**6, 10**6)), "actions.npy": npy(np.ones(1))}
    )
    assert "'observations': expected 8,000,000,000,000 bytes" in refusal(path)


def test_a_log_that_does_not_fit_into_memory_is_refused_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in "ab":  # compressed to almost nothing
        np.savez_compressed(folder / f"{name}.npz", **{**EPISODE, "zeros": np.zeros(2**17)})
    monkeypatch.setattr(archives, "free_memory", lambda: 3 * 2**20)
    assert len(read_log(folder / "a.npz")[0]) == 3
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("it was loaded"))
    assert "expected a log that fits into memory" in refusal(folder)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"observations.csv": b"1,2"}, "'observations.csv': expected an array, got something else"),
        ({"a.npy": npy(np.zeros(2, [("x", float)]))}, "'a': expected numbers, got [('x', '<f8')]"),
        ({"a.npy": npy(np.zeros(2, "M8[s]"))}, "'a': expected numbers, got datetime64[s]"),
        ({"a.npy": b"no array at all"}, "damaged or something else"),
        ({}, "got no observations"),
    ],
)
def test_archives_of_something_else_are_refused(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    assert message in refusal(zipped(tmp_path / "a.npz", members))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("actions.npy", npy(np.ones(3)))
    assert "'actions.npy': expected an array, got two of that name" in refusal(path)


def test_missing_files_folders_without_archives_and_other_suffixes_are_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "none.npz")
    assert "expected a folder of .npz files, one for each episode, got none" in refusal(tmp_path)
    (tmp_path / "log.csv").write_text("")
    assert "got ['log.csv']" in refusal(tmp_path)
    assert "a file that does not end in .npz" in refusal(tmp_path / "log.csv")
    saved(tmp_path / "a.npz")
    assert "expected only .npz files, one for each episode, got 'log.csv' too" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    assert "expected a plain file, got something else, such as a pipe" in refusal(tmp_path / "a.npz")
    with pytest.raises(LogError, match="expected a plain file"):
        read_log(tmp_path)


def test_a_link_is_followed_if_the_user_names_it_but_not_inside_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.npz").symlink_to(saved(tmp_path / "whole.npz"))
    assert len(read_log(folder / "a.npz")) == 1
    with pytest.raises(LogError, match=r"a\.npz: expected a plain file, got something else, such as a link"):
        read_log(folder)


def test_what_is_written_is_what_numpy_reads(tmp_path: Path) -> None:
    arrays = {"state/physics/x": np.arange(3, dtype=np.int16), "name": np.array("früh"), "none": np.zeros((2, 0))}
    with open(tmp_path / "a.npz", "wb") as file:
        write_archive(file, arrays)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert set(found) == set(arrays)
        for name, values in arrays.items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype


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
