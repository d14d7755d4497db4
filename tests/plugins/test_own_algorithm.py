"""examples/own_algorithm is installed like any package, and trains from the command line without a change to gym_dr.

What every algorithm promises, it is held to in tests/contracts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.installed import Installed, install


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install("own_algorithm", tmp_path_factory)


@pytest.fixture(scope="module")
def trained(example: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cem") / "run"
    budget = ["--updates", "2", "--num-envs", "2", "--population", "3", "--elite", "2", "--eval-episodes", "2"]
    result = example.gymdr("train", "cem", *budget, "--run-dir", folder)
    assert result.code == 0, result.err
    return folder


def test_the_plugin_is_listed_with_its_package(example: Installed) -> None:
    assert "gym-dr-cem 0.1.0" in example.gymdr_alone("list", "plugins").out


def test_it_trains_into_a_complete_run_folder_and_its_policy_is_evaluated(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    data = {"config.json", "command.txt", "metrics.csv", "draws.csv", "checkpoints"}
    assert names == {*data, "training.png", "evaluation", ".lock"}
    assert json.loads((trained / "config.json").read_text())["cem"]["population"] == 3
    assert len((trained / "metrics.csv").read_text().splitlines()) == 3
    results = json.loads((trained / "evaluation/evaluation.json").read_text())["results"]
    assert [(row["set"], row["episodes"]) for row in results] == [("nominal", 2), ("training", 2)]


def test_an_impossible_value_is_refused_like_one_of_gym_dr(example: Installed, tmp_path: Path) -> None:
    result = example.gymdr("train", "cem", "--elite", "99", "--run-dir", tmp_path / "run")
    assert (result.code, result.err) == (2, "Error: elite: expected from 1 to population (40), got 99.\n")


def test_disabled_it_is_unknown_and_a_run_of_it_refused_with_the_file_that_names_it(
    example: Installed, trained: Path
) -> None:
    unknown = example.gymdr("train", "cem", GYMDR_DISABLE_PLUGINS="cem")
    run = example.gymdr("evaluate", trained, GYMDR_DISABLE_PLUGINS="cem")
    assert (unknown.code, run.code) == (2, 2)
    assert "Unknown algorithm 'cem'" in unknown.err
    assert f"{trained / 'config.json'}: Unknown algorithm 'cem'" in run.err
