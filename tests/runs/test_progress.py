"""What a user sees of how far something is; time is a clock of the test's own."""

from __future__ import annotations

import io
import sys

import pytest

from gym_dr.runs import terminal
from gym_dr.runs.terminal import Progress


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ours = Clock()
    monkeypatch.setattr(terminal, "time", ours)
    return ours


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_compiling_before_the_first_update_counts_as_no_training(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("update") as show:
        show("t", 0, 10)
        clock.now = 50.0  # compiling, and the first update
        show("t", 1, 10, steps=1000, result="return 1.0")
        clock.now = 51.0
        show("t", 2, 10, steps=2000, result="return 2.0")
        clock.now = 54.0
        show("t", 3, 10, steps=3000)
    assert lines(capsys) == [
        "t: update 1/10, return 1.0",
        "t: update 2/10, 1,000 steps/s, return 2.0, 8 s left",
        "t: update 3/10, 500 steps/s, 14 s left",  # two updates in four seconds; seven are left
    ]


def test_what_was_there_before_counts_for_the_place_but_not_for_the_speed(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("episode") as show:
        for title, done in (("a on grid", 50), ("a on grid", 60), ("a on grid", 80), ("b on grid", 100)):
            show(title, done, 100)
            clock.now += 10
    assert lines(capsys) == [
        "a on grid: episode 60/100",
        "a on grid: episode 80/100, 2 episodes/s, 10 s left",
        "b on grid: episode 100/100, 2 episodes/s, 0 s left",
    ]


def test_nothing_is_shown_where_nothing_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("update", "nothing") as show:
        show("t", 0, 2)
        show("t", 2, 2)
        show.note("a note")
    assert lines(capsys) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal.os, "get_terminal_size", lambda number: (120, 40))
    return stream


def test_a_terminal_gets_a_bar_with_the_same_numbers(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    with Progress("update") as show:
        for done in (0, 1, 2, 4):
            show("t", done, 4, steps=100 * done)
            clock.now += 1
    text = terminal.getvalue()
    assert "\r" in text
    assert "| 4/4 [" in text
    assert "150 steps/s, 0 s left]" in text  # that is the one that stays


class OnlyWrites:
    """The standard error of some programs for Python."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


class WithoutFile(io.StringIO):
    """The console of an IDE."""

    def isatty(self) -> bool:
        return True


def test_where_standard_error_only_writes_there_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for stderr in (OnlyWrites(), WithoutFile()):
        monkeypatch.setattr(sys, "stderr", stderr)
        with Progress("update") as show:
            show("t", 0, 10)
            show("t", 10, 10)
        written = stderr.getvalue() if isinstance(stderr, WithoutFile) else stderr.text
        assert "10/10" in written


def test_without_standard_error_nothing_is_shown_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = io.StringIO()
    closed.close()
    for stderr in (None, closed):
        monkeypatch.setattr(sys, "stderr", stderr)
        with Progress("update") as show:
            show("t", 0, 10)
            show("t", 10, 10)
    assert capsys.readouterr().out == ""


def test_what_has_no_unit_has_no_speed(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("") as show:
        for done in (0, 5, 10):
            show("t", done, 10)
            clock.now += 1
    assert not [line for line in lines(capsys) if "/s" in line]
