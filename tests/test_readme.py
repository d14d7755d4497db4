"""What README shows is run: its Python blocks as one program, its commands with a small budget."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gym_dr.cli.main import main
from gym_dr.evaluation.report import evaluation
from tests.benchmark.tiny import TINY as TINY_BENCH
from tests.evaluation.tiny_run import TINY

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()

TINY_REINFORCE = ("--updates", "2", "--num-envs", "2", "--eval-episodes", "0")

# a person's hands are played by test_play.py; the install lines are run by .ci/run
NOT_RUN_HERE = ("pip install", "gymdr play --human")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_blocks_run_as_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks("python")), "README.md", "exec"), {})


def test_every_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (("EPISODES", 2), ("POINTS", 2), ("POINT_EPISODES", 2)):  # of a report
        monkeypatch.setattr(evaluation, name, value)
    monkeypatch.setattr("gym_dr.cli.bench.QUICK", TINY_BENCH)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = [line for block in blocks("sh") for line in block.splitlines() if not line.startswith(NOT_RUN_HERE)]
    assert len(commands) >= 12
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "gymdr"
        if arguments[0] == "train":
            arguments = [a for a in arguments if a != "1000"]
            arguments = [a for a in arguments if a != "--updates"] + list(
                TINY if "a2c" in arguments else TINY_REINFORCE
            )
        if arguments[0] == "evaluate":
            arguments += ["--episodes", "2"]
            arguments = ["2" if a == "1024" else a for a in arguments]
        if arguments[0] == "play":
            arguments += ["--episodes", "1"]
        try:
            main(arguments)
        except SystemExit as stop:
            raise AssertionError(f"{line}: {capsys.readouterr().err}") from stop
    assert (tmp_path / "bench" / "throughput.png").stat().st_size > 1000
    assert (tmp_path / "flight.gif").stat().st_size > 1000
    assert (tmp_path / "seeds.png").stat().st_size > 1000
    assert (tmp_path / "comparison.html").stat().st_size > 1_000_000


def test_install_commands_are_one_line_each() -> None:
    installs = [block for block in blocks("sh") if block.startswith("pip install")]
    assert [block.count("\n") for block in installs] == [1, 1]


def test_the_presets_in_the_table_are_those_that_there_are() -> None:
    from gym_dr.randomization.presets import presets

    table = README.split("| preset |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE) == list(presets("LunarLander"))


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_every_example_configuration_trains(path: Path, tmp_path: Path) -> None:
    algorithm = path.stem.rpartition("_")[2]
    tiny = TINY if algorithm == "a2c" else TINY_REINFORCE
    main(["train", algorithm, "--config", str(path), *tiny, "--run-dir", str(tmp_path / "run")])
    assert (tmp_path / "run" / "training.png").stat().st_size > 1000
