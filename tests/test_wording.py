"""Numbers in messages read as a person would write them."""

from __future__ import annotations

import pytest

from gym_dr.errors import counted, exact_text, percent


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00123, "0.12 %"), (0.994, "99 %"), (0.9951, "100 %"), (2.34, "234 %"), (24.0, "2,400 %")],
)
def test_a_percentage_has_plain_digits(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 cores"), (1, "1 core"), (1200, "1,200 cores")])
def test_a_noun_is_in_the_plural_unless_there_is_one(number: int, text: str) -> None:
    assert counted(number, "core") == text


@pytest.mark.parametrize("value", [-3.0, 15.0, 1 / 3, 1e-7, 123456789.0, 0.1])
def test_a_number_as_text_is_read_as_the_same_number(value: float) -> None:
    assert float(exact_text(value)) == value
    assert len(exact_text(value)) <= len(repr(value))
