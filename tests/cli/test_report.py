from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from gym_dr.evaluation import suite
from gym_dr.evaluation.results import Evaluation
from tests.cli.command import files, gymdr, refused, train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "run"
    assert train(folder, "--updates", "50").code == 0
    return folder


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("REPORT_EPISODES", 2), ("REPORT_POINTS", 2), ("POINT_EPISODES", 2)):
        monkeypatch.setattr(suite, name, value)


def test_one_command_evaluates_and_writes_the_page(run: Path) -> None:
    result = gymdr("report", run)
    assert result.code == 0, result.err
    page = (run / "report.html").read_text()
    assert "gymdr train a2c" in page
    assert f"gymdr report {run}" in page
    assert (run / "evaluation/episodes.csv").is_file()


def test_several_runs_have_their_page_and_evaluation_beside_each_other(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    train(other, "--randomization", "none")
    before = files(other)
    assert gymdr("report", run, other, "--output", tmp_path / "both.html").code == 0
    assert (tmp_path / "both.html").is_file()
    assert (tmp_path / "both-evaluation/evaluation.json").is_file()
    assert files(other) == before


def test_a_run_whose_options_were_tuned_on_its_seed_is_not_reported(run: Path, tmp_path: Path) -> None:
    tuned = Path(shutil.copytree(run, tmp_path / "tuned", ignore=shutil.ignore_patterns("evaluation")))
    form = json.loads((tuned / "config.json").read_text())
    (tuned / "config.json").write_text(json.dumps(form | {"reserved_seeds": [1, 1001]}))
    message = refused(gymdr("report", tuned))
    assert message.startswith(
        f"{tuned} would look too good: seed: expected seeds on which no options were tuned, got 1."
    )
    assert not (tuned / "evaluation").exists()


@pytest.mark.parametrize("output", ["page.pdf", "nowhere/page.html", "page"])
def test_an_impossible_page_is_refused_before_anything_is_played(run: Path, output: str, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    message = refused(gymdr("report", run, "--output", tmp_path / output, "--evaluation", folder))
    assert message.startswith(f"{tmp_path / output}: " if output.startswith("nowhere") else "--output: ")
    assert not folder.exists()


def test_the_command_that_trained_a_run_is_kept(tmp_path: Path) -> None:
    train(tmp_path / "a run", "--seed", "3")
    typed = (tmp_path / "a run/command.txt").read_text()
    assert typed.startswith("gymdr train a2c --updates 2")
    assert typed.endswith(f"--run-dir '{tmp_path}/a run' --seed 3\n")


def lines_to_copy(page: Path) -> list[str]:
    """The commands of a page that play a policy in its worst cell."""
    found = re.findall(r"<code>(gymdr play .*?)</code>", page.read_text(), flags=re.DOTALL)
    return [html.unescape(line) for line in found]


MODULE = "tests.policies.own_policies"
POLICY = ("--policy", f"{MODULE}:brake", "--env", "gym_dr/LunarLanderDR-v3", "--trust", MODULE)


def test_the_line_for_the_worst_cell_plays_that_cell(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.policies.play._picture", lambda envs: np.zeros((16, 16, 3), np.uint8))
    assert gymdr("report", run, *POLICY, "--output", tmp_path / "page.html").code == 0
    lines = lines_to_copy(tmp_path / "page.html")
    assert len(lines) == 1  # only of the run
    document = Evaluation.load(tmp_path / "page-evaluation").document
    worst = {row["policy"]: row["worst_cell"]["params"] for row in document["results"] if row["set"] == "sobol"}
    for line, params in zip(lines, worst.values(), strict=False):
        result = gymdr(*shlex.split(line)[1:], "--episodes", "1", "--video", tmp_path / "cell.gif")
        assert result.code == 0, result.err
        values = ", ".join(f"{name} {value:g}" for name, value in params.items())
        assert result.out.count(f"({values})") == 1
