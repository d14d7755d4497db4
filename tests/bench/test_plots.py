from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from gym_dr.bench.plots import PICTURES, left_out_texts
from gym_dr.errors import RunFolderError

pytestmark = pytest.mark.usefixtures("full_pictures")

MACHINE = {"cpu": "a CPU", "usable_cores": 2, "load_average": None, "versions": {"python": "3.11"}}


def row(mode: str, num_envs: int, e: float | None) -> dict[str, Any]:
    numbers = {"steps_per_second": 1e4 * num_envs, "lowest": 9e3 * num_envs, "highest": 2e4 * num_envs}
    return {"mode": mode, "num_envs": num_envs, "speedup": num_envs, "serial_fraction": e, "max_speedup": e, **numbers}


def result(sizes: tuple[int, ...] = (1, 4, 64), *, passed: bool = True) -> dict[str, Any]:
    rows = [row(mode, n, None if n == 1 else 0.5) for mode in ("native", "sync") for n in sizes]
    run = {"passed": passed, "seconds": 3.0}
    parts = {"environment": 0.2, "inference": 0.1, "update": 0.3, "statistics": 0.01}
    return {
        "machine": MACHINE,
        "settings": {"env": "Some-v1", "algorithm": "cem"},
        "throughput": {
            "rows": rows,
            "left_out": [
                {"mode": m, "num_envs": n, "reason": "no room"} for m, n in (("async", 64), ("EnvPool", None))
            ],
        },
        "learning": {
            "threshold": -120.0,
            "limit_seconds": 30.0,
            "rows": [
                {"num_envs": n, "median_seconds": 3.0 if passed else None, "passed": int(passed), "runs": [run]}
                for n in sizes
            ],
        },
        "profile": {"rows": [{"mode": "native", "num_envs": 10, "steps": 1280, "compiled": True, **parts}]},
    }


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn(name: str, tmp_path: Path) -> None:
    PICTURES[name](result(), tmp_path / name)
    assert len(np.unique(imread(tmp_path / name)[::3, ::3].reshape(-1, 4).round(2), axis=0)) > 20


@pytest.mark.parametrize("name", ["speedup.png", "learning.png"])
def test_one_size_and_no_training_that_passed_can_be_drawn(name: str, tmp_path: Path) -> None:
    PICTURES[name](result((1,), passed=False), tmp_path / name)
    assert (tmp_path / name).stat().st_size > 1000


def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"nowhere/x\.png"):
        PICTURES["profile.png"](result(), tmp_path / "nowhere" / "x.png")


def test_what_is_left_out_for_one_reason_shares_a_line() -> None:
    assert left_out_texts(result()) == ["async with 64, EnvPool: no room"]
