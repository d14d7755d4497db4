"""A tuning that several processes share, some of which are killed, with the packages of the extra alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gym_dr
from tests.studies.tune_sample import tiny
from tests.toml_text import toml_text

optuna = pytest.importorskip("optuna")

pytestmark = pytest.mark.integration

LONG = tiny(trials=5, ppo={"updates": 100, "rollout_steps": 32, "minibatches": 4, "hidden_sizes": [8]})


def command(folder: Path, form: dict[str, Any], *options: str) -> list[str | Path]:
    (folder / "tuning.toml").write_text(toml_text(form))
    program = [sys.executable, "-c", "from gym_dr.cli.main import main; main()"]
    return [*program, "tune", folder / "tuning.toml", "--output", folder / "out", *options]


def wait_for(path: Path, pattern: str, process: subprocess.Popen[Any]) -> None:
    while not list(path.glob(pattern)):
        assert process.poll() is None, "it has ended already"
        time.sleep(0.02)


@pytest.mark.parametrize("sampler", ["TPESampler", "GPSampler"])
def test_a_tuning_killed_at_any_time_ends_with_the_same_trials(sampler: str, tmp_path: Path) -> None:
    form = LONG | {"trials": 3, "optuna": {"sampler": sampler}}
    line = command(tmp_path, form, "--workers", "1")
    subprocess.run(line, check=True, capture_output=True)
    (tmp_path / "out").rename(tmp_path / "undisturbed")
    for pattern in ("runs/trial-0/*/checkpoints/*", "runs/trial-1/*-1002/metrics.csv"):
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for(tmp_path / "out", pattern, process)
            process.send_signal(signal.SIGKILL)
    subprocess.run(line, check=True, capture_output=True)
    found, expected = (pd.read_csv(tmp_path / name / "trials.csv") for name in ("out", "undisturbed"))
    found = found[found.state != "FAIL"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found.drop(columns="number"), expected.drop(columns="number"))


def test_ctrl_c_stops_all_workers_and_says_how_to_go_on(tmp_path: Path) -> None:
    line = command(tmp_path, LONG, "--workers", "2")
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(tmp_path / "out", "runs/trial-1/*/metrics.csv", process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped. Run the same command, or make the same call, to go on." in err
    assert "Traceback" not in err
    subprocess.run(line, check=True, capture_output=True)
    trials = pd.read_csv(tmp_path / "out" / "trials.csv")
    assert trials.state.isin(["COMPLETE", "PRUNED"]).sum() == 5


def test_what_is_found_trains(tmp_path: Path) -> None:
    found = gym_dr.tune(tiny(), output=tmp_path / "out", workers=1, progress=False)
    run = gym_dr.train("ppo", config=found.config, run_dir=tmp_path / "run", seed=1, eval_episodes=2, progress=False)
    assert run.config.settings.reserved_seeds == (1001, 1002)
    assert isinstance(optuna.get_all_study_names(f"sqlite:///{tmp_path / 'out' / 'optuna.db'}"), list)
