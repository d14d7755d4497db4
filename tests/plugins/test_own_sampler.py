"""examples/own_sampler is installed like any package, and has options and files like the samplers of gym_dr.

What every sampler promises, it is held to in tests/contracts.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.plugins.installed import Installed, install

BUDGET = ["--updates", "6", "--num-envs", "16", "--rollout-steps", "32", "--hidden-sizes", "8", "--eval-episodes", "0"]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install("own_sampler", tmp_path_factory)


def test_the_sampler_is_listed_with_its_options(example: Installed) -> None:
    listed = example.gymdr_alone("list", "samplers").out
    assert "widening  Widens ranges at a constant rate" in listed
    assert "--widening-episodes 20000" in listed
    assert "[widening] episodes until draws cover" in " ".join(example.gymdr("train", "a2c", "--help").out.split())


def test_it_widens_draws_in_a_training(example: Installed, tmp_path: Path) -> None:
    own = ["--sampler", "widening", "--widening-episodes", "20", "--start-width", "0.1"]
    result = example.gymdr("train", "a2c", *BUDGET, *own, "--run-dir", tmp_path / "run", "--randomization", "wide")
    assert result.code == 0, result.err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["widening"] == {"start": "nominal", "start_width": 0.1, "widening_episodes": 20}
    with open(tmp_path / "run" / "sampler.csv", newline="") as file:
        shares = [float(row["share"]) for row in csv.DictReader(file)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert (tmp_path / "run" / "sampler.png").exists()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (["--widening-episodes", "0"], "widening_episodes: expected at least 1, got 0."),
        (["--alpha", "0.5"], "alpha: expected with sampler doraemon, got widening."),
    ],
)
def test_an_impossible_option_is_refused_like_one_of_gym_dr(
    example: Installed, own: list[str], message: str, tmp_path: Path
) -> None:
    result = example.gymdr("train", "a2c", "--sampler", "widening", *own, "--run-dir", tmp_path / "run")
    assert (result.code, result.err) == (2, f"Error: {message}\n")
