from __future__ import annotations

import pytest

from gym_dr.wording import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 cores"), (1, "1 core"), (2, "2 cores"), (1200, "1,200 cores")])
def test_a_noun_is_in_the_plural_unless_there_is_one(number: int, text: str) -> None:
    assert counted(number, "core") == text
