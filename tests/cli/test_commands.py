from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gym_dr.cli.options import read_randomize
from gym_dr.cli.progress import Progress
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.plugins import manager
from gym_dr.plugins.manager import LoadedPlugin, load_plugins
from gym_dr.registration import BUILTIN
from gym_dr.runs.config import RunSettings
from tests.cli.command import gymdr, train


def test_help_lists_every_command() -> None:
    out = gymdr("--help").out
    for name in ("train", "resume", "evaluate", "report", "plot", "play", "list", "params"):
        assert f"\n  {name} " in out


@pytest.mark.parametrize("name", ["train", "resume", "evaluate", "report", "plot", "play", "list", "params"])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(name: str, flag: str) -> None:
    result = gymdr(name, flag)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: gymdr {name}")


def test_every_field_of_the_configuration_is_an_option_with_its_help() -> None:
    out = " ".join(gymdr("train", "a2c", "--help").out.split())
    config = load_plugins().algorithm("a2c").config_class()
    for field in (*dataclasses.fields(RunSettings), *dataclasses.fields(config)):
        assert f"--{field.name.replace('_', '-')}" in out
        assert field.metadata["help"].split(" ")[0] in out


def test_list_envs_names_every_id() -> None:
    out = gymdr("list", "envs").out
    assert all(entry.id in out for entry in BUILTIN)


def test_list_algorithms_has_a_line_for_each() -> None:
    assert "a2c" in gymdr("list", "algorithms").out


def test_list_plugins_tells_package_and_origin() -> None:
    assert "builtin" in gymdr("list", "plugins").out
    assert "builtin.py" in gymdr("list", "plugins").out


@pytest.mark.parametrize("command", [["list", "algorithms"], ["list", "envs"], ["train", "a2c", "--help"]])
def test_commands_warn_of_a_plugin_that_is_left_out(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    broken = LoadedPlugin(name="bad", package="pkg 1.0", origin="bad", problem="importing bad failed")
    monkeypatch.setattr(load_plugins(), "plugins", [*load_plugins().plugins, broken])
    result = gymdr(*command)
    assert result.code == 0
    assert result.err == (
        "Warning: plugin 'bad' of pkg 1.0 is left out: importing bad failed. "
        f"Set {manager.DISABLE}=bad to disable it.\n"
    )


def test_params_shows_bounds_units_and_presets() -> None:
    out = gymdr("params", "gym_dr/LunarLanderDR-v3").out
    assert "gravity" in out
    assert "m/s^2" in out
    for preset in ("none", "default", "wide", "random", "extreme"):
        assert f"\npreset {preset}" in out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    train(folder)
    return folder


def test_evaluate_writes_and_prints_statistics(run: Path) -> None:
    result = gymdr("evaluate", run, "--episodes", "3")
    assert "training: 3 episodes" in result.out
    assert [row["episodes"] for row in json.loads((run / "evaluation/evaluation.json").read_text())["results"]] == [
        3,
        3,
    ]


def test_plot_writes_into_the_run_or_where_it_is_told(run: Path, tmp_path: Path) -> None:
    (run / "training.png").unlink()
    gymdr("plot", run)
    gymdr("plot", run, "--output", tmp_path / "x.png")
    assert (run / "training.png").read_bytes()[:4] == (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"


def test_plot_of_several_runs_writes_beside_none_of_them(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gymdr("plot", run, run).out == "Wrote comparison.png\n"
    assert (tmp_path / "comparison.png").is_file()


@pytest.fixture(scope="module")
def played(run: Path) -> str:
    return gymdr("play", run, "--episodes", "1").out


def test_play_tells_return_and_randomized_values(played: str) -> None:
    assert played.startswith("return")
    assert "gravity" in played
    assert "lander_density" not in played


def test_the_same_seed_plays_the_same_episode(run: Path, played: str) -> None:
    assert gymdr("play", run, "--episodes", "1").out == played


@pytest.mark.skipif(os.name == "nt", reason="pipes close differently there")
def test_a_reader_that_stops_early_gets_no_traceback() -> None:
    program = "import os; r, w = os.pipe(); os.close(r); os.dup2(w, 1)\nfrom gym_dr.cli.main import main\nmain({})"
    for args in (["list", "envs"], ["--help"]):
        result = subprocess.run([sys.executable, "-c", program.format(args)], capture_output=True, text=True)
        assert result.stderr == ""


def test_progress_goes_on_from_the_updates_of_a_resumed_run(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(total=4, first=2, title="t") as progress:
        progress(3, {"steps": 30, "return_mean": math.nan})
        progress(4, {"steps": 40, "return_mean": 1.25})
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("t: update 3/4")
    assert "no episode yet" in first
    assert second.startswith("t: update 4/4")
    assert "return 1.2" in second


def test_a_long_run_prints_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(total=1000, first=0, title="t") as progress:
        for update in range(1, 1001):
            progress(update, {"steps": update, "return_mean": 0.0})
    assert len(capsys.readouterr().err.splitlines()) == 20


def test_randomize_options_are_split_at_the_first_equals_sign() -> None:
    assert read_randomize((" a = uniform:0:1 ", "b=1")) == {"a": "uniform:0:1", "b": "1"}


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(RandomizationError, match="'a' is given twice"):
        read_randomize(("a=1", "a=2"))


@pytest.mark.parametrize("text", ["a", "=1", "a=", " = "])
def test_a_rule_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME=DISTRIBUTION"):
        read_randomize((text,))
