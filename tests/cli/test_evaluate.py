"""``gymdr evaluate`` as its users meet it: what it prints and writes, and what it refuses before it plays anything."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gym_dr.evaluation.results import Evaluation
from gym_dr.runs.terminal import Progress
from tests.cli.command import files, gymdr, refused, train


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "nominal", "--randomization", "none")
    train(folder / "random", "--randomization", "random", "--seed", "2")
    train(folder / "pole", "--env", "CartPole-v1", "--randomization", "none")
    return folder


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--grid", "gravty=-12:-2:3"], "'gravty'. Did you mean 'gravity'?"),
        (["--grid", "gravity=-12:-2:0"], "--grid: gravity: expected (lowest, highest, count)"),
        (["--grid", "gravity=-12:-2:3", "--grid", "gravity=-12:-2:3"], "parameter 'gravity' is given twice"),
        (["--episodes", "0"], "0 is not in the range x>=1"),
        (["--sobol", "100"], "--sobol: expected a power of 2, at least 2, got 100; 128 is near"),
        (["--success", "nan"], "--success: expected a finite return"),
        (["--output", "no/where"], "no/where: there is no folder no"),
        (["{runs}/nominal"], "Expected --output for an evaluation of several runs or policies"),
        (["{runs}/pole", "--output", "out"], "was trained on CartPole-v1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_refused_before_anything_is_played(args: list[str], expected: str, runs: Path) -> None:
    before = files(runs)
    assert expected in refused(gymdr("evaluate", runs / "random", *(arg.format(runs=runs) for arg in args)))
    assert files(runs) == before
    assert not Path("out").exists()


def test_everything_at_once(runs: Path, tmp_path: Path) -> None:
    args = ["--grid", "gravity=-12:-2:3", "--grid", "wind_power=0:20:2"]
    args += ["--sobol", "4", "--randomization", "extreme"]
    args += ["--episodes", "2", "--success", "-1000.0", "--output", str(tmp_path / "out")]
    paths = [str(runs / "nominal"), str(runs / "random")]
    result = gymdr("evaluate", *paths, *args)
    assert result.code == 0, result.err
    evaluation = Evaluation.load(tmp_path / "out")
    assert {c.name: c.num_cells for c in evaluation.sets} == {
        "nominal": 1,
        "training": 1,
        "grid": 6,
        "sobol": 4 * 9,  # the preset varies seven parameters
        "extreme": 1,
    }
    assert evaluation.document["command"] == shlex.join(["gymdr", "evaluate", *paths, *args])
    assert "grid: enable_wind is on" in result.err
    assert "success: a return of at least -1000" in result.out
    assert "grid: 6 cells of 2 episodes" in result.out
    assert "nominal minus" in result.out
    assert "worst cell, mean return" in result.out
    assert "no parameter (noise)" in result.out
    assert result.out.endswith(f"Wrote {tmp_path / 'out'}\n")


def test_a_threshold_holds_until_another_one_is_given(runs: Path, tmp_path: Path) -> None:
    few = ("--episodes", "2", "--output", tmp_path / "out")
    for args, expected in (
        (("--success", "77"), 77.0),
        (("--grid", "gravity=-9:-3:2"), 77.0),
        (("--success", "200"), 200.0),
    ):
        result = gymdr("evaluate", runs / "random", *few, *args)
        assert result.code == 0, result.err
        assert Evaluation.load(tmp_path / "out").document["success"] == expected


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        train(tmp_path / f"seeds/seed-{seed}", "--seed", seed)
    assert gymdr("evaluate", tmp_path / "seeds", "--episodes", "2").code == 0
    assert Evaluation.load(tmp_path / "seeds/evaluation").policies == ["seed-1", "seed-2"]


def test_an_interrupted_evaluation_says_how_to_go_on(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Progress, title: str, done: int, total: int) -> None:
        if done > 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "__call__", stop)
        result = gymdr("evaluate", runs / "random", "--episodes", "2")
    assert result.code == 130
    assert "Stopped. Finished episodes are saved; run the same again to continue." in result.err
    assert json.loads((runs / "random/evaluation/evaluation.json").read_text())["complete"] is False
    result = gymdr("evaluate", runs / "random", "--episodes", "2")
    assert result.err.splitlines()[0].startswith("random on training: episode 4/4")
