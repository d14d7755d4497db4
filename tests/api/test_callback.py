"""A function of the user's that sees every update and may end the run."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr import Run
from gym_dr.errors import ConfigError
from gym_dr.runs.checkpoint import updates_saved
from tests.api.test_interface import metrics_of

OPTIONS: dict[str, Any] = {
    "updates": 6,
    "num_envs": 2,
    "rollout_steps": 64,
    "hidden_sizes": [4],
    "checkpoint_every": 4,
    "eval_episodes": 0,
    "progress": False,
}


def train(path: Path, **options: Any) -> Run:
    run = gym_dr.train("a2c", run_dir=path, **{**OPTIONS, **options})
    assert isinstance(run, Run)
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run without a callback."""
    return train(tmp_path_factory.mktemp("callback") / "run")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that was ended after three updates, within a segment."""
    path = tmp_path_factory.mktemp("callback") / "run"
    return train(path, callback=lambda row: row["update"] == 2, eval_episodes=1)


def rows_of(run: Run) -> list[dict[str, str]]:
    with run.folder.metrics.open(newline="") as file:
        return list(csv.DictReader(file))


def test_it_is_called_after_each_update_with_its_metrics(whole: Run, tmp_path: Path) -> None:
    seen: list[dict[str, float]] = []

    def look(row: dict[str, float]) -> None:
        seen.append(dict(row))
        row.clear()  # which changes nothing

    run = train(tmp_path / "run", callback=look)
    assert [{name: str(value) for name, value in row.items()} for row in seen] == rows_of(run)
    assert metrics_of(run.path) == metrics_of(whole.path)


def test_it_ends_the_run_with_a_policy_plots_and_an_evaluation(ended: Run, whole: Run) -> None:
    assert metrics_of(ended.path) == metrics_of(whole.path)[: 1 + 3]
    assert updates_saved(ended.folder) == 3
    assert ended.evaluation is not None
    assert ended.folder.plots.exists()


def test_an_ended_run_trains_the_other_updates_when_it_is_resumed(ended: Run, tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        shutil.copytree(ended.path, tmp_path / name)
        run = gym_dr.load_run(tmp_path / name)
        assert isinstance(run, Run)
        run.resume(progress=False)
        assert [int(row["update"]) for row in rows_of(run)] == list(range(6))
        found.append(metrics_of(run.path))
    assert found[0] == found[1]


def test_an_end_says_how_to_train_the_rest(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train(tmp_path / "run", callback=lambda row: True, progress=True)
    told = capfd.readouterr().err
    assert "the callback ended the run after 1 of 6 updates" in told
    assert "gymdr resume " in told


def test_its_errors_reach_the_caller_and_the_run_can_go_on(whole: Run, tmp_path: Path) -> None:
    def fail(row: dict[str, float]) -> None:
        if row["update"] == 4:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        train(tmp_path / "run", callback=fail)
    run = gym_dr.load_run(tmp_path / "run")
    assert isinstance(run, Run)
    run.resume(progress=False)
    assert metrics_of(run.path) == metrics_of(whole.path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"callback": 3}, "callback: expected a function of a row of metrics, got 3"),
        ({"callback": print, "seeds": [1, 2]}, "callback: expected `seed`, got `seeds`"),
    ],
)
def test_a_callback_that_cannot_be_called_is_refused_and_leaves_no_folder(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        gym_dr.train("a2c", run_dir=tmp_path / "run", **{**OPTIONS, **options})
    assert not (tmp_path / "run").exists()
