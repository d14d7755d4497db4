"""What a fit writes: ranges, particles and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import ConfigError
from gym_dr.fitting.results import Fit
from gym_dr.randomization.files import load_randomization
from tests.api.fit_sample import fit
from tests.fitting.logged import CART


@pytest.fixture(scope="module")
def found(short: Any, output: Path) -> Fit:
    return fit(short, output=output)


def test_randomization_particles_and_report_are_written_and_nothing_else(found: Fit, output: Path) -> None:
    assert sorted(path.name for path in output.parent.iterdir()) == ["fitted.html", "fitted.npz", "fitted.toml"]
    assert load_randomization(output) == found.randomization
    with np.load(output.with_suffix(".npz"), allow_pickle=False) as saved:
        for name in found.particles:
            np.testing.assert_array_equal(saved[name], found.particles[name])


def test_the_file_begins_with_what_was_found(found: Fit, output: Path) -> None:
    lines = output.read_text().splitlines()
    assert lines[: 1 + len(found.findings)] == ["# Found by gym_dr.fit", *(f"# {text}" for text in found.findings)]


def test_the_file_is_one_that_environments_take(found: Fit, output: Path) -> None:
    envs: Any = gym.make_vec(CART, 50, randomization=str(output))
    envs.reset(seed=0)
    particles = found.particles["length"]
    assert envs.unwrapped.params["length"].mean() == pytest.approx(particles.mean(), abs=particles.std() / 2)
    envs.close()


def test_an_output_that_cannot_be_written_is_refused(short: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`output`: expected a file that ends in \.toml, got"):
        fit(short, output=tmp_path / "fitted.json")
    assert not list(tmp_path.iterdir())
    (tmp_path / "taken").touch()
    with pytest.raises(ConfigError, match=r"`output`: .*taken' cannot be made"):
        fit(short, output=tmp_path / "taken" / "fitted.toml")


def test_the_folder_of_an_output_is_made(short: Any, tmp_path: Path) -> None:
    fit(short, output=tmp_path / "of" / "rides" / "fitted.toml")
    assert (tmp_path / "of" / "rides" / "fitted.toml").is_file()


def test_an_output_neither_replaces_the_log_nor_lies_among_its_episodes(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ride = tmp_path / "rides" / "ride.npz"
    ride.parent.mkdir()
    np.savez(ride, **short[0])
    content = ride.read_bytes()
    monkeypatch.chdir(ride.parent)
    with pytest.raises(ConfigError, match=r"`output`: expected a file that is not part of the log, got 'ride\.npz'"):
        fit("ride.npz", output="ride.toml")
    with pytest.raises(ConfigError, match=r"`output`: expected a file that is not part of the log, got 'cart\.toml'"):
        fit([tmp_path / "rides"], output="cart.toml")
    assert [path.name for path in ride.parent.iterdir()] == ["ride.npz"]
    assert ride.read_bytes() == content


def test_the_randomization_is_written_even_if_the_report_is_not(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr("gym_dr.reports.page.write_report", fail)
    with pytest.raises(OSError):  # noqa: PT011
        fit(short, output=tmp_path / "fitted.toml")
    assert list(load_randomization(tmp_path / "fitted.toml")) == ["length"]
