"""``--policy`` of ``gymdr evaluate``, ``report`` and ``play``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import gymdr, refused, train

MODULE = "tests.policies.own_policies"
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


def test_references_show_what_is_possible_and_their_draws_are_not_played() -> None:
    assert train(Path("run"), "--randomization", "wide").code == 0
    assert train(Path("other"), "--randomization", "random", "--seed", "2").code == 0
    references = ("--reference", "other", "--reference", f"rests={MODULE}:coast", *TRUST)
    assert "Expected --output for" in refused(gymdr("evaluate", "run", *references))
    grid = ("--grid", "gravity=-12:-4:3", "--episodes", "2", "--success", "-1000")
    result = gymdr("evaluate", "run", *references, *grid, "--output", "out")
    assert result.code == 0, result.err
    document = json.loads(Path("out/evaluation.json").read_text())
    assert document["references"] == ["other", "rests"]
    assert [cells["name"] for cells in document["sets"]] == ["nominal", "training", "grid"]
    assert [(entry["set"], entry["success_rate"]) for entry in document["best_known"]] == [
        ("nominal", 1.0),
        ("training", 1.0),
        ("grid", 1.0),
    ]
    assert "Regret\n" in result.out
    result = gymdr("evaluate", "run", *references, "--grid", "gravity=-12:-4:3", "--episodes", "1", "--output", "once")
    assert result.code == 0, result.err
    assert json.loads(Path("once/evaluation.json").read_text())["best_known"] == []


def test_a_policy_is_not_its_own_reference() -> None:
    assert train(Path("run")).code == 0
    assert "run: is named twice" in refused(gymdr("evaluate", "run", "--reference", "run", "--output", "out"))
    assert "Expected a run or a policy" in refused(gymdr("evaluate", "--reference", "run", "--output", "out"))


@pytest.mark.parametrize("name", ["../esc", "a/b", "a\\b"])
def test_a_name_that_would_place_its_folder_elsewhere_is_refused(name: str) -> None:
    err = refused(gymdr("evaluate", "--policy", f"{name}={MODULE}:coast", *BRAKE[2:], *TRUST))
    assert err.endswith(f"--policy: expected a name without slashes, got {name!r}.")


SHOW = ("--policy", f"{MODULE}:show", "--env", "gym_dr/LunarLanderDR-v3", "--context", "observation")


def test_policies_that_remember_or_observe_the_draw_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.policies.play._picture", lambda envs: np.zeros((16, 16, 3), np.uint8))
    pulse = ("--policy", f"{MODULE}:pulse", "--env", "gym_dr/LunarLanderDR-v3")
    for policy in (pulse, (*SHOW, "--context-params", "gravity=-12:-8")):
        result = gymdr("play", *policy, *TRUST, "--episodes", "1", "--video", "flight.gif")
        assert result.code == 0, result.err
        assert result.out.count("return ") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gravity=-12", "expected NAME or NAME=LOW:HIGH such as gravity=-12:-2, got 'gravity=-12'"),
        ("gravity=-2:-12", "expected a finite range low < high"),
        ("gravty=-12:-2", "Did you mean 'gravity'"),
    ],
)
def test_ranges_that_are_none_are_refused(text: str, expected: str) -> None:
    assert expected in refused(gymdr("play", *SHOW, *TRUST, "--context-params", text))
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (SHOW, "--context observation: what a policy observes is scaled by the ranges that it was trained with"),
        (BRAKE, f"importing {MODULE} runs its code. If you trust it: --trust {MODULE}"),
        (BRAKE[:2], "Expected --env: only runs"),
        (
            ("--policy", "model.zip"),
            "model.zip: ",
        ),
        ((), "Expected a run or a policy"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_a_mistake_is_refused_before_anything_is_played(command: str, args: tuple[str, ...], expected: str) -> None:
    assert expected in refused(gymdr(command, *args))
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "Expected one RUN, one --policy, one --pretrained, or --human and an ENV, got none"),
        (("runs/first", *BRAKE), "Expected one RUN or one --policy, got 2"),
        (("--human", *BRAKE), "Expected --human and an ENV"),
        (("--human", "CartPole-v1", "--video", "out.gif"), "Expected --human and an ENV"),
    ],
    ids=str,
)
def test_one_thing_is_watched_at_a_time(args: tuple[str, ...], expected: str) -> None:
    assert expected in refused(gymdr("play", *args))
