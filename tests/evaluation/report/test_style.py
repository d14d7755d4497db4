"""Colors and dashes of the report's plots."""

from __future__ import annotations

from gym_dr.evaluation.report.style import DASHES, SERIES, series


def test_policies_differ_in_color_or_dash_and_the_first_ones_in_both() -> None:
    assert len({series(index) for index in range(36)}) == 36
    first = [series(index) for index in range(6)]
    assert {color for color, _ in first} == set(SERIES)
    assert {dash for _, dash in first} == set(DASHES)
