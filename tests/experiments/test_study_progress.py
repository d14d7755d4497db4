"""One bar for a whole study, whose time left follows from what is known; time is a clock of the test's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gym_dr.experiments import study_progress
from gym_dr.experiments.progress import Progress
from gym_dr.experiments.study_progress import StudyProgress, Training, in_words


def write(path: Path, updates: int, *, pace: float) -> None:
    """Metrics of a run whose first update took 30 s and each other ``pace``, at 100 steps, episodes 50 steps long."""
    rows = [f"{u},{100 * (u + 1)},50.0,{30 + pace * u}" for u in range(updates)]
    path.write_text("\n".join(["update,steps,length_mean,seconds", *rows, ""]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    ours = SimpleNamespace(now=0.0)
    monkeypatch.setattr(study_progress, "time", SimpleNamespace(perf_counter=lambda: ours.now))
    return ours


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_runs_that_have_not_begun_are_expected_to_be_as_fast_as_others_of_their_variant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainings = [Training(v, 11, tmp_path / f"{v}-{s}.csv") for v in ("fast", "slow") for s in (1, 2)]
    with Progress("", "lines") as display:
        progress = StudyProgress(display, trainings, episodes=0, workers=2)
        progress.trained()  # nothing is known yet
        write(tmp_path / "fast-1.csv", 11, pace=1.0)
        write(tmp_path / "slow-1.csv", 2, pace=9.0)
        progress.trained()
    # done: 11 x 1 + 2 x 9 = 29 s; left: fast-2 11 x 1, slow-1 9 x 9, slow-2 11 x 9, so 191 s of two processes
    # together, of which one needs at least 99: 29 of 220 s are 13 %, and 99 s are left. Episodes: none
    assert shown(capsys) == ["training, 1 of 4 runs done: 13%, about 99 s left"]


def test_episodes_are_expected_to_take_what_training_lets_one_expect_until_they_are_measured(
    tmp_path: Path, clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a.csv", 11, pace=10.0)
    with Progress("", "lines") as display:
        # 20 episodes of 50 steps, of which 100 take 10 s: 100 s, beside 110 s of training
        progress = StudyProgress(display, [Training("a", 11, tmp_path / "a.csv")], episodes=20, workers=1)
        progress.trained()
        progress.played("a on nominal", 0, 20)
        clock.now = 5.0
        progress.played("a on nominal", 5, 20)
        clock.now = 16.0
        progress.played("a on grid", 16, 20)
        progress.played("", 20, 20)
    assert shown(capsys) == [
        "a on nominal: 64%, 15 s left",  # (110 + 25) / 210; 15 episodes at one a second
        "a on grid: 90%, 4 s left",
        "all episodes played: 100%, 0 s left",
    ]


def test_episodes_that_were_played_before_count_for_the_place_but_not_for_the_speed(
    tmp_path: Path, clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a.csv", 11, pace=10.0)
    with Progress("", "lines") as display:
        progress = StudyProgress(display, [Training("a", 11, tmp_path / "a.csv")], episodes=20, workers=1)
        progress.trained()
        progress.played("a on grid", 10, 20)
        clock.now = 6.0
        progress.played("a on grid", 13, 20)
    assert shown(capsys) == [
        "a on grid: 76%, about 50 s left",  # 160 of 210 s; nothing is measured yet
        "a on grid: 83%, 14 s left",  # 175 of 210 s; 7 episodes at half a second
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7100, "118 min"), (9000, "2 h 30 min")]
)
def test_times_are_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
