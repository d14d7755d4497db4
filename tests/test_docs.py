"""What README and the pages in docs show runs, and prints what they say: Python, and commands with small budgets.

Blocks of ``console`` and ``py`` are not run: they need another package, or show a part of a program. ``.ci/tutorials``
runs README and the tutorials with their whole budgets, in a fresh environment, and blocks of ``console`` too.
"""

from __future__ import annotations

import contextlib
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import gymnasium as gym
import numpy as np
import pytest

from gym_dr.cli.main import cli, main
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.evaluation import suite
from gym_dr.randomization.files import read_table
from tests.cli.test_bench import TINY as TINY_BENCH
from tests.pages import BUILT, NOT_TYPED, ROOT, blocks, check_printed, outputs, pages, run_program, shown
from tests.policies.tiny_run import TINY
from tests.registered import forgotten_afterwards
from tests.studies.study_sample import tiny_study
from tests.studies.tune_sample import tiny_tuning
from tests.toml_text import toml_text

README = ROOT / "README.md"
PAGES = pages()
NEEDS_MORE = {"stable_baselines3.md"}  # packages; tests/integrations/test_sb3.py runs it

TINY_PPO = (*TINY, "--minibatches", "1")
TINY_REINFORCE = ("--updates", "2", "--num-envs", "2", "--eval-episodes", "0")
BUDGETS = {"a2c": TINY, "ppo": TINY_PPO, "reinforce": TINY_REINFORCE}

NOT_RUN_HERE = ("pip install", *NOT_TYPED)

TUTORIALS = [page for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if page.name != "index.md"]
FIRST_READ = [README, ROOT / "docs" / "start.md", *TUTORIALS]  # whose readers have not seen yet what comes out
# seconds each; the other pages are their siblings
LONG = {
    ROOT / "docs" / name
    for name in ("index.md", "guides/fit.md", "tutorials/own_environment.md", "tutorials/own_equations.md")
}
PROGRAMS = [page for page in PAGES if page.name not in NEEDS_MORE and blocks(page, "python")]


@pytest.fixture
def short_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Landers hover and robots walk for 1,000 steps, which takes longer than all else on a page.

    A page counts the 200 steps of a pendulum.
    """
    for spec in gym.registry.values():
        robot = spec.max_episode_steps == 1000  # also Gymnasium's own, inside wrappers
        if robot or (spec.id in ENVIRONMENTS and (spec.max_episode_steps or 1000) > 200):
            monkeypatch.setattr(spec, "max_episode_steps", 50)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, few_particles: None) -> None:
    """Evaluations play two episodes of nominal values and draws, and of a report's points."""
    sets_of: Any = suite.sets_of
    monkeypatch.setattr(suite, "sets_of", lambda *asked: sets_of(*asked[:-1], 2))
    for name, few in (("REPORT_POINTS", 4), ("POINT_EPISODES", 2)):
        monkeypatch.setattr(suite, name, few)


@pytest.mark.usefixtures("short_episodes", "small")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page in LONG else ()) for page in PROGRAMS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_python_blocks_of_a_page_run_as_one_program(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with forgotten_afterwards():
        printed = run_program(page)
    outputs_shown = [block.output is not None for block in shown(page) if block.language == "python"]
    if page in FIRST_READ:
        assert outputs_shown == [bool(text) for text in printed], "a block prints something that the page does not show"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_output_stands_below_the_code_that_prints_it(page: Path) -> None:
    assert outputs(page) == sum(block.output is not None for block in shown(page))


@pytest.mark.parametrize("page", FIRST_READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_for_newcomers_shows_what_its_commands_print(page: Path) -> None:
    silent = [block.code for block in shown(page) if block.language == "sh" and block.output is None]
    assert [code for code in silent if not code.startswith((*NOT_RUN_HERE, "gymdr study"))] == []


LINES = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]
SHOWN = {block.code.strip(): block for page in PAGES for block in shown(page) if block.output is not None}
COMMANDS = [line for line in dict.fromkeys(LINES) if not line.startswith(NOT_RUN_HERE)]
SLOW = [line for line in COMMANDS if line.startswith("gymdr study")][3:]  # the others are their siblings
SLOW += [line for line in COMMANDS if line.startswith("gymdr tune")]  # tests/studies/test_tune.py has smaller ones
DRAWN = {next(line for line in COMMANDS if line.startswith("gymdr play"))}


def following(arguments: list[str], option: str) -> str | None:
    return arguments[arguments.index(option) + 1] if option in arguments else None


TRAININGS = {following(line.split(), "--run-dir"): line for line in COMMANDS if line.startswith("gymdr train")}
PRINTS_AS_SHOWN = ("gymdr train", "gymdr record", "gymdr fit")  # others need a trained policy: .ci/tutorials
DEFAULT_OUTPUT = {"fit": "fitted.toml"}
MACHINE = "python examples/machine/"
LOGS = {  # and ranges that were fitted to them, and exported policies
    following(line.split(), "--output") or DEFAULT_OUTPUT[line.split()[1]]: line
    for line in COMMANDS
    if line.startswith(("gymdr record", "gymdr fit", "gymdr export", f"{MACHINE}fly.py")) and "--check" not in line
}
OF_FLIGHTS = [line for line in COMMANDS if line.startswith("gymdr fit") and LOGS[line.split()[2]].startswith(MACHINE)]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run; the trainings and logs that several need are made once."""
    path = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", path / "examples")
    return path


def run(line: str) -> None:
    """Runs a command with a small budget, after those that make what it needs."""
    program, *arguments = shlex.split(line)
    makers = LOGS | TRAININGS
    named = {argument.removeprefix("onnx:") for argument in arguments} - {following(arguments, "--run-dir")}
    for path in makers.keys() & named:
        if path and makers[path] != line and not Path(path).exists():
            with contextlib.redirect_stdout(None):
                run(makers[path])
    if program == "python":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", arguments)
            runpy.run_path(arguments[0], run_name="__main__")
        return
    assert program == "gymdr"
    if arguments[0] == "record":  # which never overwrites
        shutil.rmtree(arguments[arguments.index("--output") + 1], ignore_errors=True)
    if arguments[0] == "train":
        for budget in ("--updates", "--total-steps"):
            if budget in arguments:
                del arguments[(at := arguments.index(budget)) : at + 2]
        arguments += ["--overwrite"]
        arguments += BUDGETS[arguments[1]]
        if line in SHOWN:  # it prints the evaluations
            arguments += ["--eval-episodes", "2"]
    if line in OF_FLIGHTS:  # a fit of landers takes half a minute, so it writes here what it has found once
        output = following(arguments, "--output")
        if "--check" not in arguments:
            shutil.copy(Path("examples", "machine", "ranges.toml"), output or DEFAULT_OUTPUT["fit"])
            arguments = [a for a in arguments if a not in ("--output", output)] + ["--check"]
    if arguments[0] == "evaluate":
        arguments = ["2" if a == "1024" else a for a in arguments] + ["--episodes", "2"]
    if arguments[0] == "play":
        arguments += ["--episodes", "1"]
    if arguments[0] == "study":
        Path(arguments[1]).write_text(toml_text(tiny_study(read_table(arguments[1]))))
    if arguments[0] == "tune":
        Path(arguments[1]).write_text(toml_text(tiny_tuning(read_table(arguments[1]))))
        arguments += ["--workers", "1"]
    main(arguments)


@pytest.mark.usefixtures("seeds_in_this_process", "short_episodes", "small")
@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=pytest.mark.slow) if line in SLOW else line for line in COMMANDS]
)
def test_a_command_runs_and_writes_what_it_names(
    line: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(workplace)
    monkeypatch.setattr("gym_dr.cli.bench.QUICK", TINY_BENCH)
    if line.startswith("gymdr plot"):
        request.getfixturevalue("full_pictures")
    if line not in DRAWN:  # drawing takes longer than all else
        noise = np.random.default_rng(0).integers(0, 255, (64, 96, 3), np.uint8)
        monkeypatch.setattr("gym_dr.policies.play._picture", lambda envs: noise)
    try:
        run(line)
    except SystemExit as stop:
        raise AssertionError(capsys.readouterr().err) from stop
    if line in SHOWN and line.startswith(PRINTS_AS_SHOWN) and line not in OF_FLIGHTS:
        check_printed(SHOWN[line], capsys.readouterr().out)
    for option in ("--output", "--video", "--run-dir"):
        written = following(shlex.split(line), option)
        if written is not None:
            path = workplace / written
            smallest = 100 if path.suffix == ".toml" else 1000
            assert path.stat().st_size > smallest or (path.is_dir() and any(path.iterdir()))


def test_the_pages_show_every_command_of_the_command_line() -> None:
    shown_commands = {line.split()[1] for line in COMMANDS if line.startswith("gymdr")}
    assert shown_commands == set(cli.list_commands(click.Context(cli)))


def test_the_robot_of_the_page_runs_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "environments" / "robots.md"
    (tmp_path / "cart.xml").write_text(blocks(page, "xml")[0])
    shorter = "\nimport gymnasium\ngymnasium.spec('mine/Cart-v0').max_episode_steps = 20\n"
    (tmp_path / "my_robot.py").write_text(blocks(page, "py")[0] + shorter)
    commands = "\n".join(blocks(page, "console"))
    lines = re.findall(r"^gymdr (.*)", commands, flags=re.MULTILINE)
    small = {"train": [*TINY_PPO, "--eval-episodes", "2"], "evaluate": ["--episodes", "1"], "play": ["--episodes", "1"]}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(".")  # "export PYTHONPATH=."
    monkeypatch.delitem(sys.modules, "my_robot", raising=False)
    with forgotten_afterwards():
        for name, *arguments in map(shlex.split, lines):
            main([name, *arguments, *small.get(name, [])])
    assert lines
    assert (tmp_path / "cart.gif").stat().st_size > 1000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    paths = [(page.parent / target).resolve() for target in targets]
    assert not [path for path in paths if not path.exists() and not BUILT & set(path.parts)]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_every_example_configuration_trains(path: Path, tmp_path: Path) -> None:
    algorithm = path.stem.rpartition("_")[2]
    main(["train", algorithm, "--config", str(path), *BUDGETS[algorithm], "--run-dir", str(tmp_path / "run")])
    assert (tmp_path / "run" / "training.png").is_file()
