"""Numbers in messages read as a person would write them."""

from __future__ import annotations

import warnings

import pytest

from gym_dr.errors import RandomizationWarning
from gym_dr.wording import counted, percent, short_warnings


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00123, "0.12 %"), (0.994, "99 %"), (0.9951, "100 %"), (2.34, "234 %"), (24.0, "2,400 %")],
)
def test_a_percentage_has_plain_digits(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 cores"), (1, "1 core"), (1200, "1,200 cores")])
def test_a_noun_is_in_the_plural_unless_there_is_one(number: int, text: str) -> None:
    assert counted(number, "core") == text


def test_a_warning_takes_a_line_and_is_shown_once_whatever_filters_change(capsys: pytest.CaptureFixture[str]) -> None:
    with short_warnings("runs/seed-1", known=["known"]):
        for text in ("known", "new", "new", "other"):
            with warnings.catch_warnings():
                pass
            warnings.warn(text, RandomizationWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: runs/seed-1: new\nWarning: runs/seed-1: other\n"
