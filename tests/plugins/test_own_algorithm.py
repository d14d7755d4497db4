"""examples/own_algorithm is installed like any package, and trains from the command line without a change to gym_dr."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_algorithm"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def gymdr(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs gymdr in a process of its own, where the example is installed."""
    source, site = tmp_path_factory.mktemp("source") / "own_algorithm", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)  # so that building writes nothing into the repository
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index"]
    installed = subprocess.run([*pip, "--target", str(site), str(source)], capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr

    def run(*args: str | Path, modules: Path = site, **env: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(site), str(modules), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-c", "from gym_dr.cli.main import main; main()", *map(str, args)]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": path, **env}, capture_output=True, text=True)

    return run


@pytest.fixture(scope="module")
def trained(gymdr: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cem") / "run"
    budget = ["--updates", "2", "--num-envs", "2", "--population", "3", "--elite", "2", "--eval-episodes", "0"]
    result = gymdr("train", "cem", *budget, "--checkpoint-every", "1", "--run-dir", folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_the_plugin_is_listed_with_its_package(gymdr: Command) -> None:
    assert "gym-dr-cem 0.1.0" in gymdr("list", "plugins").stdout


def test_its_configuration_makes_options(gymdr: Command) -> None:
    assert "policies tried in each generation" in " ".join(gymdr("train", "cem", "--help").stdout.split())


def test_it_trains_into_a_complete_run_folder(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    data = {"config.json", "command.txt", "metrics.csv", "draws.csv", "checkpoints"}
    assert names == {*data, "training.png", ".lock"}
    assert json.loads((trained / "config.json").read_text())["cem"]["population"] == 3
    assert len((trained / "metrics.csv").read_text().splitlines()) == 3


def test_its_policy_is_evaluated(gymdr: Command, trained: Path) -> None:
    result = gymdr("evaluate", trained, "--episodes", "2")
    assert result.returncode == 0, result.stderr
    results = json.loads((trained / "evaluation/evaluation.json").read_text())["results"]
    assert [(row["set"], row["episodes"]) for row in results] == [("nominal", 2), ("training", 2)]


def test_a_run_that_was_cut_resumes_to_the_same_result(gymdr: Command, trained: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(trained, cut)
    (cut / "checkpoints/update-00000002.safetensors").unlink()
    assert gymdr("resume", cut).returncode == 0
    for name in ("metrics.csv", "draws.csv"):
        ours, theirs = [(folder / name).read_text().splitlines() for folder in (cut, trained)]
        drop = name == "metrics.csv"  # its last column is the time
        assert [row.rpartition(",")[0] if drop else row for row in ours] == [
            row.rpartition(",")[0] if drop else row for row in theirs
        ]


FAULTY = """
import math
import gymnasium as gym

class Faulty(gym.Wrapper):
    resets = 0

    def reset(self, **kwargs):
        Faulty.resets += 1
        return super().reset(**kwargs)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, math.nan if Faulty.resets == 3 else reward, *rest

gym.register("Faulty-v0", lambda: Faulty(gym.make("CartPole-v1")))
"""


def test_an_update_that_is_not_finite_is_left_out(gymdr: Command, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    budget = ["--updates", "3", "--num-envs", "1", "--population", "2", "--elite", "1", "--eval-episodes", "0"]
    options = ["--env", "faulty:Faulty-v0", "--on-nan", "skip", "--run-dir", tmp_path / "run"]
    result = gymdr("train", "cem", *budget, *options, modules=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = pd.read_csv(tmp_path / "run/metrics.csv")
    assert list(rows["skipped"]) == [0, 1, 1]
    assert list(rows["best_score"].isna()) == [False, True, False]
    assert rows["spread"][1] == rows["spread"][0]  # nothing was learned from it


def test_an_impossible_value_is_refused_like_one_of_gym_dr(gymdr: Command, tmp_path: Path) -> None:
    result = gymdr("train", "cem", "--elite", "99", "--run-dir", tmp_path / "run")
    assert (result.returncode, result.stderr) == (2, "Error: elite: expected from 1 to population (40), got 99.\n")


def test_disabled_it_is_unknown(gymdr: Command) -> None:
    result = gymdr("train", "cem", GYMDR_DISABLE_PLUGINS="cem")
    assert result.returncode == 2
    assert "Unknown algorithm 'cem'" in result.stderr
