"""``--policy`` of ``gymdr evaluate``, ``report`` and ``play``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gym_dr.evaluation.report import evaluation
from tests.cli.command import gymdr, refused, train

MODULE = "tests.evaluation.own_policies"
BRAKE = ("--policy", f"{MODULE}:brake", "--env", "gym_dr/LunarLanderDR-v3")
TRUST = ("--trust", MODULE)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_and_functions_are_compared() -> None:
    assert train(Path("run"), "--randomization", "wide").code == 0
    others = ("--policy", f"rests={MODULE}:coast")
    result = gymdr("evaluate", "run", *BRAKE, *others, *TRUST, "--episodes", "2", "--output", "out")
    assert result.code == 0, result.err
    assert "run minus" in result.out
    document = json.loads(Path("out/evaluation.json").read_text())
    assert [policy["name"] for policy in document["policies"]] == ["run", "brake", "rests"]
    assert [policy.get("function") for policy in document["policies"]] == [None, BRAKE[1], f"{MODULE}:coast"]
    assert document["policies"][0]["path"] == "../run"


def test_a_function_alone_has_a_folder_and_draws_of_its_own() -> None:
    result = gymdr("evaluate", *BRAKE, *TRUST, "--randomization", "random", "--episodes", "1", "--corners")
    assert result.code == 0, result.err
    assert result.out.endswith("Wrote brake-evaluation\n")
    assert "corners: 128 cells" in result.out  # "random" varies seven parameters


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (BRAKE, f"importing {MODULE} runs its code. If you trust it: --trust {MODULE}"),
        (BRAKE[:2], "Expected --env ID"),
        (("--policy", "model.zip"), "--policy: expected [NAME=]sb3:FILE.zip or [NAME=]package.module:function"),
        ((), "Expected a run or a policy"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_a_mistake_is_refused_before_anything_is_played(command: str, args: tuple[str, ...], expected: str) -> None:
    assert expected in refused(gymdr(command, *args))
    assert not list(Path().iterdir())


def test_a_function_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPISODES", 2), ("POINTS", 2), ("POINT_EPISODES", 2)):
        monkeypatch.setattr(evaluation, name, value)
    monkeypatch.setattr("gym_dr.evaluation.report.assemble.film_strips", lambda *_: [])  # test_report.py has them
    result = gymdr("report", *BRAKE, *TRUST)
    assert result.code == 0, result.err
    assert f"gymdr report {' '.join((*BRAKE, *TRUST))}" in Path("report.html").read_text()


def test_a_function_is_watched_on_the_draws_of_the_preset_default(monkeypatch: pytest.MonkeyPatch) -> None:
    # drawing takes most of the time
    monkeypatch.setattr("gym_dr.evaluation.play._picture", lambda envs: np.zeros((16, 16, 3), np.uint8))
    result = gymdr("play", *BRAKE, *TRUST, "--episodes", "1", "--video", "flight.gif")
    assert result.code == 0, result.err
    assert "gravity" in result.out
    assert Path("flight.gif").is_file()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "Expected one RUN, one --policy, one --pretrained, or --human and an ENV, got 0"),
        (("runs/first", *BRAKE), "Expected one RUN, one --policy, one --pretrained, or --human and an ENV, got 2"),
        (("--human", *BRAKE), "Expected --human or --policy, got both"),
        (("--human", "--pretrained", "lander"), "Expected --human or --pretrained, got both"),
        (("--human", "CartPole-v1", "--video", "out.gif"), "Expected --human or --video, got both"),
    ],
    ids=str,
)
def test_one_thing_is_watched_at_a_time(args: tuple[str, ...], expected: str) -> None:
    assert expected in refused(gymdr("play", *args))
