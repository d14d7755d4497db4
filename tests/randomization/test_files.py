"""Randomizations and tables in TOML and JSON files."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from gym_dr import Correlation, Randomization, Uniform
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.randomization.files import load_randomization, read_table
from gym_dr.randomization.presets import resolve
from tests.strategies import few, randomizations

HALF = ((1.0, 0.5), (0.5, 1.0))


@pytest.mark.parametrize("head", ["", "[randomization]\n"])
def test_a_toml_file_has_the_rules_at_the_top_or_in_a_table(tmp_path: Path, head: str) -> None:
    file = tmp_path / "wind.toml"
    file.write_text(head + 'gravity = "uniform:-12:-2"\nmass = [3, 4]\n')
    assert load_randomization(file) == Randomization({"gravity": Uniform(-12, -2), "mass": (3, 4)})


def test_a_rule_beside_the_table_is_refused_since_it_would_have_no_effect(tmp_path: Path) -> None:
    file = tmp_path / "wind.toml"
    file.write_text('seed = 3\ngravity = "uniform:-12:-2"\n[randomization]\nwind_power = [0, 5]\n')
    with pytest.raises(ConfigError, match=r"wind\.toml: gravity has no effect outside the table \[randomization\]"):
        resolve(file, LUNAR_LANDER)
    assert load_randomization(file) == Randomization({"wind_power": (0, 5)})  # of an environment without gravity


@few
@given(randomizations(LUNAR_LANDER).filter(bool))  # a file without rules is refused
def test_a_json_file_gives_an_equal_randomization_back(randomization: Randomization) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wind.json"
        file.write_text(json.dumps({"randomization": randomization.to_dict()}))
        assert load_randomization(file) == randomization


def test_a_correlation_in_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "wind.toml"
    file.write_text(
        "gravity = [-12, -2]\nmass = [3, 4]\n"
        '[correlation]\nnames = ["gravity", "mass"]\nmatrix = [[1, 0.5], [0.5, 1]]\n'
    )
    assert load_randomization(file).correlation == Correlation(("gravity", "mass"), HALF)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.toml", b"gravity = ", "is not a valid TOML file"),
        ("bad.toml", b"\xff\xfe", "is not a valid TOML file"),
        ("bad.json", b'{"gravity": ', "is not a valid JSON file"),
        ("bad.json", b"[1, 2]", "expected a table at the top level, got list"),
        ("bad.json", b"[" * 100_000, "is not a valid JSON file"),
        ("bad.toml", b"gravity = " + b"1" * 5000, "is not a valid TOML file"),
        ("bad.toml", b"mass = [4, 3]", "Parameter 'mass': Uniform(4.0, 3.0): expected low < high"),
        ("empty.toml", b"", "expected rules, got none"),
        ("empty.json", b"{}", "expected rules, got none"),
        ("empty.toml", b"# gravity = -9\n[randomization]\n", "expected rules, got none"),
        ("bad.toml", b"randomization = 3", "expected a table of parameters, got 3"),
    ],
)
def test_malformed_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises((ConfigError, RandomizationError), match=f"^{re.escape(str(file))}: .*{re.escape(message)}"):
        load_randomization(file)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"wind\.toml: cannot be read: No such file"):
        read_table(tmp_path / "wind.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_table(tmp_path)
