"""How draws grew, read from a run's files and drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gym_dr.reports.plots import WINDOWS, plot_growth, read_growth
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.folder import RunFolder
from gym_dr.training.registry import find_algorithm

pytestmark = pytest.mark.usefixtures("full_pictures")

BOX = {"gravity": (-11.5, -1.5), "enable_wind": True, "wind_power": (0.0, 20.0)}
EPISODES = 600


def config(sampler: str = "doraemon") -> RunConfig:
    return build_config(find_algorithm("a2c"), {"sampler": sampler}, randomization=BOX)


def grown(path: Path) -> RunFolder:
    """A run whose draws of gravity widen from -10 to the whole box, and whose wind has half of its range throughout."""
    path.mkdir()
    folder, rng = RunFolder(path), np.random.default_rng(0)
    share = np.linspace(0.0, 1.0, EPISODES)
    gravity = -10.0 + share * (8.5 * rng.random(EPISODES) - 1.5 * (rng.random(EPISODES) < 0.1))
    rows = zip(np.arange(EPISODES) // 2, gravity, 10.0 * rng.random(EPISODES), strict=True)
    lines = ["update,return,enable_wind,gravity,wind_power", *(f"{u},1.0,1.0,{g},{w}" for u, g, w in rows)]
    folder.draws.write_text("\n".join(lines) + "\n")
    updates = [f"{update},{0.5 + 0.1 * np.sin(update)},{-4.0 + update / 75}" for update in range(0, 300, 10)]
    folder.sampler.write_text("\n".join(["update,success_rate,entropy", *updates]) + "\n")
    return folder


def test_bands_are_quantiles_of_equally_many_episodes(tmp_path: Path) -> None:
    gravity, wind = read_growth(grown(tmp_path / "run"), config())  # wind is always on, and so nothing to see
    assert (gravity.name, gravity.unit, gravity.ends) == ("gravity", "m/s^2", (-11.5, -1.5))
    assert (wind.name, wind.ends) == ("wind_power", (0.0, 20.0))
    assert gravity.quantiles.shape == (5, WINDOWS)
    # ten episodes each, two an update: the first are of updates 0 to 4
    assert gravity.updates[0] == 2.0
    assert (np.diff(gravity.quantiles, axis=0) >= 0).all()
    width = gravity.quantiles[-1] - gravity.quantiles[0]
    assert width[0] < 0.2 < 4.0 < width[-5:].mean()
    assert wind.quantiles[2].mean() == pytest.approx(5.0, abs=0.8)


def test_a_run_whose_sampler_does_not_learn_and_one_without_episodes_have_no_growth(tmp_path: Path) -> None:
    folder = grown(tmp_path / "run")
    plot_growth(folder, config("uniform"))
    folder.draws.write_text(folder.draws.read_text().splitlines(keepends=True)[0])  # as resuming may leave it
    plot_growth(folder, config())
    folder.draws.unlink()
    plot_growth(folder, config())
    assert not folder.growth.exists()
