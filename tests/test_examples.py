"""The examples run, and the tutorials' hyper-parameters stay theirs, whatever becomes of the defaults."""

from __future__ import annotations

import dataclasses
import runpy
import sys
from pathlib import Path

import pytest
from PIL import Image

from gym_dr import load_plugins
from gym_dr.runs.config import read_config_file
from tests.evaluation.tiny_run import train_tiny_run

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", ["a2c", "reinforce"])
def test_a_tutorials_file_leaves_no_option_to_the_defaults(name: str) -> None:
    algorithm = load_plugins().algorithms[name]
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


def test_the_readmes_picture_is_there() -> None:
    assert "](examples/lander.gif)" in (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    with Image.open(EXAMPLES / "lander.gif") as picture:
        assert picture.n_frames > 5  # type: ignore[attr-defined]
