from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.runs.configure import open_run
from gym_dr.runs.folder import RunFolder, expand
from tests.cli.command import TINY, files, gymdr, refused, train

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


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything that a run can write, but for a sampler's files."""
    path = tmp_path_factory.mktemp("trained") / "run"
    assert train(path, "--eval-episodes", "1", "--log", "tensorboard").code == 0
    return path


def test_overwriting_removes_all_that_the_old_run_wrote_and_nothing_else(trained: Path, tmp_path: Path) -> None:
    run = RunFolder(shutil.copytree(trained, tmp_path / "run"))
    written = [path for path in run.path.rglob("*") if path.is_file() and path not in (run.config, run.path / ".lock")]
    assert len(written) > 9
    places = [run.path, run.evaluation, run.checkpoints, run.loggers, run.loggers / "tensorboard"]
    notes = [place / name for place in places for name in ("notes.txt", ".notes.tmp")]
    for path in notes:
        path.write_text("mine")
    copies = [run.checkpoints / f"update-{name}.safetensors" for name in ("00000001-best", "best")]
    for path in copies:
        shutil.copy(next(run.checkpoints.glob("update-*")), path)
    RunFolder.create(run.path, CONFIG, overwrite=True)
    assert not any(path.exists() for path in written)
    assert run.config.read_text() == CONFIG
    assert all(path.read_text() == "mine" for path in notes)
    assert all(path.exists() for path in copies)
    assert train(run.path, "--overwrite", "--eval-episodes", "1").code == 0
    assert all(path.read_text() == "mine" for path in notes)


@pytest.mark.parametrize(
    "name",
    ["command.txt", "draws.csv", "training.png", "evaluation/episodes.csv", "checkpoints/update-00000001.safetensors"],
)
def test_a_file_of_the_user_with_the_name_of_a_runs_is_never_replaced(name: str, trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    (run / name).write_text("mine")
    before = files(run)
    assert refused(train(run, "--overwrite")).startswith(f"{run / name}: ")
    assert files(run) == before


def test_a_picture_of_the_user_in_a_run_is_not_replaced(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "training.png").write_bytes(b"\x89PNG of the user")
    before = files(run)
    for command in ("plot", "resume"):
        refused(gymdr(command, run))
        assert files(run) == before


@pytest.mark.parametrize("name", ["command.txt", ".lock", "checkpoints/notes.txt", ".notes.tmp", "metrics.csv"])
def test_a_folder_with_a_file_of_the_user_is_no_place_for_a_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "run" / name).parent.mkdir(parents=True)
    (tmp_path / "run" / name).write_text("mine")
    for option in ((), ("--overwrite",)):
        refused(train(tmp_path / "run", *option))
        assert files(tmp_path) == {f"run/{name}": b"mine"}


def test_a_config_json_of_another_program_does_not_make_a_run_of_a_folder(tmp_path: Path) -> None:
    for name, content in {"config.json": '{"algorithm": "x"}', "evaluation/notes.txt": "mine"}.items():
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_text(content)
    (tmp_path / "run/checkpoints").mkdir()
    before = files(tmp_path)
    refused(train(tmp_path / "run", "--overwrite"))
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["metrics.csv", "summary.json", "training.png"])
def test_the_aggregate_of_several_seeds_replaces_no_file_of_the_user(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    assert name in refused(gymdr("train", "a2c", *TINY, "--seeds", "1,2", "--run-dir", tmp_path))
    assert files(tmp_path) == {name: b"mine"}


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


def test_open_names_the_variants_inside_a_study(tmp_path: Path) -> None:
    for variant in ("wide", "nominal"):
        make_run(tmp_path / "runs" / variant / "seed-1")
    with pytest.raises(RunFolderError, match=f"It holds the runs {Path('runs/nominal')}, {Path('runs/wide')}: name"):
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
