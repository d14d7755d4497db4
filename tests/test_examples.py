"""The examples run, and the tutorials' hyper-parameters stay theirs, whatever becomes of the defaults."""

from __future__ import annotations

import dataclasses
import importlib
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gym_dr.evaluation.results import Evaluation
from gym_dr.runs.config import read_config_file
from gym_dr.training.registry import find_algorithm
from tests.evaluation.tiny_run import train_tiny_run

pytestmark = pytest.mark.usefixtures("full_pictures")

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", ["a2c", "reinforce"])
def test_a_tutorials_file_leaves_no_option_to_the_defaults(name: str) -> None:
    algorithm = find_algorithm(name)
    table = read_config_file(str(EXAMPLES / f"tutorial_{name}.toml"), algorithm)
    assert set(table["options"]) == {field.name for field in dataclasses.fields(algorithm.config_class())}
    assert "num_envs" in table["settings"]


def test_one_lander_flies_under_three_physics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train_tiny_run(tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["three_physics.py", str(run), str(tmp_path / "lander.gif")])
    runpy.run_path(str(EXAMPLES / "three_physics.py"), run_name="__main__")
    with Image.open(tmp_path / "lander.gif") as picture:
        assert picture.size == (3 * 280, 187)
        assert picture.n_frames > 5  # type: ignore[attr-defined]  # of pictures with several


def test_the_readmes_pictures_are_there() -> None:
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(examples/([^)]*\.(?:gif|png))\)", readme):
        with Image.open(EXAMPLES / name) as picture:
            assert picture.width > 500
    assert "](examples/lander.gif)" in readme
    with Image.open(EXAMPLES / "lander.gif") as picture:
        assert picture.n_frames > 5  # type: ignore[attr-defined]


@pytest.mark.usefixtures("seeds_in_this_process")
def test_the_experiment_goes_on_where_it_was_stopped_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    experiment = importlib.import_module("does_it_pay")
    monkeypatch.setattr(experiment, "VARIANTS", {name: experiment.VARIANTS[name] for name in ("nominal", "shown")})
    job = dataclasses.replace(experiment.JOBS["lander"], grid={"gravity": (-11, -5, 2), "wind_power": (0, 20, 2)})
    tiny = {"updates": 2, "rollout_steps": 8, "num_envs": 2, "eval_episodes": 0, "hidden_sizes": (8,)}

    train_tiny_run(tmp_path / "nominal" / "seed-1", "--randomization", "none")
    train_tiny_run(tmp_path / "nominal" / "seed-2", "--randomization", "none", "--seed", "2")
    before = (tmp_path / "nominal" / "seed-1" / "actor.pt").read_bytes()
    experiment.run(job, tmp_path, experiment.Budget(seeds=(1, 2), workers=1, episodes=2, options=tiny))
    assert (tmp_path / "nominal" / "seed-1" / "actor.pt").read_bytes() == before
    table = capsys.readouterr().out.rpartition("| mean return |")[2]
    assert table.splitlines()[0] == (" nominal | training | random | extreme | grid | worst cell of the grid |")
    returns = Evaluation.load(tmp_path / "evaluation").returns("nominal")  # (runs, 1, episodes); the last two are shown
    assert f"| shown | {returns[2:].mean():.0f} (" in table
    assert f"| shown | {returns[2:].mean() - returns[:2].mean():.0f} (" in table
    with Image.open(tmp_path / "grid.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10  # something is drawn
