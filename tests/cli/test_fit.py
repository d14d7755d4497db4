"""``gymdr fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.randomization.files import load_randomization
from tests.cli.command import gymdr, refused
from tests.fitting.logged import CART, logged

ASKED = ("--env", CART, "--randomize", "length=0.25:1.0")


@pytest.fixture(scope="module")
def episodes() -> list[dict[str, Any]]:
    return logged(params={"length": 0.7}, episodes=6, steps=12)


@pytest.fixture(autouse=True)
def log(episodes: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the log ``flights``, in which commands run."""
    monkeypatch.chdir(tmp_path)
    Path("flights").mkdir()
    for number, episode in enumerate(episodes):
        np.savez(Path("flights") / f"{number}.npz", **episode)


def written() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if path.name != "flights")


def test_the_table_the_findings_and_where_the_result_is_are_printed() -> None:
    result = gymdr("fit", "flights", *ASKED)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0].split() == ["parameter", "prior", "nominal", "best", "90", "%", "interval", "unit"]
    name, *prior, nominal, mean, low, to, high, unit, told = lines[1].split()
    assert (name, prior, nominal, to, unit, told) == ("length", ["0.25", "to", "1"], "0.5", "to", "m", "determined")
    assert float(low) < 0.7 < float(high)
    assert float(low) < float(mean) < float(high)
    assert lines[2].startswith("The residuals are consistent with noise")
    assert "Determined: length." in lines
    assert [line.split()[0] for line in lines[-5:-1]] == ["x", "x_dot", "theta", "theta_dot"]  # errors of predictions
    assert lines[-6].startswith("error of prediction")
    assert lines[-1] == "Wrote fitted.toml"
    assert written() == ["fitted.html", "fitted.npz", "fitted.toml"]


def test_the_file_tells_the_command() -> None:
    assert gymdr("fit", "flights", *ASKED, "--output", "mine.toml").code == 0
    assert written() == ["mine.html", "mine.npz", "mine.toml"]
    first = Path("mine.toml").read_text().splitlines()[0]
    assert first == f"# Found by: gymdr fit flights {' '.join(ASKED)} --output mine.toml"
    assert list(load_randomization("mine.toml")) == ["length"]


def test_values_that_are_known_are_set() -> None:
    more = ("--held-out", "0", "--margin", "2", "--varies", "length", "--seed", "3", "--method", "likelihood")
    result = gymdr("fit", "flights", *ASKED, "--set", "gravity=9.7", *more)
    assert result.code == 0, result.err
    assert "Error of predictions of the fitted episodes themselves" in result.out
    assert load_randomization("fitted.toml")["gravity"].to_dict() == {"distribution": "constant", "value": 9.7}


# ---- --check ----


def test_checking_tells_what_can_be_fitted_and_writes_nothing() -> None:
    result = gymdr("fit", "flights", *ASKED, "--check")
    assert result.code == 0, result.err
    assert result.out.startswith("6 episodes, ")
    assert result.out.splitlines()[-1] == "Parameters to find: length."
    several = gymdr("fit", "flights/0.npz", "flights/1.npz", *ASKED, "--check")
    assert several.out.startswith("2 episodes, ")
    assert written() == []


def test_checking_with_an_output_is_a_mistake() -> None:
    message = refused(gymdr("fit", "flights", *ASKED, "--check", "--output", "mine.toml"))
    assert message == "--check writes nothing: leave out --output."


# ---- mistakes ----


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "Missing argument 'LOG...'"),
        (("flights",), "Missing option '--env'"),
        (("flights", "--env", CART), "such as --randomize gravity=uniform:-12:-6"),
        (("flights", "--env", "CartPole-v1", "--randomize", "length=0:1"), "gymdr list envs shows them"),
        (("flights", *ASKED, "--randomize", "force_mag=choice:8,9"), "set it with --set."),
        (("flights", *ASKED, "--randomize", "obs_bias=0:1"), "A log does not show other disturbances"),
        (("flights", *ASKED, "--set", "gravity=9.8=1"), "--set"),
        (("flights", *ASKED, "--held-out", "0.7"), "0.7 is not in the range"),
        (("flights", *ASKED, "--method", "mcmc"), "'mcmc' is not one of"),
        (
            ("flights", *ASKED, "--output", "mine.json"),
            "--output: expected a file that ends in .toml, got 'mine.json'",
        ),
    ],
    ids=str,
)
def test_mistakes_are_told_without_a_traceback(args: tuple[str, ...], message: str) -> None:
    assert message in refused(gymdr("fit", *args))
    assert written() == []


def test_a_damaged_log_is_told_with_its_name() -> None:
    Path("flights/3.npz").write_bytes(b"PK\x03\x04")
    assert "flights/3.npz: expected an .npz file" in refused(gymdr("fit", "flights", *ASKED))
