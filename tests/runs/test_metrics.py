from __future__ import annotations

from pathlib import Path

import pytest

from gym_dr.errors import RunFolderError
from gym_dr.runs.metrics import CsvLog, cut_back, last_row


def test_rows_are_on_disk_at_once_and_read_back_exactly_and_a_second_log_goes_on(tmp_path: Path) -> None:
    loss, text = 0.1 + 0.2, "update,loss\n"
    for update in range(2):
        log = CsvLog(tmp_path / "m.csv")
        log.write({"update": update, "loss": loss})
        text += f"{update},{loss!r}\n"
        assert (tmp_path / "m.csv").read_text() == text
        log.close()


def test_other_columns_than_the_files_are_refused(tmp_path: Path) -> None:
    log = CsvLog(tmp_path / "m.csv")
    log.write({"update": 0})
    with pytest.raises(RunFolderError, match=r"m\.csv: expected the columns \['update'\], got \['loss'\]"):
        log.write({"loss": 1.0})
    log.close()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"none/m\.csv: cannot be written"):
        CsvLog(tmp_path / "none/m.csv").write({"update": 0})


@pytest.mark.parametrize("cut", ["2,0.125,3\n", "1", "1,0.25", '1,"0.2'])
def test_rows_are_cut_back_and_one_that_a_crash_cut_short_is_dropped(cut: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(f"update,loss,seconds\n0,0.5,1\n{cut}")
    for name in ("m.csv", "none.csv"):
        cut_back(tmp_path / name, 2)
    assert (tmp_path / "m.csv").read_text().split() == ["update,loss,seconds", "0,0.5,1"]
    assert not (tmp_path / "none.csv").exists()


@pytest.mark.parametrize("content", [b"garbage\nmore\n", b"update\nx\n", b"\xff\xfe\n\x00"])
def test_a_file_of_something_else_is_refused_and_kept(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"m\.csv: "):
        cut_back(tmp_path / "m.csv", 2)
    assert (tmp_path / "m.csv").read_bytes() == content


def test_the_last_row_is_found(tmp_path: Path) -> None:
    assert last_row(tmp_path / "m.csv") == {}
    (tmp_path / "m.csv").write_text("update,loss\n0,0.5\n1,0.25\n")
    assert last_row(tmp_path / "m.csv") == {"update": 1.0, "loss": 0.25}
