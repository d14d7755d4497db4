"""``gymdr record``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import gymdr, refused, train
from tests.cli.gated import gated, wait_at_gate

CART = "gym_dr/CartPoleDR-v1"
RANDOM = ("--policy", "random", "--env", CART, "--format", "npz", "--episodes", "2")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_is_recorded_under_physics_that_the_user_chooses() -> None:
    assert train(Path("run"), "--env", CART).code == 0
    result = gymdr("record", "run", "--episodes", 2, "--output", "log", "--format", "npz", "--set", "length=0.7")
    assert (result.code, result.out) == (0, "Wrote log\n"), result.err
    with np.load("log/001.npz", allow_pickle=False) as episode:
        assert episode["params/length"] == 0.7
        assert episode["params/gravity"] == 9.8
        assert episode["seed"] == 1
        assert "state/physics/state" in episode


def test_nothing_is_overwritten() -> None:
    Path("log").mkdir()
    Path("log/mine").write_text("precious")
    assert "log: already exists. Choose another --output, or remove it." in refused(
        gymdr("record", *RANDOM, "--output", "log")
    )
    assert [path.name for path in Path("log").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "--policy", "random"), "Expected one RUN or one --policy, got 2."),
        (("--policy", "random"), "Expected --env: only runs"),
        (("--policy", "radom", "--env", CART), "radom: "),
        (("--policy", "random", "--env", CART, "--stochastic"), "--stochastic is for runs and policies of Stable"),
        (("--policy", "random", "--env", CART, "--set", "lenth=1"), "Did you mean 'length'"),
    ],
    ids=str,
)
def test_mistakes_are_told_without_a_traceback(args: tuple[str, ...], message: str) -> None:
    result = gymdr("record", *args, "--episodes", 1, "--output", "log", "--format", "npz")
    assert message in refused(result)
    assert not list(Path().iterdir())


def test_minari_is_asked_for_only_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    args = ("--policy", "random", "--env", CART, "--episodes", "1", "--output", "cart/log-v0")
    message = refused(gymdr("record", *args))
    assert "needs the package 'minari', which is not installed: pip install 'gym-dr[minari]'" in message


@pytest.mark.slow  # its siblings are those of a training in test_signals.py, and of a policy that fails midway
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing_half_written(number: int, code: int) -> None:
    with gated("numpy:savez_compressed", "record", *RANDOM, "--output", "log") as process:
        wait_at_gate(process)
        process.send_signal(number)
        _, errors = process.communicate("\n", timeout=60)
    assert process.returncode == code, errors
    assert "Stopped. Nothing was written." in errors
    assert "Traceback" not in errors
    assert not list(Path().iterdir())
