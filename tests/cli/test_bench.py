"""``gymdr bench``: a tiny run of all of it, one that is stopped, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gym_dr import bench
from tests.cli.command import files, gymdr, refused

TINY = bench.Plan(sizes=(1, 2), seeds=(1,), limit=0.001, rounds=1, seconds=0.001, training=0.001)


def test_a_run_measures_everything_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.cli.bench.QUICK", TINY)
    run = gymdr("bench", "--quick", "--algorithm", "reinforce", "--threads", "2,1", "--output", tmp_path / "out")
    assert run.code == 0, run.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"bench.json"}
    result = json.loads((tmp_path / "out/bench.json").read_text())
    stepped = {(row["mode"], row["num_envs"]) for row in result["throughput"]}
    assert {(mode, size) for mode in ("native", "sync", "async") for size in (1, 2)} <= stepped
    assert [(one["num_envs"], one["seed"], one["passed"]) for one in result["learning"]] == [
        (1, 1, False),
        (2, 1, False),
    ]
    scaled = [(row["what"], row["num_envs"], row["threads"]) for row in result["scaling"]]
    assert scaled == [("native", 1024, 1), ("native", 1024, 2), ("reinforce", 10, 1), ("reinforce", 10, 2)]
    assert all(len(row["steps_per_second"]) == 1 for row in result["scaling"])
    assert result["algorithm"] == "reinforce"
    assert "Steps per second" in run.out
    assert "over 0.001" in run.out  # nothing passed
    table = run.out.partition("by threads\n")[2].splitlines()
    assert [line.split()[-1] for line in table[1::2][:2]] == ["1.00", "1.00"]
    assert max(map(len, table)) <= 80 or str(tmp_path) in max(table, key=len)


def test_what_was_measured_is_kept_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("gym_dr.cli.bench.QUICK", TINY)
    monkeypatch.setattr(bench, "time_to_threshold", lambda *_, **__: {})
    monkeypatch.setattr(bench, "training_rate", stopped)
    run = gymdr("bench", "--quick", "--output", tmp_path / "out")
    assert run.code != 0
    assert json.loads((tmp_path / "out/bench.json").read_text())["throughput"]
    assert "native" in run.out


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--sizes", "0,2"], "--sizes: expected whole numbers from 1 to 10000, got (0, 2)"),
        (["--threads", "0"], "--threads: expected whole numbers from 1 to 10000, got (0,)"),
        (["--env", "CartPole-v1"], "--threshold: expected a mean return to reach in CartPole-v1"),
        (["--env", "gym_dr/LunarLandrDR-v3", "--threshold", "0"], "Did you mean 'gym_dr/LunarLanderDR-v3'?"),
        (["--env", "FrozenLake-v1", "--threshold", "1"], "Expected observations in a Box of one dimension"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_impossible_option_is_refused_and_leaves_no_folder(args: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in refused(gymdr("bench", "--quick", "--output", tmp_path / "out", *args))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["", "notes.txt/out"])
def test_an_output_that_is_taken_is_never_touched(place: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    before = files(tmp_path)
    assert f"{tmp_path / place}: " in refused(gymdr("bench", "--quick", "--output", tmp_path / place))
    assert files(tmp_path) == before
