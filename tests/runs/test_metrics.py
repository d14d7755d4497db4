from __future__ import annotations

from pathlib import Path

import pytest

from gym_dr.errors import RunFolderError
from gym_dr.runs.metrics import CsvLog, last_row, size_of_rows


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


@pytest.mark.parametrize("cut", ["", "1,0.125,3\n", "1", "1,0.25", '1,"0.2', "\0\0\0", "1,\0,3\n2,0.5,3\n"])
def test_the_first_new_row_replaces_those_after_a_checkpoint_and_nothing_does_before(cut: str, tmp_path: Path) -> None:
    before = f"update,loss,seconds\n0,0.5,1\n{cut}"
    (tmp_path / "m.csv").write_text(before)
    log = CsvLog(tmp_path / "m.csv", 1, size_of_rows(tmp_path / "m.csv", 1, 1))
    assert (tmp_path / "m.csv").read_text() == before
    for update in (1, 2):
        log.write({"update": update, "loss": 0.25, "seconds": 2})
        log.close()
    assert (tmp_path / "m.csv").read_text().split() == ["update,loss,seconds", "0,0.5,1", "1,0.25,2", "2,0.25,2"]
    assert log.rows == 3


@pytest.mark.parametrize(
    "content",
    [
        b"garbage\nmore\n\n",
        b"update\nx\n1\n",
        b"\xff\xfe\n\x00",
        b"update,loss\n0,1\n",
        b"update,loss\n0,1\n2,1\n",
        b"update,loss\n0,1\n0,1\n",
        b"update,loss\n0,\x00\n1,1\n",
        b"update,loss\n0,1\n1,1",
    ],
)
def test_rows_that_are_missing_or_damaged_are_refused_and_the_file_is_kept(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes(content)
    for path in (tmp_path / "m.csv", tmp_path / "none.csv"):
        with pytest.raises(RunFolderError, match=path.name):
            size_of_rows(path, 2, 2, one_each=True)
    assert (tmp_path / "m.csv").read_bytes() == content


def test_the_last_row_is_found(tmp_path: Path) -> None:
    assert last_row(tmp_path / "m.csv") == {}
    (tmp_path / "m.csv").write_text("update,loss\n0,0.5\n1,0.25\n")
    assert last_row(tmp_path / "m.csv") == {"update": 1.0, "loss": 0.25}
