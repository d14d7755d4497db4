"""What TensorBoard shows of runs, read back from its files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.integrations.training import SMALL, UPDATES, gymdr, killed_and_resumed, rows

pytestmark = pytest.mark.integration


def read(run: Path) -> Any:
    """What the files of the logger hold, in the folder of a run."""
    found = EventAccumulator(str(run / "loggers" / "tensorboard"), size_guidance={"scalars": 0, "histograms": 0})
    return found.Reload()


def scalars(events: Any, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events.Scalars(name)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds, with a sampler that learns."""
    path = tmp_path_factory.mktemp("tensorboard")
    adaptive = ["--sampler", "doraemon", "--cohort", "10"]
    gymdr("train", "a2c", *SMALL, *adaptive, "--log", "tensorboard", "--seeds", "1,2", "--run-dir", "runs", cwd=path)
    return path / "runs"


@pytest.mark.parametrize("seed", [1, 2])
def test_every_column_of_the_metrics_is_a_curve(seed: int, runs: Path) -> None:
    run = runs / f"seed-{seed}"
    events, table = read(run), rows(run)
    assert len(table) == UPDATES
    for name in table[0].keys() - {"update", "steps"}:
        expected = [(int(row["steps"]), float(row[name])) for row in table if math.isfinite(float(row[name]))]
        found = scalars(events, f"training/{name}")
        assert [step for step, _ in found] == [step for step, _ in expected]
        assert [value for _, value in found] == pytest.approx([value for _, value in expected], rel=1e-6)


def test_the_draws_between_checkpoints_are_histograms(runs: Path) -> None:
    events, table = read(runs / "seed-1"), rows(runs / "seed-1")
    found = events.Histograms("draws/length")
    assert [event.step for event in found] == [int(row["steps"]) for row in table[1::2]]
    assert sum(event.histogram_value.num for event in found) == int(table[-1]["episodes"])


def test_the_states_of_a_sampler_are_curves(runs: Path) -> None:
    assert scalars(read(runs / "seed-1"), "sampler/version")


def test_evaluations_are_shown_at_the_last_step(runs: Path) -> None:
    ((step, _),) = scalars(read(runs / "seed-1"), "evaluation/training/mean")
    assert step == int(rows(runs / "seed-1")[-1]["steps"])


def test_the_configuration_is_a_text_and_a_row_of_hyperparameters(runs: Path) -> None:
    events = read(runs / "seed-2")
    (text,) = events.Tensors("configuration/text_summary")
    assert b'"seed": 2' in text.tensor_proto.string_val[0]
    content = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    assert b"a2c.rollout_steps" in content


def test_a_killed_and_resumed_run_shows_every_point(tmp_path: Path) -> None:
    run = killed_and_resumed("tensorboard", tmp_path)
    expected = [(int(row["steps"]), float(row["episodes"])) for row in rows(run)]
    assert sorted(set(scalars(read(run), "training/episodes"))) == expected


def test_runs_of_a_study_show_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
env = "gym_dr/CartPoleDR-v1"
algorithm = "a2c"
seeds = [1]

[settings]
num_envs = 2
loggers = ["tensorboard"]

[a2c]
updates = 2
rollout_steps = 64

[variants]
small = { hidden_sizes = [4] }

[evaluation]
episodes = 2
"""
    )
    gymdr("study", "study.toml", "--output", "study", "--workers", "1", cwd=tmp_path)
    events = read(tmp_path / "study" / "runs" / "small" / "seed-1")
    assert len(scalars(events, "training/episodes")) == 2
    assert len(scalars(events, "evaluation/nominal/mean")) == 1
