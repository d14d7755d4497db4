"""What earlier versions have written stays readable: runs, evaluations, studies, fitted ranges and logs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import gym_dr
from gym_dr.cli.main import main
from gym_dr.evaluation.results import Evaluation
from gym_dr.fitting.logs import read_log
from gym_dr.runs.checkpoint import checkpoint_paths
from tests.saved.make import RUNS, SAVED, actions, drawn, opened
from tests.studies.study_sample import TINY

VERSIONS = sorted(path for path in SAVED.iterdir() if (path / "expected.npz").exists())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a version has written."""
    folder = shutil.copytree(request.param, tmp_path / "saved")
    assert isinstance(folder, Path)
    return folder


def test_there_are_files_of_a_version() -> None:
    assert VERSIONS


@pytest.mark.parametrize("name", RUNS)
def test_a_policy_acts_as_it_did(saved: Path, name: str) -> None:
    np.testing.assert_array_equal(actions(opened(saved / name)), np.load(saved / "expected.npz")[name])


@pytest.mark.parametrize("name", RUNS)
def test_a_run_resumes_behind_its_rows(saved: Path, name: str) -> None:
    run = opened(saved / name)
    before = run.metrics
    checkpoint_paths(run.folder)[-1].unlink()
    main(["resume", str(saved / name), "--quiet"])
    after = opened(saved / name).metrics
    assert len(after) == len(before) == 3
    np.testing.assert_array_equal(after["steps"], before["steps"])
    np.testing.assert_array_equal(after["return_mean"][:2], before["return_mean"][:2])


@pytest.mark.parametrize("name", RUNS)
def test_an_evaluation_keeps_its_episodes(saved: Path, name: str) -> None:
    evaluation = opened(saved / name).evaluation
    assert isinstance(evaluation, Evaluation)
    assert len(evaluation.episodes) == 4  # two sets of two: nominal, and the draws of the training


@pytest.mark.usefixtures("seeds_in_this_process")
def test_a_complete_study_trains_nothing_anew(saved: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (saved / "study").rglob("*.safetensors")}
    found = gym_dr.study(TINY, output=saved / "study", progress=False)
    assert not found.missing
    assert before == {path: path.stat().st_mtime_ns for path in (saved / "study").rglob("*.safetensors")} != {}


def test_fitted_ranges_give_the_same_draws(saved: Path) -> None:
    np.testing.assert_array_equal(drawn(saved / "fitted.toml"), np.load(saved / "expected.npz")["draws"])


def test_a_log_is_read(saved: Path) -> None:
    lengths = [len(episode) for episode in read_log(saved / "log")]
    np.testing.assert_array_equal(lengths, np.load(saved / "expected.npz")["lengths"])
