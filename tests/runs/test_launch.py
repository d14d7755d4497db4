"""Several seeds: the result depends neither on the launcher, nor on how many run at once, nor on what is lost."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

import gym_dr
from gym_dr import Runs
from gym_dr.cli.main import main
from gym_dr.errors import GymDrError, LostRunError, TrainingError
from gym_dr.evaluation.results import Evaluation
from gym_dr.runs import launch as launcher
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.launch import Ended, Launch
from tests.cli.command import gymdr, refused
from tests.conftest import run_here
from tests.runs.test_processes import workers_of

TINY = ["--updates", "4", "--rollout-steps", "16", "--num-envs", "2", "--eval-episodes", "2", "--hidden-sizes", "8"]


def train(root: Path, *options: str, tiny: list[str] = TINY) -> Path:
    main(["train", "a2c", *tiny, "--run-dir", str(root), *options])
    return root


def training_of(run: Path) -> tuple[str, str]:
    """Its metrics and draws."""
    metrics, draws = pd.read_csv(run / "metrics.csv").drop(columns="seconds"), run / "draws.csv"
    return metrics.to_csv(), draws.read_text() if draws.exists() else ""


def result(root: Path) -> dict[str, Any]:
    """Everything that a group of runs has found out, but for the seconds that it took."""
    found: dict[str, Any] = {}
    for folder in sorted(root.glob("seed-*")):
        found[folder.name] = (
            *training_of(folder),
            json.loads((folder / "evaluation/evaluation.json").read_text())["results"],
            (folder / "evaluation/episodes.csv").read_text(),
        )
    return found


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("seeds") / "runs"
    tiny: dict[str, Any] = {"updates": 4, "rollout_steps": 16, "num_envs": 2, "eval_episodes": 2, "hidden_sizes": (8,)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launcher, "run_commands", run_here)
        runs = gym_dr.train("a2c", run_dir=root, seeds=(1, 2), workers=1, progress=False, **tiny)
    assert isinstance(runs, Runs)
    assert runs.summary.loc["evaluation on nominal", "seeds"] == 2
    return root


@pytest.mark.slow  # its sibling is the one below
def test_seeds_at_once_give_what_seeds_one_by_one_give(one_by_one: Path, tmp_path: Path) -> None:
    at_once = train(tmp_path / "runs", "--seeds", "1,2", "--workers", "2")
    assert result(at_once) == result(one_by_one)


@pytest.mark.slow  # its sibling is in test_sources.py, whose process also runs a program
def test_a_seed_in_a_process_of_its_own_gives_what_it_gives_here(one_by_one: Path, tmp_path: Path) -> None:
    there = train(tmp_path / "runs", "--seeds", "2", "--workers", "1", "--eval-episodes", "0")
    assert training_of(there / "seed-2") == training_of(one_by_one / "seed-2")


def test_several_seeds_get_the_threads_that_were_asked_for_also_when_they_are_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run(commands: Any, workers: int | None, watch: Any, num_threads: int | None) -> Any:
        asked.append((workers, num_threads))
        return run_here(commands)

    monkeypatch.setattr(launcher, "run_commands", run)
    root = train(tmp_path / "runs", "--seeds", "2", "--num-threads", "3", "--workers", "4", "--eval-episodes", "0")
    main(["resume", str(root), "--num-threads", "2", "--quiet"])
    main(["resume", str(root), "--quiet"])
    assert asked == [(4, 3), (None, 2), (None, None)]


def test_a_seed_among_others_gives_what_it_gives_alone(one_by_one: Path, tmp_path: Path) -> None:
    alone = train(tmp_path / "seed-2", "--seed", "2")
    assert result(alone.parent)["seed-2"] == result(one_by_one)["seed-2"]


def test_the_aggregate_holds_every_row_and_seed(one_by_one: Path) -> None:
    table = pd.read_csv(one_by_one / "metrics.csv")
    assert sorted(table["seed"].unique()) == [1, 2]
    assert len(table) == 2 * 4
    assert imread(one_by_one / "training.png").shape[2] == 4


def test_the_summary_has_the_mean_with_interval_and_the_interquartile_mean(one_by_one: Path) -> None:
    row = json.loads((one_by_one / "summary.json").read_text())["evaluation on nominal"]
    evaluations = [Evaluation.load(one_by_one / f"seed-{seed}/evaluation") for seed in (1, 2)]
    values = [float(evaluation.returns("nominal").mean()) for evaluation in evaluations]
    assert list(row["seeds"].values()) == pytest.approx(values)
    assert row["mean"] == pytest.approx(sum(values) / 2)
    half = 12.7062 * abs(values[0] - values[1]) / 2  # Student's t with one degree of freedom, at 97.5 %
    assert (row["mean_low"], row["mean_high"]) == pytest.approx((row["mean"] - half, row["mean"] + half), rel=1e-4)
    assert row["iqm"] == pytest.approx(row["mean"])


@pytest.mark.usefixtures("seeds_in_this_process")
def test_a_single_seed_has_neither_deviation_nor_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path / "runs", "--seeds", "1")
    row = gym_dr.load_run(tmp_path / "runs").summary.loc["evaluation on nominal"]
    assert row["seeds"] == 1
    assert np.isnan([row["std"], row["mean_low"], row["mean_high"]]).all()
    printed = capsys.readouterr().out.splitlines()
    assert "95 % over seeds" in printed[0]
    assert "(" not in printed[1]  # no interval
    assert printed[1].split()[-2] == "-"  # no deviation


@pytest.mark.parametrize(
    ("ended", "kind", "message"),
    [
        (Ended(code=-9), LostRunError, "its process was killed"),
        (Ended(code=143), LostRunError, "its process was killed"),
        (Ended(code=2, message="the loss\nis NaN"), TrainingError, "the loss\nis NaN"),
        (Ended(code=1, message="Traceback\nValueError: no"), TrainingError, "ValueError: no"),
        (Ended(code=1), TrainingError, "exit code 1"),
    ],
)
def test_the_error_of_a_run_is_what_its_process_ended_with(
    ended: Ended, kind: type[GymDrError], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    folder.config.write_text('{"algorithm": "a2c", "a2c": {"updates": 4}, "gym_dr": "0.4.0"}')
    monkeypatch.setattr(launcher, "run_commands", lambda commands, *_: dict.fromkeys(commands, ended))
    (error,) = launcher.train_folders([folder], Launch()).values()
    assert type(error) is kind
    assert message in str(error)


LONG = ["--updates", "300", *TINY[2:]]
CHECKPOINTS = ("--checkpoint-every", "50")
TWO = ("--seeds", "1,2", "--workers", "2", *CHECKPOINTS)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of two longer runs that nothing has disturbed, not even each other."""
    root = tmp_path_factory.mktemp("two")
    for seed in (1, 2):
        train(root / f"seed-{seed}", "--seed", str(seed), *CHECKPOINTS, tiny=LONG)
    return result(root)


def wait_for_updates(run: Path, count: int, process: subprocess.Popen[str] | None = None) -> None:
    while not (run / "metrics.csv").exists() or (run / "metrics.csv").read_text().count("\n") < count:
        assert process is None or process.poll() is None, "it has ended already"
        time.sleep(0.01)


@pytest.mark.parametrize(("error", "kept"), [(LostRunError, True), (TrainingError, False)])
def test_folders_of_seeds_that_had_not_begun_are_kept_where_a_process_was_lost(
    error: type[GymDrError], kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> None:
        raise error("seed-1: its process was killed")

    monkeypatch.setattr(importlib.import_module("gym_dr.api.train"), "train_seeds", fail)
    assert "process was killed" in refused(
        gymdr("train", "a2c", *TINY, "--seeds", "1,2", "--run-dir", tmp_path / "runs")
    )
    assert (tmp_path / "runs" / "seed-2").exists() == kept


@pytest.mark.slow  # its siblings are in test_processes.py
def test_a_killed_process_is_named_the_others_go_on_and_resume_gives_the_same_result(
    two: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def kill() -> None:
        wait_for_updates(tmp_path / "cut" / "seed-1", 60)
        (worker,) = workers_of(os.getpid())
        os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SystemExit) as stop:
        train(tmp_path / "cut", *TWO, "--workers", "1", tiny=LONG)
    killer.join()
    assert stop.value.code == 2
    message = capfd.readouterr().err
    assert f"its process was killed. Continue with: gymdr resume {tmp_path / 'cut'}/seed-1" in message
    assert "Traceback" not in message
    assert training_of(tmp_path / "cut" / "seed-2") == two["seed-2"][:2]
    main(["resume", str(tmp_path / "cut")])
    assert result(tmp_path / "cut") == two


@pytest.mark.slow  # its siblings are those of a single run in test_signals.py
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_every_seed_after_its_update_and_resume_gives_the_same_result(
    number: int, code: int, two: dict[str, Any], tmp_path: Path
) -> None:
    root = tmp_path / "cut"
    command = [sys.executable, "-c", "from gym_dr.cli.main import main; main()", "train", "a2c", *LONG, *TWO]
    parent = subprocess.Popen(
        [*command, "--run-dir", root], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for seed in (1, 2):
        wait_for_updates(root / f"seed-{seed}", 60, parent)
    workers = workers_of(parent.pid)
    # Ctrl-C reaches all processes of a terminal, SIGTERM the one that it is meant for
    (os.killpg if number == signal.SIGINT else os.kill)(parent.pid, number)
    _, errors = parent.communicate()
    assert parent.returncode == code, errors
    assert f"Stopped. Continue with: gymdr resume {root}" in errors
    assert "Traceback" not in errors
    assert len(workers) == 2
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    rows = {seed: (root / f"seed-{seed}/metrics.csv").read_text().count("\n") - 1 for seed in (1, 2)}
    assert min(rows.values()) < 300  # the one that began later was not through
    for seed in (seed for seed in rows if rows[seed] < 300):
        assert f"to the same result as without the stop, with: gymdr resume {root}/seed-{seed}" in errors
    main(["resume", str(root)])
    assert result(root) == two


def test_what_is_for_the_other_launcher_is_refused_and_leaves_no_folder(tmp_path: Path) -> None:
    seeds = ["train", "a2c", *TINY, "--seeds", "1,2", "--run-dir", tmp_path / "runs"]
    message = refused(gymdr(*seeds, "--ray-address", "auto"))
    assert message == "--ray-address: expected with --launcher ray, got another launcher."
    assert not (tmp_path / "runs").exists()
