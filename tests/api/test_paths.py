"""Every verb takes ``~`` for the home folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import gym_dr
from gym_dr.errors import ConfigError
from gym_dr.fitting.logs import read_log
from gym_dr.runs.configure import build_config
from gym_dr.training.registry import find_algorithm
from tests.studies.tune_sample import TINY

POLE = "gym_dr/CartPoleDR-v1"
SMALL: dict[str, Any] = {"updates": 1, "num_envs": 2, "rollout_steps": 32, "hidden_sizes": [4], "eval_episodes": 1}
QUIET: dict[str, Any] = {"progress": False}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder, which is not the current one."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv(
        "XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    )  # compiled code
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "home/draws.toml").write_text("length = [0.4, 0.6]\n")
    return tmp_path / "home"


def train(run_dir: str, **options: Any) -> Any:
    return gym_dr.train(
        "a2c", env=POLE, run_dir=run_dir, **{"randomization": "~/draws.toml", **SMALL, **options}, **QUIET
    )


def test_a_folder_in_the_home_folder_is_trained_in_loaded_evaluated_and_reported(home: Path) -> None:
    run = train("~/run")
    assert run.path == home / "run"
    assert "length" in run.config.randomization
    assert gym_dr.load_run("~/run").path == home / "run"
    assert train("~/next", init="~/run").config.options.init == str((home / "run").resolve())
    (home / "again.json").write_bytes((home / "run/config.json").read_bytes())
    assert train("~/again", config="~/again.json", randomization=None).config.settings.env == POLE
    found = gym_dr.evaluate("~/run", sets=["~/draws.toml"], episodes=1, output="~/found", **QUIET)
    assert found.folder == home / "found"
    assert gym_dr.report("~/run", output="~/page.html", evaluation="~/found", **QUIET) == home / "page.html"
    assert list(Path().iterdir()) == []


def test_policies_and_logs_in_the_home_folder_are_written_and_read(home: Path) -> None:
    pytest.importorskip("onnxruntime")
    train("~/run").export("~/policy.onnx")
    policy = gym_dr.open_policy("onnx:~/policy.onnx")
    log = gym_dr.record(policy, "~/draws.toml", episodes=4, output="~/log", format="npz", **QUIET)
    assert log == home / "log"
    assert len(read_log("~/log")) == len(read_log("~/log/000.npz")) + 3 == 4
    gym_dr.fit("~/log", env=POLE, randomization="~/draws.toml", output="~/fitted.toml", **QUIET)
    assert {"fitted.toml", "fitted.npz", "fitted.html"} <= {path.name for path in home.iterdir()}
    assert list(Path().iterdir()) == []


def test_environments_and_configurations_take_a_file_in_the_home_folder(home: Path) -> None:
    env: Any = gym.make(POLE, randomization="~/draws.toml").unwrapped
    assert set(env.randomization) == {"length"}
    (home / "own.toml").write_text('randomization = "draws.toml"\n')
    config = build_config(find_algorithm("a2c"), {"env": POLE}, config="~/own.toml")
    assert set(config.randomization or ()) == {"length"}
    with pytest.raises(ConfigError, match="~nobody-of-this-name"):
        gym_dr.train("a2c", run_dir="~nobody-of-this-name/x")


@pytest.mark.slow
def test_studies_and_tunings_lie_in_the_home_folder(home: Path) -> None:
    study = {
        "env": POLE,
        "seeds": [1],
        "variants": {"v": {"algorithm": "a2c", "updates": 1}},
        "evaluation": {"episodes": 1},
    }
    assert gym_dr.study(study, output="~/study", **QUIET).folder == home / "study"
    assert gym_dr.tune({**TINY, "trials": 1}, output="~/tuned", workers=1, **QUIET).folder == home / "tuned"
    assert list(Path().iterdir()) == []
