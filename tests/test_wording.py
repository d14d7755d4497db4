"""Messages name what their reader can change: options at the command line, keywords in Python."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.errors import GymDrError, RandomizationWarning
from gym_dr.evaluation.play import play_policy
from gym_dr.runs.config import RunSettings
from gym_dr.training.config import A2CConfig, DistillConfig
from gym_dr.wording import addressing, at_command_line, counted, either, how_to_resume, percent, short_warnings, spelled
from tests.cli.command import gymdr, refused
from tests.evaluation.tiny_run import train_tiny_run
from tests.sources import PACKAGE, nodes_of
from tests.studies.study_sample import tiny

LANDER = "gym_dr/LunarLanderDR-v3"
OPTION = re.compile(r"(?<![\w-])--[a-z]")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00123, "0.12 %"), (0.994, "99 %"), (0.9951, "100 %"), (2.34, "234 %"), (24.0, "2,400 %")],
)
def test_a_percentage_has_plain_digits(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("name", "value", "typed", "called"),
    [
        ("run_dir", None, "--run-dir", "run_dir"),
        ("on_nan", "skip", "--on-nan skip", "on_nan='skip'"),
        ("overwrite", True, "--overwrite", "overwrite=True"),
        ("critic_context", False, "--no-critic-context", "critic_context=False"),
        ("hidden_sizes", (8, 4), "--hidden-sizes 8,4", "hidden_sizes=(8, 4)"),
        ("sobol", 3, "--sobol 3", "sobol=3"),
        ("trust", ["a.zip", "b c"], "--trust a.zip --trust 'b c'", "trust=['a.zip', 'b c']"),
    ],
)
def test_an_option_is_spelled_as_its_reader_gives_it(name: str, value: object, typed: str, called: str) -> None:
    assert spelled(name, value) == called
    with addressing(command_line=True):
        assert spelled(name, value) == typed


def test_a_run_is_resumed_as_its_reader_does() -> None:
    assert how_to_resume("runs/a", on_nan="skip") == "gym_dr.load_run('runs/a').resume(on_nan='skip')"
    with addressing(command_line=True):
        assert how_to_resume("runs/a", on_nan="skip") == "gymdr resume runs/a --on-nan skip"


def test_a_command_ends_with_its_reader(tmp_path: Path) -> None:
    assert either("typed", "called") == "called"
    gymdr("evaluate", tmp_path)
    assert not at_command_line()


# What a user gets wrong: as calls, and as commands. Both name {place}, a folder with a run in "run", and files.


def function(observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.zeros(len(observations), int)


MISTAKES: dict[str, Callable[[Path], object]] = {
    "a folder that is taken": lambda place: gym_dr.train("a2c", run_dir=place / "run"),
    "a folder of something else": lambda place: gym_dr.train("a2c", run_dir=place),
    "seed and seeds": lambda place: gym_dr.train("a2c", seed=1, seeds=[1, 2]),
    "no seeds": lambda place: gym_dr.train("a2c", seeds=[]),
    "seeds in a run": lambda place: gym_dr.train("a2c", seeds=[1, 2], run_dir=place / "run"),
    "workers for one": lambda place: gym_dr.train("a2c", workers=2, run_dir=place / "new"),
    "an address for one": lambda place: gym_dr.train("a2c", ray_address="here", run_dir=place / "new"),
    "an unknown launcher": lambda place: gym_dr.train("a2c", seeds=[1, 2], launcher="slurm", run_dir=place / "new"),
    "an unknown id": lambda place: gym_dr.train("a2c", env="Nothing-v0", run_dir=place / "new"),
    "nothing to randomize": lambda place: gym_dr.train("a2c", env="Blackjack-v1", randomize={"x": 1.0}),
    "no native one": lambda place: gym_dr.train("a2c", env="Blackjack-v1", vectorization="native"),
    "a sampler's option": lambda place: gym_dr.train("a2c", alpha=0.5),
    "a module in a file": lambda place: gym_dr.train("a2c", config=place / "module.toml"),
    "a file elsewhere": lambda place: gym_dr.train("a2c", config=place / "elsewhere.toml"),
    "a mixture as text": lambda place: gym_dr.train("a2c", randomize={"gravity": "mixture:1"}),
    "no policy": lambda place: gym_dr.evaluate([]),
    "no id": lambda place: gym_dr.evaluate(function),
    "another id": lambda place: gym_dr.evaluate(place / "run", env="CartPole-v1"),
    "no output": lambda place: gym_dr.evaluate([place / "run", function]),
    "an output that is a run": lambda place: gym_dr.evaluate(place / "run", output=place / "run"),
    "an output of something else": lambda place: gym_dr.evaluate(place / "run", output=place),
    "an output that is a file": lambda place: gym_dr.evaluate(place / "run", output=place / "module.toml"),
    "sampled actions": lambda place: gym_dr.evaluate(place / "run", stochastic=True),
    "a run's randomization": lambda place: gym_dr.report(place / "run", randomization="wide"),
    "no parameters": lambda place: gym_dr.evaluate(function, env="Blackjack-v1", randomization="wide"),
    "an empty grid": lambda place: gym_dr.evaluate(place / "run", grid={"gravity": (-9, -2, 0)}),
    "an infinite grid": lambda place: gym_dr.evaluate(place / "run", grid={"gravity": (-9, float("inf"), 3)}),
    "points": lambda place: gym_dr.evaluate(place / "run", sobol=3),
    "points of a box": lambda place: gym_dr.evaluate(place / "run", sobol_box=3),
    "too many points": lambda place: gym_dr.evaluate(place / "run", sobol=2**20),
    "nothing varies": lambda place: gym_dr.evaluate(function, env=LANDER, randomization="none", sobol=4),
    "no box": lambda place: gym_dr.evaluate(function, env=LANDER, randomization="none", corners=True),
    "success": lambda place: gym_dr.evaluate(place / "run", success=float("nan")),
    "an unknown protocol": lambda place: gym_dr.evaluate(place / "run", protocol="der"),
    "a threshold": lambda place: gym_dr.evaluate(function, env="gym_dr/PendulumDR-v1", protocol="dre"),
    "two of a name": lambda place: gym_dr.evaluate([function, function], env=LANDER, output=place / "new"),
    "no text of a policy": lambda place: gym_dr.evaluate({"a": "model.zip"}, env=LANDER),
    "code": lambda place: gym_dr.evaluate("tests.evaluation.own_policies:nobody", env=LANDER),
    "a page": lambda place: gym_dr.report(place / "run", output=place / "page.txt"),
    "a study's folder": lambda place: gym_dr.study(tiny(), output=place),
    "a study's launcher": lambda place: gym_dr.study(tiny(), output=place / "new", ray_address="here"),
    "a study's module": lambda place: gym_dr.study(place / "module.toml", output=place / "new"),
    "a study's threshold": lambda place: gym_dr.study(place / "study.toml", output=place / "new"),
    "no run": lambda place: gym_dr.load_run(place / "none"),
    "seeds that are missing": lambda place: gym_dr.Runs(place, []).summary,
    "a pretrained policy": lambda place: gym_dr.pretrained("ladder"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wording")
    train_tiny_run(path / "run")
    (path / "module.toml").write_text('env = "antigravity:My-v0"\n')
    (path / "elsewhere.toml").write_text('randomization = "../draws.toml"\n')
    (path / "study.toml").write_text(
        'env = "gym_dr/PendulumDR-v1"\nalgorithm = "a2c"\nseeds = [1]\n[variants.a]\n[evaluation]\nprotocol = "dre"\n'
    )
    return path


@pytest.mark.parametrize("mistake", MISTAKES)
def test_in_python_no_message_advises_to_type_an_option(
    mistake: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GymDrError) as caught:
        MISTAKES[mistake](place)
    assert "--" not in str(caught.value)
    assert not re.search(r"\bgymdr\b", str(caught.value))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("train", "a2c", "--run-dir", "run"), "replace it with --overwrite, or choose another --run-dir"),
        (("train", "a2c", "--run-dir", "run"), "Continue it with gymdr resume run"),
        (("train", "a2c", "--workers", "2"), "--workers: expected with --seeds"),
        (("train", "a2c", "--seed", "1", "--seeds", "1,2"), "Expected --seed or --seeds"),
        (("train", "a2c", "--env", "Nothing-v0"), "'gymdr list envs'"),
        (("train", "a2c", "--config", "module.toml"), "--trust antigravity"),
        (("train", "a2c", "--env", "Blackjack-v1", "--vectorization", "native"), "use --vectorization sync"),
        (("evaluate", "run", "--grid", "gravity=-9:-2:0"), "--grid gravity=-9:-2:0: the grid is empty"),
        (("evaluate", "run", "--sobol-box", "3"), "--sobol-box: expected a power of 2"),
        (("evaluate", "run", "--sobol", str(2**20)), f"--sobol {2**20} has"),
        (("evaluate", "run", "--stochastic"), "--stochastic is for policies"),
        (("evaluate", "run", "--env", "CartPole-v1"), "--env CartPole-v1: "),
        (("evaluate", "run", "--output", "run"), "choose another --output"),
        (("evaluate", "--policy", "nobody:act"), "Expected --env ID"),
        (("report", "run", "--output", "page.txt"), "--output: expected a file that ends in .html"),
        (("play", "run", "--video", "flight.avi"), "--video: expected a file"),
        (("study", "study.toml", "--output", "new", "--ray-address", "here"), "expected with --launcher ray"),
    ],
    ids=lambda part: "" if isinstance(part, str) else " ".join(part),
)
def test_at_the_command_line_messages_name_options(
    typed: tuple[str, ...], said: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    assert said in refused(gymdr(*typed))


@pytest.mark.parametrize(("number", "text"), [(0, "0 cores"), (1, "1 core"), (2, "2 cores"), (1200, "1,200 cores")])
def test_a_noun_is_in_the_plural_unless_there_is_one(number: int, text: str) -> None:
    assert counted(number, "core") == text


# the code


def literals(path: Path) -> Iterator[tuple[ast.AST, str]]:
    """Texts in a file's code, also parts of f-strings, with the call that they are an argument of; no docstrings."""
    for parent in nodes_of(path):
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and not isinstance(parent, ast.Expr):
                yield parent, node.value


def calls(path: Path, *names: str) -> set[int]:
    """The lines of calls of functions."""
    found = [node for node in nodes_of(path) if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names]
    return {line for call in found for line in range(call.lineno, (call.end_lineno or call.lineno) + 1)}


BELOW = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "cli"]


def test_no_text_below_the_command_line_has_an_option_written_out() -> None:
    assert {(path.name, text) for path in BELOW for _, text in literals(path) if OPTION.search(text)} == set()


def test_below_the_command_line_commands_stand_beside_what_python_has_for_them() -> None:
    naming = set()
    for path in BELOW:
        paired = calls(path, "either", "option")  # help of options is read at the command line
        for parent, text in literals(path):
            if re.search(r"\bgymdr [a-z]", text) and getattr(parent, "lineno", 0) not in paired:
                naming.add(f"{path.name}: {text}")
    assert naming == set()


def test_every_keyword_that_a_message_spells_is_one() -> None:
    """An argument of a public function, or a field of a run's settings or an algorithm's."""
    public = (gym_dr.train, gym_dr.evaluate, gym_dr.report, gym_dr.study, gym_dr.Run.resume, play_policy)
    known = {name for function in public for name in inspect.signature(function).parameters}
    known |= set(RunSettings.__dataclass_fields__)
    known |= set(A2CConfig.__dataclass_fields__) | set(DistillConfig.__dataclass_fields__)
    spelt = set()
    for path in BELOW:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "spelled" and node.args:
                spelt |= {n.value for n in [node.args[0]] if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert spelt
    assert spelt - known == set()


def test_a_warning_takes_a_line_and_is_shown_once_whatever_filters_change(capsys: pytest.CaptureFixture[str]) -> None:
    with short_warnings("runs/seed-1", known=["known"]):
        for text in ("known", "new", "new", "other"):
            with warnings.catch_warnings():
                pass
            warnings.warn(text, RandomizationWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: runs/seed-1: new\nWarning: runs/seed-1: other\n"
