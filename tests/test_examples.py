"""The tutorials' hyper-parameters stay theirs, whatever becomes of the defaults."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gym_dr import load_plugins
from gym_dr.runs.config import read_config_file

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", ["a2c", "reinforce"])
def test_a_tutorials_file_leaves_no_option_to_the_defaults(name: str) -> None:
    algorithm = load_plugins().algorithms[name]
    table = read_config_file(str(EXAMPLES / f"tutorial_{name}.toml"), algorithm)
    assert set(table["options"]) == {field.name for field in dataclasses.fields(algorithm.config_class())}
    assert "num_envs" in table["settings"]
