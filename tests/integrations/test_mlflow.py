"""The example of a logger for MLflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.training import SMALL, UPDATES, gymdr, rows

mlflow = pytest.importorskip("mlflow")

# MLflow and what it stands on announce deprecations of their own
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]


def points(run: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    monkeypatch.chdir(run.parent)  # MLflow's own files are there
    known = (run / "loggers" / "mlflow" / "id.txt").read_text()
    return [(point.step, point.value) for point in mlflow.MlflowClient().get_metric_history(known, name)]


def test_it_gets_the_metrics_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gymdr("train", "a2c", *SMALL, "--log", "mlflow", "--run-dir", "run", cwd=tmp_path)
    expected = [(int(row["steps"]), float(row["episodes"])) for row in rows(tmp_path / "run")]
    assert len(expected) == UPDATES
    assert points(tmp_path / "run", "training/episodes", monkeypatch) == expected


def test_parameters_whose_names_have_a_colon_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hopper = ["--env", "gym_dr/HopperDR-v5", "--rollout-steps", "128", "--updates", "2", "--eval-episodes", "0"]
    gymdr("train", "a2c", *SMALL, *hopper, "--log", "mlflow", "--run-dir", "run", cwd=tmp_path)
    assert points(tmp_path / "run", "draws/body_mass.torso", monkeypatch)
