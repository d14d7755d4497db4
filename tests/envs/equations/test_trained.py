"""Environments from equations in trainers, samplers that learn, evaluation and report, as built-in ones."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gym_dr

MODULE = "tests.envs.equations.own.tank"
ENV = f"{MODULE}:tests/Tank-v0"
BUDGET: dict[str, Any] = {"updates": 3, "num_envs": 4, "eval_episodes": 0, "checkpoint_every": 1, "progress": False}


@pytest.fixture(autouse=True)
def _registered() -> None:
    pytest.importorskip("torch")  # which the tests on the newest Python leave out
    sys.modules.pop(MODULE, None)  # so that it registers its id, which is forgotten after each test
    importlib.import_module(MODULE)


@pytest.mark.parametrize(
    "algorithm",
    ["ppo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("reinforce", "a2c"))],
)
def test_every_algorithm_trains_the_same_again_through_the_noise_of_steps(algorithm: str, tmp_path: Path) -> None:
    runs = [gym_dr.train(algorithm, env=ENV, run_dir=tmp_path / name, **BUDGET) for name in ("one", "two")]
    metrics = [run.metrics.drop(columns="seconds", errors="ignore") for run in runs]
    numbers = [table.select_dtypes("number").filter(regex="return|loss|entropy").to_numpy() for table in metrics]
    np.testing.assert_array_equal(*numbers)
    assert len(numbers[0]) == 3


def test_a_sampler_learns_a_grid_is_played_and_a_page_is_written(tmp_path: Path) -> None:
    budget = {**BUDGET, "rollout_steps": 110}  # of whole episodes
    run: Any = gym_dr.train("a2c", env=ENV, sampler="doraemon", success=-50.0, run_dir=tmp_path / "run", **budget)
    assert run.draws["mass"].between(30.0, 80.0).all()
    found = gym_dr.evaluate(run, gym_dr.grid(mass=(30.0, 80.0, 2)), episodes=2, progress=False)
    assert set(found.episodes_of("grid")["mass"]) == {30.0, 80.0}
    page = gym_dr.report(run, output=tmp_path / "page.html", progress=False)
    assert "hours" in Path(page).read_text()
