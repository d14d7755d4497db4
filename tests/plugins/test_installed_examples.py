"""The examples of plugins are installed as any package, and are used from the command line without a change to gym_dr.

What every algorithm and sampler promises, they are held to in tests/contracts; tests/integrations tries the loggers.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from tests.plugins.installed import Installed, install

BUDGET = ["--updates", "6", "--num-envs", "16", "--rollout-steps", "32", "--hidden-sizes", "8", "--eval-episodes", "0"]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory, "own_algorithm", "own_sampler", "own_logger")


@pytest.fixture(scope="module")
def trained(examples: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the algorithm."""
    folder = tmp_path_factory.mktemp("cem") / "run"
    budget = ["--updates", "2", "--num-envs", "2", "--population", "3", "--elite", "2", "--eval-episodes", "2"]
    result = examples.gymdr("train", "cem", *budget, "--run-dir", folder)
    assert result.code == 0, result.err
    return folder


def test_plugins_samplers_and_loggers_are_listed(examples: Installed) -> None:
    assert "gym-dr-cem 0.1.0" in examples.gymdr_alone("list", "plugins").out
    samplers, loggers = (examples.gymdr("list", kind).out for kind in ("samplers", "loggers"))
    assert "widening  Widens ranges at a constant rate" in samplers
    assert "--widening-episodes 20000" in samplers
    assert "mlflow       MLflow." in loggers
    assert "wandb        Weights & Biases." in loggers
    assert "[widening] episodes until draws cover" in " ".join(examples.gymdr("train", "a2c", "--help").out.split())


def test_the_algorithm_trains_into_a_complete_run_folder_and_its_policy_is_evaluated(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    data = {"config.json", "command.txt", "metrics.csv", "draws.csv", "checkpoints"}
    assert names == {*data, "training.png", "evaluation", ".lock"}
    assert json.loads((trained / "config.json").read_text())["cem"]["population"] == 3
    assert len((trained / "metrics.csv").read_text().splitlines()) == 3
    results = json.loads((trained / "evaluation/evaluation.json").read_text())["results"]
    assert [(row["set"], row["episodes"]) for row in results] == [("nominal", 2), ("training", 2)]


def test_disabled_it_is_unknown_and_a_run_of_it_refused_with_the_file_that_names_it(
    examples: Installed, trained: Path
) -> None:
    unknown = examples.gymdr("train", "cem", GYMDR_DISABLE_PLUGINS="cem")
    run = examples.gymdr("evaluate", trained, GYMDR_DISABLE_PLUGINS="cem")
    assert (unknown.code, run.code) == (2, 2)
    assert "Unknown algorithm 'cem'" in unknown.err
    assert f"{trained / 'config.json'}: Unknown algorithm 'cem'" in run.err


def test_the_sampler_widens_draws_in_a_training(examples: Installed, tmp_path: Path) -> None:
    own = ["--sampler", "widening", "--widening-episodes", "20", "--start-width", "0.1"]
    result = examples.gymdr("train", "a2c", *BUDGET, *own, "--run-dir", tmp_path / "run", "--randomization", "wide")
    assert result.code == 0, result.err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["widening"] == {"start": "nominal", "start_width": 0.1, "widening_episodes": 20}
    with open(tmp_path / "run" / "sampler.csv", newline="") as file:
        shares = [float(row["share"]) for row in csv.DictReader(file)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert (tmp_path / "run" / "sampler.png").exists()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (["cem", "--elite", "99"], "elite: expected from 1 to population (40), got 99."),
        (
            ["a2c", "--sampler", "widening", "--widening-episodes", "0"],
            "widening_episodes: expected at least 1, got 0.",
        ),
        (["a2c", "--sampler", "widening", "--alpha", "0.5"], "alpha: expected with sampler doraemon, got widening."),
    ],
)
def test_an_impossible_option_is_refused_like_one_of_gym_dr(
    examples: Installed, own: list[str], message: str, tmp_path: Path
) -> None:
    result = examples.gymdr("train", *own, "--run-dir", tmp_path / "run")
    assert (result.code, result.err) == (2, f"Error: {message}\n")


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is not None, reason="MLflow is installed")
def test_a_tool_that_is_missing_is_named_with_its_pip_command(examples: Installed) -> None:
    found = examples.gymdr("train", "a2c", "--log", "mlflow")
    assert found.code == 2
    assert found.err == "Error: --log mlflow needs mlflow: pip install mlflow\n"
