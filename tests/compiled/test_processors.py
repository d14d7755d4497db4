"""How many threads there may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gym_dr.compiled.processors import usable_threads, using_threads


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may run on each of 16 processors."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(16)), raising=False)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 16),
        ({"cpu.max": "max 100000\n"}, 16),
        ({"cpu.max": "400000 100000\n"}, 4),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "1000 100000\n"}, 1),
        ({"cpu.max": "6400000 100000\n"}, 16),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 16),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
    ],
)
@pytest.mark.usefixtures("alone")
def test_no_more_threads_than_the_quota_of_a_container_allows(
    files: dict[str, str], expected: int, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_threads(tmp_path) == expected


@pytest.mark.usefixtures("alone")
def test_threads_that_a_block_is_given_count_instead_and_no_longer_after_it(tmp_path: Path) -> None:
    with using_threads(20):
        with using_threads(2), using_threads(None):
            assert usable_threads(tmp_path) == 2
        assert usable_threads(tmp_path) == 20
    assert usable_threads(tmp_path) == 16
