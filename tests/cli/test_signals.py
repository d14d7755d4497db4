"""Signals to a real ``gymdr train`` whose training is over: while it draws, and while it evaluates."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gym_dr.policies.frozen import play_batch
from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.folder import RunFolder
from tests.cli.command import gymdr
from tests.cli.gated import gated, go_on, wait_at_gate, wait_until_told

TRAIN = ["train", "a2c", "--updates", "3", "--num-envs", "2", "--rollout-steps", "8", "--hidden-sizes", "8"]
TRAIN += ["--eval-episodes", "4", "--run-dir"]

DRAWING, EVALUATING = "gym_dr.api.run:plot_training", "gym_dr.evaluation.evaluate:play_batch"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert gymdr(*TRAIN, folder).code == 0
    return folder


def assert_trained(folder: Path, whole: Path) -> None:
    """Weights and checkpoint are those of the whole run, and nothing half written is beside them."""
    assert load_newest(RunFolder(folder))["update"] == 3
    for name in ("actor.pt", "critic.pt"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert list(folder.rglob("*.tmp")) == []


def assert_same_after_resume(folder: Path, whole: Path) -> None:
    assert gymdr("resume", folder).code == 0
    documents = [json.loads((run / "evaluation/evaluation.json").read_text()) for run in (folder, whole)]
    assert documents[0]["complete"]
    assert documents[0]["results"] == documents[1]["results"]
    episodes = "evaluation/episodes.csv"
    assert (folder / episodes).read_text() == (whole / episodes).read_text()
    names = [{str(path.relative_to(run)) for path in run.rglob("*")} for run in (folder, whole)]
    assert names[0] == names[1]


def check_stopped(folder: Path, whole: Path, errors: str) -> None:
    """What is told and kept of a run whose training was over."""
    stopped = "Trained, but stopped before the plots and the evaluation were done."
    assert f"{stopped} Continue with: gymdr resume {folder}" in errors
    assert "Traceback" not in errors
    assert_trained(folder, whole)


def assert_kept(folder: Path, whole: Path) -> None:
    """The first set of episodes is there, and is not played again."""
    kept = (folder / "evaluation/episodes.csv").read_text()
    assert kept.count(",nominal,") == 4
    assert kept in (whole / "evaluation/episodes.csv").read_text()


def test_a_signal_between_sets_of_episodes_keeps_what_was_played(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; the slow tests below have the command in one of its own."""
    played: list[int] = []

    def play(*args: Any, **kwargs: Any) -> Any:
        played.append(1)
        if len(played) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return play_batch(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr("gym_dr.evaluation.evaluate.play_batch", play)
        stopped = gymdr(*TRAIN, tmp_path / "run")
    assert stopped.code == 143
    check_stopped(tmp_path / "run", whole, stopped.err)
    assert_kept(tmp_path / "run", whole)
    assert_same_after_resume(tmp_path / "run", whole)


@pytest.mark.parametrize(
    ("place", "number", "code"),
    [
        pytest.param(EVALUATING, signal.SIGTERM, 143, id="evaluating-SIGTERM", marks=pytest.mark.slow),
        pytest.param(EVALUATING, signal.SIGINT, 130, id="evaluating-SIGINT", marks=pytest.mark.slow),
        pytest.param(DRAWING, signal.SIGTERM, 143, id="drawing-SIGTERM", marks=pytest.mark.slow),
        pytest.param(DRAWING, signal.SIGINT, 130, id="drawing-SIGINT", marks=pytest.mark.slow),
    ],
)
def test_a_signal_after_the_last_update_keeps_the_training_and_resume_makes_the_rest(
    place: str, number: int, code: int, whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with gated(place, *TRAIN, folder) as process:
        wait_at_gate(process)
        if place == EVALUATING:  # after the first set of episodes
            go_on(process)
            wait_at_gate(process)
        process.send_signal(number)
        _, errors = process.communicate("\n")
    assert process.returncode == code, errors
    check_stopped(folder, whole, errors)
    if place == EVALUATING:
        assert_kept(folder, whole)
    assert_same_after_resume(folder, whole)


@pytest.mark.slow
def test_a_second_signal_ends_the_evaluation_at_once(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with gated(EVALUATING, *TRAIN, folder) as process:
        wait_at_gate(process)
        process.send_signal(signal.SIGTERM)
        wait_until_told(process)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)  # nobody has let it through the gate
        assert process.returncode == 143
    assert_trained(folder, whole)
    assert_same_after_resume(folder, whole)


@pytest.mark.slow
def test_a_signal_while_all_is_done_but_the_end_is_told_by_the_exit_code(whole: Path) -> None:
    # resumed, so that the evaluation has no episodes left to play
    with gated("gym_dr.api.run:evaluate_policies", "resume", whole) as process:
        wait_at_gate(process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate("\n")
    assert process.returncode == 143
    assert f"Stopped after everything was done. Run folder: {whole}" in errors
    assert "Traceback" not in errors
