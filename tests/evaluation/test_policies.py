from __future__ import annotations

import json
from pathlib import Path

import pytest

from gym_dr.cli.runs import open_run
from gym_dr.errors import ConfigError
from gym_dr.evaluation.policies import evaluate_run
from tests.evaluation.tiny_run import train_tiny_run


def test_a_randomized_run_is_evaluated_on_nominal_and_on_training_draws(tmp_path: Path) -> None:
    folder, config, algorithm = open_run(str(train_tiny_run(tmp_path / "run")))
    result = evaluate_run(folder, config, algorithm, episodes=4)
    assert [result[name]["episodes"] for name in ("nominal", "training")] == [4, 4]
    assert result["nominal"]["mean"] != result["training"]["mean"]
    assert json.loads(folder.evaluation.read_text()) == result


def test_a_nominal_run_is_evaluated_once(tmp_path: Path) -> None:
    path = train_tiny_run(tmp_path / "run", "--randomization", "none")
    assert set(evaluate_run(*open_run(str(path)), episodes=2)) == {"env", "seed", "nominal"}


def test_an_environment_without_parameters_is_evaluated(tmp_path: Path) -> None:
    path = train_tiny_run(tmp_path / "run", "--env", "CartPole-v1")
    assert evaluate_run(*open_run(str(path)), episodes=2)["nominal"]["episodes"] == 2


def test_evaluating_again_gives_the_same_numbers(tmp_path: Path) -> None:
    run = open_run(str(train_tiny_run(tmp_path / "run")))
    assert evaluate_run(*run, episodes=3) == evaluate_run(*run, episodes=3)


def test_no_episodes_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    folder, config, algorithm = open_run(str(train_tiny_run(tmp_path / "run")))
    with pytest.raises(ConfigError, match="at least 1 episode"):
        evaluate_run(folder, config, algorithm, episodes=0)
    assert not folder.evaluation.exists()
