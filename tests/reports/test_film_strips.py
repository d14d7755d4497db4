from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from gym_dr.errors import ConfigError
from gym_dr.reports import film_strips
from gym_dr.reports.assemble import assemble
from gym_dr.reports.comparison import Comparison


def test_an_episode_is_played_again_exactly(comparison: Comparison) -> None:
    episode = film_strips.extremes(comparison, 1)[1]
    played = film_strips.replay(comparison, episode)
    table = comparison.evaluation.episodes
    row = table[(table["policy"] == episode.policy.name) & (table["seed"] == played.seed)]
    row = row[row["set"] == episode.set_name].iloc[0]
    assert played.episode_return == pytest.approx(row["return"], rel=1e-9)
    assert played.length == row["steps"]
    assert {name: played.params[name] for name in comparison.document["parameters"]} == {
        name: row[name] for name in comparison.document["parameters"]
    }


def test_the_worst_episode_is_the_worst_of_all_sets(comparison: Comparison) -> None:
    table = comparison.evaluation.episodes
    for group in (0, 1):
        name = comparison.groups[group].policies[0].name
        good, worst = film_strips.extremes(comparison, group)
        returns = table[table["policy"] == name]["return"]
        assert worst.episode_return == returns.min()
        assert good.episode_return == np.quantile(returns, 0.9, method="lower")


def test_a_strip_holds_pictures_of_the_episode(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_strips, "FRAMES", 3)  # drawing takes most of the time
    strips = film_strips.film_strips(comparison, lambda text: None)
    assert len(strips) == 4  # good and worst of two policies
    for strip in strips:
        for _, uri in strip.frames:
            image = Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/webp;base64,"))))
            assert image.width == film_strips.WIDTH
            assert np.asarray(image).std() > 10  # not blank


def test_where_nothing_can_be_drawn_the_report_says_so(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ConfigError("The environment cannot be rendered on this machine: no display")

    monkeypatch.setattr(film_strips, "_picture", fail)
    told: list[str] = []
    report = assemble(comparison, "gymdr report", told.append)
    assert report.film_strips == []
    assert "no display" in report.film_strip_notes[0]
    assert "no display" in told[-1]
