"""``gymdr bench``: a tiny run of all of it, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gym_dr.bench.contenders import MAKERS
from tests.bench.tiny import TINY
from tests.cli.command import files, gymdr, refused

# who reads bench.json relies on these names; another form needs another number in "format"
SCHEMA = {
    "": {"format", "machine", "settings", "throughput", "learning", "solving", "profile"},
    "machine": {"cpu", "cores", "usable_cores", "memory_bytes", "os", "load_average", "versions"},
    "throughput": {"unit", "rows", "left_out"},
    "learning": {"threshold", "limit_seconds", "rows"},
    "solving": {"threshold", "limit_seconds", "rows"},
    "profile": {"rows"},
}
THROUGHPUT_ROW = {
    "mode", "num_envs", "steps_per_second", "lowest", "highest", "speedup", "serial_fraction", "max_speedup",
}  # fmt: skip
LEARNING_ROW = {"num_envs", "median_seconds", "passed", "runs"}
SOLVING_ROW = {"algorithm", "median_seconds", "median_steps", "passed", "runs"}
RUN = {"seed", "passed", "seconds", "steps", "return_mean", "reason"}
PROFILE_ROW = {
    "mode", "num_envs", "steps", "compiled", "environment", "inference", "update", "statistics",
}  # fmt: skip


def test_a_run_measures_everything_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.cli.bench.QUICK", TINY)
    run = gymdr("bench", "--quick", "--algorithm", "reinforce", "--output", tmp_path / "out")
    assert run.code == 0, run.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "bench.json", "throughput.png", "speedup.png", "learning.png", "profile.png",
    }  # fmt: skip
    result = json.loads((tmp_path / "out/bench.json").read_text())

    assert result["format"] == 3
    assert {name: set(result[name] if name else result) for name in SCHEMA} == SCHEMA
    assert {"python", "gym-dr", "gymnasium", "numba", "torch"} <= set(result["machine"]["versions"])
    rows = result["throughput"]["rows"]
    assert all(set(row) == THROUGHPUT_ROW for row in rows)
    assert all(set(row) == LEARNING_ROW for row in result["learning"]["rows"])
    assert [(set(row), row["algorithm"]) for row in result["solving"]["rows"]] == [
        (SOLVING_ROW, "a2c"),
        (SOLVING_ROW, "ppo"),
    ]
    assert all(set(one) == RUN for row in result["learning"]["rows"] for one in row["runs"])
    assert [(set(row), row["mode"]) for row in result["profile"]["rows"]] == [
        (PROFILE_ROW, "native"),
        (PROFILE_ROW, "sync"),
    ]

    # every contender has a row or a reason, for each number of environments
    told = {(row["mode"], row["num_envs"]) for row in rows}
    out = {(entry["mode"], entry["num_envs"]): entry["reason"] for entry in result["throughput"]["left_out"]}
    for mode in MAKERS:
        for num_envs in TINY.sizes:
            assert ((mode, num_envs) in told) != ((mode, num_envs) in out or (mode, None) in out)
    assert {("native", 2), ("sync", 2), ("async", 1)} <= told
    assert ("async", 2) in out  # TINY allows one process
    assert "Left out: async with 2" in run.out
    assert "Karp-Flatt serial fraction" in run.out
    assert result["settings"]["algorithm"] == "reinforce"
    assert "Milliseconds per update of reinforce" in run.out
    assert "on nominal physics passes 200" in run.out
    assert run.err.count("bench: ") == 7  # compiling, two sizes, the profile, one training, two that solve


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--sizes", "0,2"], "sizes: expected distinct whole numbers from 1 to 10000, got 0,2"),
        (["--sizes", "2,2"], "sizes: expected distinct whole numbers from 1 to 10000, got 2,2"),
        (["--sizes", "20000"], "sizes: expected distinct whole numbers from 1 to 10000, got 20000"),
        (["--sizes", "1.5"], "expected numbers separated by commas"),
        (["--sizes", ""], "expected numbers separated by commas"),
        (["--seeds=-1"], "seeds: expected distinct whole numbers from 0"),
        (["--threshold", "nan"], "threshold: expected a finite number, got nan"),
        (["--threshold", "high"], "'high' is not a valid float"),
        (["--env", "CartPole-v1"], "--threshold: expected a mean return to reach in CartPole-v1"),
        (["--env", "gym_dr/LunarLandrDR-v3", "--threshold", "0"], "Did you mean 'gym_dr/LunarLanderDR-v3'?"),
        (["--env", "FrozenLake-v1", "--threshold", "1"], "Expected observations in a Box of one dimension"),
        (["--algorithm", "reinforcement"], "Did you mean 'reinforce'?"),
        (["--quik"], "'--quik'. Did you mean '--quick'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_impossible_option_is_refused_and_leaves_no_folder(args: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in refused(gymdr("bench", "--quick", "--output", tmp_path / "out", *args))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["", "notes.txt", "notes.txt/out"])
def test_an_output_that_is_taken_is_never_touched(place: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    before = files(tmp_path)
    assert f"{tmp_path / place}: " in refused(gymdr("bench", "--quick", "--output", tmp_path / place))
    assert files(tmp_path) == before
