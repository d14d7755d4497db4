from __future__ import annotations

from pathlib import Path

import pytest

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.runs.configure import open_run
from gym_dr.runs.folder import RunFolder, expand

CONFIG = '{"gym_dr": "0.4.0", "algorithm": "a2c"}'


def make_run(path: Path) -> RunFolder:
    return RunFolder.create(path, CONFIG, overwrite=False)


def test_create_writes_the_configuration_into_a_new_folder_and_its_parents_or_an_empty_one(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a" / "b")
    assert folder.config.read_text() == CONFIG
    assert folder.checkpoints.is_dir()
    (tmp_path / "empty").mkdir()
    assert make_run(tmp_path / "empty").config.is_file()


@pytest.mark.parametrize(("version", "also"), [("0.3", ', "reserved_seeds": []'), ("0.2", "")])
def test_runs_of_versions_before_0_4_are_refused_with_their_version(version: str, also: str, tmp_path: Path) -> None:
    old = make_run(tmp_path / "run")
    old.config.write_text(f'{{"algorithm": "a2c"{also}}}')
    match = rf"written by gym_dr {version}, .*pip install 'gym-dr=={version}\.\*'.* in another folder"
    with pytest.raises(RunFolderError, match=match):
        open_run(old.path)
    with pytest.raises(RunFolderError, match=match):
        RunFolder.create(old.path, CONFIG, overwrite=True)
    assert also in old.config.read_text()


def test_create_refuses_a_run_that_is_there(tmp_path: Path) -> None:
    make_run(tmp_path / "run").metrics.write_text("update\n0\n")
    with pytest.raises(RunFolderError, match="already exists"):
        make_run(tmp_path / "run")
    assert (tmp_path / "run/metrics.csv").read_text() == "update\n0\n"


def test_overwriting_removes_all_that_the_old_run_wrote_and_leaves_other_files_alone(tmp_path: Path) -> None:
    old = make_run(tmp_path / "run")
    (old.path / "notes.txt").write_text("mine")
    written = [
        old.command,
        old.metrics,
        old.draws,
        old.plots,
        old.evaluation / "episodes.csv",
        *old.weights,
        old.checkpoints / "update-00000001.safetensors",
    ]
    for path in written:
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
    RunFolder.create(old.path, CONFIG, overwrite=True)
    assert not any(path.exists() for path in [*written, old.evaluation])
    assert (old.path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("content", [CONFIG, '{"algorithm": 3}', "{", "{}"])
def test_a_config_json_alone_does_not_make_a_run_folder(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunFolderError, match="is not a run folder"):
        RunFolder.create(tmp_path, CONFIG, overwrite=True)
    assert (tmp_path / "config.json").read_text() == content


def test_checking_for_a_free_place_changes_nothing(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    folder.check_free(overwrite=True)
    RunFolder(tmp_path / "new").check_free(overwrite=False)
    assert folder.config.is_file()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("written", [(), ("metrics",), ("draws",)])
def test_a_folder_without_results_is_discarded(written: tuple[str, ...], tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    for name in written:
        getattr(folder, name).write_text("update\n0\n")
    folder.discard_if_unused()
    assert folder.config.is_file() == folder.path.exists() == bool(written)


def test_open_names_the_runs_inside_a_folder_that_is_none(tmp_path: Path) -> None:
    make_run(tmp_path / "seed-1")
    make_run(tmp_path / "seed-2")
    with pytest.raises(RunFolderError, match="It holds the runs seed-1, seed-2: name one of them"):
        RunFolder.open(tmp_path)


def test_a_configuration_without_an_algorithm_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"config\.json: expected the name of an algorithm, got None"):
        RunFolder.open(tmp_path).read_config()


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path: Path) -> None:
    for name in ("seed-1", "seed-2", "other"):
        make_run(tmp_path / name)
    assert [folder.path.name for folder in expand([str(tmp_path), str(tmp_path / "other")])] == [
        "seed-1",
        "seed-2",
        "other",
    ]
