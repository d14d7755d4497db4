from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.bench.learning import median_time
from gym_dr.bench.timing import alternate, karp_flatt, max_speedup, speedup


@pytest.mark.parametrize(
    ("psi", "n", "expected"),
    [
        (4.0, 4, 0.0),  # (1/4 - 1/4) / (3/4): four times as fast with four
        (1.0, 4, 1.0),  # (1 - 1/4) / (3/4): no faster at all
        (2.0, 4, 1 / 3),  # (1/2 - 1/4) / (3/4)
        (0.5, 2, 3.0),  # (2 - 1/2) / (1/2): slower than one
        (8.0, 4, -1 / 6),  # (1/8 - 1/4) / (3/4): more than n-fold
    ],
)
def test_the_serial_fraction_of_a_speedup(psi: float, n: int, expected: float) -> None:
    assert karp_flatt(psi, n) == pytest.approx(expected, abs=1e-12)


def test_one_environment_has_no_serial_fraction() -> None:
    assert karp_flatt(1.0, 1) is None
    assert max_speedup(None) is None


@given(st.floats(0.001, 1.0), st.integers(2, 10_000))
def test_the_fraction_put_into_amdahls_law_comes_back(fraction: float, n: int) -> None:
    amdahl = 1.0 / (fraction + (1.0 - fraction) / n)
    assert karp_flatt(amdahl, n) == pytest.approx(fraction, rel=1e-6)
    assert amdahl <= max_speedup(fraction) * (1 + 1e-9)  # type: ignore[operator]  # a number, for a fraction above 0


@pytest.mark.parametrize(("fraction", "expected"), [(0.25, 4.0), (2.0, 0.5), (0.0, None), (-0.1, None)])
def test_the_maximum_speedup(fraction: float, expected: float | None) -> None:
    assert max_speedup(fraction) == expected


def test_a_speedup_is_the_median_of_the_rounds_ratios() -> None:
    # 10/1, 20/10, 30/10: one slow round of the reference moves the median no further than its neighbor
    assert speedup([10, 20, 30], [1, 10, 10]) == 3.0


def test_sides_alternate_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []

    def side(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    measured = alternate({"a": lambda: side("a"), "b": lambda: side("b")}, rounds=2)
    assert calls == ["a", "b"] * 3
    assert measured == {"a": [3.0, 5.0], "b": [4.0, 6.0]}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [([3.0, 1.0, 2.0], 2.0), ([1.0, None, 3.0], 3.0), ([1.0, None, None], None), ([1.0, None], None), ([1, 2], 1.5)],
)
def test_a_training_that_did_not_pass_is_slower_than_all_that_did(
    seconds: list[float | None], expected: float | None
) -> None:
    assert median_time(seconds) == expected
