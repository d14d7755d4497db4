"""The examples run, and the tutorials' hyper-parameters stay theirs, whatever becomes of the defaults."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from PIL import Image

import gym_dr
from gym_dr.randomization.files import read_table
from gym_dr.runs.configure import read_config_file
from gym_dr.studies.plan import read_study
from gym_dr.training.registry import find_algorithm
from tests.envs.box2d.exact import EXACT
from tests.pages import blocks
from tests.policies.tiny_run import train_tiny_run
from tests.registered import forgotten_afterwards
from tests.studies.study_sample import tiny_study

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", ["a2c", "reinforce"])
def test_a_tutorials_file_leaves_no_option_to_the_defaults(name: str) -> None:
    algorithm = find_algorithm(name)
    values, _ = read_config_file(EXAMPLES / f"tutorial_{name}.toml", algorithm)
    assert {*values} > {"num_envs", *(field.name for field in dataclasses.fields(algorithm.config_class()))}


def test_two_landers_fly_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train_tiny_run(tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["side_by_side.py", str(tmp_path / "wind.gif"), f"one={run}", f"other={run}"])
    runpy.run_path(str(EXAMPLES / "side_by_side.py"), run_name="__main__")
    with Image.open(tmp_path / "wind.gif") as picture:
        assert picture.size == (2 * 360, 240)
        assert picture.n_frames > 5


def test_equations_of_ones_own_are_one_short_file_which_trains_and_evaluates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / "own_equations.py"
    assert len(path.read_text().splitlines()) <= 120
    monkeypatch.setattr(sys, "argv", [path.name, str(tmp_path / "run"), "2"])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with forgotten_afterwards():
        monkeypatch.delitem(sys.modules, "own_equations", raising=False)
        runpy.run_path(str(path), run_name="__main__")
    assert {"nominal", "training"} <= set(capsys.readouterr().out.split())
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["env"], config["num_envs"]) == ("own_equations:mine/Quadrotor-v0", 32)  # as the file says


@pytest.mark.usefixtures("few_particles")
def test_a_policy_comes_from_a_log_in_one_short_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The robot of one's own; the other systems take the same way through the file."""
    path = EXAMPLES / "from_log.py"
    assert len(path.read_text().splitlines()) <= 120
    monkeypatch.setattr(sys, "argv", [path.name, "cart", str(tmp_path), "2"])
    budgets: dict[str, dict[str, Any]] = {
        "train": {"eval_episodes": 2},
        "record": {"episodes": 2},
        "evaluate": {"episodes": 2},
    }
    budgets["fit"] = {"method": "likelihood"}  # tests/fitting/test_only_fitted.py fits a robot by simulation too
    for name, few in budgets.items():
        verb = getattr(gym_dr, name)
        monkeypatch.setattr(
            gym_dr, name, lambda *args, _verb=verb, _few=few, **given: _verb(*args, **{**given, **_few})
        )
    with forgotten_afterwards():
        runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    assert "Determined: body_mass:cart, body_mass:pole, dof_damping:rail." in out  # the log is free of noise
    assert "Return on the hidden system:" in out
    assert (tmp_path / "fitted.html").is_file()


def test_the_machine_is_within_the_ranges_that_its_log_has_left() -> None:
    hidden = read_table(EXAMPLES / "machine" / "physics.toml")
    found = gym_dr.Randomization.from_dict(read_table(EXAMPLES / "machine" / "ranges.toml"))
    assert set(found) == set(hidden)
    unbounded = [gym_dr.Param(name=name, nominal=0.0, low=float("-inf"), high=float("inf")) for name in found]
    draws = gym_dr.sample(found, gym_dr.ParamSpace("machine", unbounded), 2000)
    low, high = draws.quantile([0.05, 0.95]).to_numpy()
    assert [name for name, a, b in zip(found, low, high, strict=True) if not a <= hidden[name] <= b] == []


def test_the_tutorial_on_equations_shows_the_whole_file() -> None:
    page = EXAMPLES.parent / "docs" / "tutorials" / "own_equations.md"
    _, file = (EXAMPLES / "own_equations.py").read_text().split('"""\n\n', 1)
    shown = "".join(blocks(page, "python"))
    expected = file.partition("if __name__")[0]
    assert shown.split()[: len(expected.split())] == expected.split()


def test_the_tutorial_on_environments_shows_the_class_and_the_function_of_the_file() -> None:
    page = EXAMPLES.parent / "docs" / "tutorials" / "own_environment.md"
    shown = "\n".join(blocks(page, "python"))
    _, *parts = re.split(r"\n{3}(?=class|def|space)", (EXAMPLES / "slide.py").read_text().strip())
    assert [part for part in parts if part not in shown] == []


def test_equations_equal_the_same_physics_as_a_plain_environment_of_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with forgotten_afterwards():
        monkeypatch.delitem(sys.modules, "own_equations", raising=False)
        module = importlib.import_module("benchmarks.own_equations")
        # gusts and first states too; elsewhere the C library's sine and exponential are others than ours
        assert module.largest_difference() <= (0.0 if EXACT else 1e-5)


def test_the_cue_is_shown_first_and_asked_for_fifty_steps_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with forgotten_afterwards():
        monkeypatch.delitem(sys.modules, "cue", raising=False)
        env = gym.make("cue:mine/Cue-v0")
        for cue, answer, reward in [(0, 0, 1.0), (0, 1, 0.0), (1, 1, 1.0), (1, 0, 0.0)]:
            seen = [env.reset(seed=1, options={"params": {"cue": cue}})[0]]
            results = [env.step(answer) for _ in range(51)]
            seen += [result[0] for result in results]
            assert seen[0].tolist() == [2 * cue - 1, 0]
            assert [observation.tolist() for observation in seen[1:50]] == [[0, 0]] * 49
            assert seen[50].tolist() == [0, 1]
            assert [result[1] for result in results] == [0.0] * 50 + [reward]
            assert [result[2] for result in results] == [False] * 50 + [True]


def test_the_go1_trains_in_one_file() -> None:
    path = EXAMPLES / "go1_cleanrl.py"
    assert len(path.read_text().splitlines()) <= 120
    rewards = runpy.run_path(str(path))["main"](2, 8, 8)
    assert len(rewards) == 2
    assert all(map(math.isfinite, rewards))


@pytest.mark.parametrize("name", ["loop", "go1"])
def test_programs_of_machines_need_nothing_of_ours(name: str) -> None:
    text = (EXAMPLES / "deploy" / f"{name}.py").read_text(encoding="utf-8")
    assert {"gym_dr", "gymnasium", "torch"} & set(re.findall(r"\w+", text)) == set()


OWN = ["own_equations", "cue"]  # examples with environments of their own
STUDIES = sorted((EXAMPLES / "studies").glob("*.toml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_has_the_documented_seeds_and_equal_budgets_where_those_are_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with forgotten_afterwards():
        for module in OWN:
            monkeypatch.delitem(sys.modules, module, raising=False)  # so that it registers its id
        study = read_study(path, trust=OWN)
    assert len(study.seeds) == {"walker2d": 3, "terrain": 3, "samplers": 10, "factors_lander": 10}.get(path.stem, 5)
    assert study.same_budget() == (path.stem not in ("algorithms", "factors_lander"))


@pytest.mark.usefixtures("seeds_in_this_process")
@pytest.mark.parametrize("name", ["algorithms", pytest.param("width", marks=pytest.mark.slow)])
def test_a_study_runs_and_compares(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that pages name are run by test_docs.py; the first is the sibling of the slow one."""
    form = tiny_study(read_table(EXAMPLES / "studies" / f"{name}.toml"))
    monkeypatch.setattr("gym_dr.api.run.plot_training", lambda _, path: path.touch())
    found = gym_dr.study(form, output=tmp_path / "out", progress=False)
    assert found.missing == {}
    assert len(set(found.comparisons["variant"])) == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Study: 3 variants on" in page
