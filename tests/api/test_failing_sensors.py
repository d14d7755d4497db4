"""Sensors that fail, from the command line to a resumed run and an evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from gym_dr.runs.configure import build_config
from gym_dr.training.registry import find_algorithm
from tests.cli.command import gymdr, refused, train
from tests.runs.test_session import assert_same_run
from tests.runs.training import train_or_resume

CART_POLE = "gym_dr/CartPoleDR-v1"
FAILING = ("--randomize", "obs_hide:*_dot=bernoulli:0.5", "--randomize", "obs_drop:2=0:0.5", "--randomize", "tau=0.02")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "failing"
    assert train(folder, "--env", CART_POLE, "--updates", "20", *FAILING).code == 0
    return folder


def test_a_training_draws_and_records_which_sensors_fail(trained: Path) -> None:
    draws = pd.read_csv(trained / "draws.csv")
    assert {"obs_hide:x_dot", "obs_hide:theta_dot", "obs_drop:2"} < set(draws)
    assert set(draws["obs_hide:x_dot"]) == {0.0, 1.0}
    assert draws["obs_drop:2"].between(0, 0.5).all()


def test_an_evaluation_sets_sensors_of_the_training_and_others(trained: Path, tmp_path: Path) -> None:
    grid = ("--grid", "obs_hide:theta_dot=0:1:2", "--grid", "obs_hide:x=0:1:2", "--grid", "obs_drop=0:0.5:2")
    result = gymdr("evaluate", trained, "--episodes", "2", "--output", tmp_path, *grid)
    assert result.code == 0, result.err
    document = json.loads((tmp_path / "evaluation.json").read_text())
    assert {"obs_hide:x", "obs_hide:theta_dot", "obs_hide:x_dot", "obs_drop:2", "obs_drop"} <= {*document["parameters"]}
    episodes = pd.read_csv(tmp_path / "episodes.csv")
    cells = episodes[episodes["set"] == "grid"]
    assert len(cells.groupby(["obs_hide:theta_dot", "obs_hide:x", "obs_drop"])) == 8
    assert set(episodes[episodes["set"] == "nominal"]["obs_hide:theta_dot"]) == {0.0}


def test_one_sensor_by_two_names_is_refused(trained: Path, tmp_path: Path) -> None:
    both = ("--set", "obs_drop:2=0.5", "--randomize", "obs_drop:theta=0:1")
    message = refused(gymdr("evaluate", trained, "--episodes", "1", "--output", tmp_path, *both))
    assert "Expected each sensor once, got obs_drop:2 and obs_drop:theta" in message


def test_params_lists_the_sensors_in_one_line() -> None:
    lines = gymdr("params", "gym_dr/HopperDR-v5").out.splitlines()
    assert sum("obs_hide:" in line for line in lines) == 2
    (sensors,) = (line for line in lines if line.startswith("sensors: "))
    assert sensors.startswith("sensors: rootz, rooty, thigh_joint, leg_joint, foot_joint, rootx_dot, ")
    assert "or an index from 0 to 10" in sensors


def test_a_run_that_was_cut_resumes_to_the_same_result(tmp_path: Path) -> None:
    settings = {"env": CART_POLE, "num_envs": 2, "checkpoint_every": 2, "eval_episodes": 0}
    options = {"updates": 6, "rollout_steps": 32, "hidden_sizes": (8,)}
    config = build_config(
        find_algorithm("a2c"),
        {**settings, **options},
        randomize={"obs_hide:*_dot": "bernoulli:0.5", "obs_drop": (0, 0.5), "obs_drop:theta": 0.3},
    )
    whole = train_or_resume(tmp_path / "whole", config)
    train_or_resume(tmp_path / "cut", config, cut_at=3)
    assert_same_run(train_or_resume(tmp_path / "cut", config), whole)
