from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from gym_dr.cli.evaluate import grid_of
from gym_dr.cli.main import cli
from gym_dr.cli.options import read_randomize
from gym_dr.cli.typed import option
from gym_dr.compiled.processors import usable_threads
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import ConfigError
from gym_dr.policies.frozen import play_batch
from gym_dr.runs.config import RunSettings
from gym_dr.training.registry import find_algorithm
from tests.cli.command import TINY, gymdr, train
from tests.envs.equations.swing import register
from tests.registered import forgotten_afterwards


def test_every_command_is_listed_and_has_help() -> None:
    listed = gymdr("-h").out
    for name in cli.list_commands(click.Context(cli)):
        result = gymdr(name, "--help")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"Usage: gymdr {name}")
        assert f"\n  {name} " in listed


def test_every_field_of_the_configuration_is_an_option_with_its_help() -> None:
    out = " ".join(gymdr("train", "a2c", "--help").out.split())
    config = find_algorithm("a2c").config_class()
    for field in (*dataclasses.fields(RunSettings), *dataclasses.fields(config)):
        assert option(field.name) in out
        assert field.metadata["help"].split(" ")[0] in out


def test_the_options_of_a_training_stand_in_groups() -> None:
    out = gymdr("train", "ppo", "--help").out
    groups = dict(re.findall(r"^(\w+):\n((?:  .*\n|\n)+)", out, re.MULTILINE))
    first = {"Task": "--env", "Randomization": "--randomize", "Algorithm": "--lr", "Run": "--run-dir"}
    for title, flag in first.items():
        assert [name for name, text in groups.items() if f"\n  {flag} " in f"\n{text}"] == [title]


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "gym_dr", "list", "algorithms"], capture_output=True, text=True)
    assert done.stdout == gymdr("list", "algorithms").out


def test_list_envs_names_every_id() -> None:
    out = gymdr("list", "envs").out
    assert all(env_id in out for env_id in ENVIRONMENTS)


def test_list_envs_says_how_long_episodes_can_be() -> None:
    with forgotten_afterwards():
        register(max_episode_steps=None)
        out = gymdr("list", "envs").out
    assert re.search(r"^tests/Swing-v0 +no step limit$", out, re.MULTILINE)
    assert re.search(r"^gym_dr/HopperDR-v5 +at most 1000 steps$", out, re.MULTILINE)


def test_algorithms_and_plugins_are_listed_with_their_origin() -> None:
    assert "a2c" in gymdr("list", "algorithms").out
    assert "builtin" in gymdr("list", "plugins").out
    assert "gym_dr.plugins.builtin" in gymdr("list", "plugins").out


def test_params_shows_bounds_units_and_presets() -> None:
    out = gymdr("params", "gym_dr/LunarLanderDR-v3").out
    assert "gravity" in out
    assert "m/s^2" in out
    for preset in ("none", "default", "wide", "random", "extreme"):
        assert f"\npreset {preset}" in out


def test_params_of_many_elements_share_a_row_unless_they_are_named() -> None:
    rows = {line.split()[0]: line for line in gymdr("params", "gym_dr/AntDR-v5").out.splitlines() if line}
    assert "torso, front_left_leg" in rows["body_mass:..."]
    assert ".slide, .spin, .roll" in rows["geom_friction:..."]
    assert "body_mass:torso" not in rows
    one = gymdr("params", "gym_dr/AntDR-v5", "body_mass", "*_rotation:aux_1.x").out
    assert [line.split()[0] for line in one.splitlines()[1:4]] == [
        "body_mass",
        "body_mass:torso",
        "body_mass:front_left_leg",
    ]
    assert one.splitlines()[-1].startswith("body_rotation:aux_1.x")


def test_params_of_sensors_are_found_by_name() -> None:
    rows = gymdr("params", "gym_dr/CartPoleDR-v1", "obs_hide", "obs_drop").out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["obs_drop", "obs_hide:SENSOR", "obs_drop:SENSOR"]


@pytest.mark.parametrize("env_id", ["gym_dr/CartPoleDR-v1", "gym_dr/HopperDR-v5", "gym_dr/BipedalWalkerDR-v3"])
def test_ranges_of_presets_are_shown_with_few_digits(env_id: str) -> None:
    presets = gymdr("params", env_id).out.partition("\npreset ")[2]
    assert not re.findall(r"\d\.\d{7,}", presets)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    train(folder)
    return folder


def test_plot_writes_into_the_run_or_where_it_is_told(run: Path, tmp_path: Path) -> None:
    (run / "training.png").unlink()
    gymdr("plot", run)
    gymdr("plot", run, "--output", tmp_path / "x.png")
    assert (run / "training.png").read_bytes()[:4] == (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"


BUFFERS = pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])


@BUFFERS
@pytest.mark.skipif(os.name == "nt", reason="pipes close differently there")
def test_a_reader_that_stops_early_gets_no_traceback(unbuffered: str) -> None:
    program = "import os; r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n"
    program += "from gym_dr.cli.main import main\nmain(['list', 'envs'])"
    variables = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables)
    assert result.stderr == ""


@BUFFERS
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_gets_no_traceback(unbuffered: str) -> None:
    program = [sys.executable, "-c", "from gym_dr.cli.main import main\nmain(['list', 'envs'])"]
    with open("/dev/full", "w") as full:
        variables = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        result = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, env=variables)
    assert result.stderr == "Error: Output cannot be written: No space left on device.\n"
    assert result.returncode == 2


@pytest.mark.parametrize("text", ["a", "=1", "a=", " = "])
def test_a_rule_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME=DISTRIBUTION"):
        read_randomize((text,))


def test_axes_of_a_grid_are_read_and_may_be_named_after_an_element() -> None:
    made = grid_of(("gravity=-12:-2:11", "body_mass:torso=1:2:2"))
    assert repr(made) == "grid(gravity=(-12.0, -2.0, 11), body_mass:torso=(1.0, 2.0, 2))"


@pytest.mark.parametrize("text", ["gravity=1:2", "gravity=1:2:x", "gravity=1:2:3:4", "=1:2:3"])
def test_a_malformed_axis_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected NAME=LOW:HIGH:COUNT such as gravity=-12:-2:11, got '"):
        grid_of((text,))


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
@pytest.mark.parametrize("closed", [pytest.param("2>&-", marks=pytest.mark.slow), "1>&- 2>&-"])
def test_closed_streams_neither_end_a_command_nor_lend_their_numbers_to_its_files(closed: str, tmp_path: Path) -> None:
    code = "from gym_dr.api import run; run.plot_training = lambda _, path: path.touch(); "  # it takes long
    command = f'exec "$0" -c "{code}from gym_dr.cli.main import main; main()" "$@" {closed}'
    args = ["train", "a2c", *TINY, "--run-dir", str(tmp_path / "run")]
    assert subprocess.run(["sh", "-c", command, sys.executable, *args], capture_output=True).returncode == 0
    rows = (tmp_path / "run/metrics.csv").read_text().splitlines()
    assert [row.partition(",")[0] for row in rows] == ["update", "0", "1"]


@pytest.mark.parametrize(
    ("command", "played"),
    [
        (["evaluate", "--episodes", "1"], "gym_dr.evaluation.evaluate.play_batch"),
        (["record", "--episodes", "1", "--format", "npz", "--output", "log"], "gym_dr.policies.record.play_batch"),
        (["resume"], "gym_dr.evaluation.evaluate.play_batch"),
        pytest.param(["report"], "gym_dr.evaluation.evaluate.play_batch", marks=pytest.mark.slow),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_plays_on_the_threads_that_were_asked_for(
    command: list[str], played: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []

    def play(*args: Any, **kwargs: Any) -> Any:
        used.append(usable_threads())
        return play_batch(*args, **kwargs)

    monkeypatch.chdir(tmp_path)
    assert train(Path("run"), "--eval-episodes", "1", "--updates", "1", "--env", "gym_dr/CartPoleDR-v1").code == 0
    monkeypatch.setattr(played, play)
    shutil.rmtree("run/evaluation")
    result = gymdr(command[0], "run", *command[1:], "--num-threads", "3")
    assert result.code == 0, result.err
    assert {*used} == {3}
