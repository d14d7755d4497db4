"""What answers at once must not load what is slow."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "numba", "mujoco", "matplotlib", "pandas", "scipy", "Box2D", "pygame", "plotly", "jinja2"}
COMMANDS = ("--help", "--version", "train --help", "train a2c --help", "bench --help", "list plugins", "list envs")
COMPLETED = ("gymdr train a2c --env gym", "gymdr train a2c --randomize grav")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a process says that has loaded the package, and then run each command."""
    program = f"""
import os
import sys
import gym_dr

def tell(what):
    print("loaded by " + what + ":", sorted({HEAVY} & set(sys.modules)))

tell("gym_dr")
from gym_dr.cli.main import main
for command in {COMMANDS}:
    try:
        main(command.split())
    except SystemExit as stop:
        assert not stop.code, stop
    tell(command)
os.environ["_GYMDR_COMPLETE"], os.environ["COMP_CWORD"] = "bash_complete", "4"
for line in {COMPLETED}:
    os.environ["COMP_WORDS"] = line
    try:
        main([])
    except SystemExit as stop:
        assert not stop.code, stop
    tell(line)
del os.environ["_GYMDR_COMPLETE"]
from gym_dr.api import run
run.plot_training = lambda *_: None  # which takes longer than all else
main("train a2c --updates 1 --num-envs 2 --eval-episodes 0 --hidden-sizes 8 --run-dir run".split())
print("loaded by a training:", [name for name in ("torch", "torch._dynamo") if name in sys.modules])
"""
    folder = tmp_path_factory.mktemp("imports")
    result = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [line for line in result.stdout.splitlines() if line.startswith("loaded by ")]


def test_nothing_heavy_is_imported_with_the_package(told: list[str]) -> None:
    assert told[0] == "loaded by gym_dr: []"


def test_nothing_heavy_is_imported_by_what_answers_at_once(told: list[str]) -> None:
    assert told[1:-1] == [f"loaded by {command}: []" for command in (*COMMANDS, *COMPLETED)]


def test_a_training_does_without_the_compiler_of_torch(told: list[str]) -> None:
    assert told[-1] == "loaded by a training: ['torch']"
