from __future__ import annotations

import pytest

from gym_dr.evaluation.statistics import summarise
from gym_dr.wrappers.record import EpisodeRecord


def records(returns: list[float]) -> list[EpisodeRecord]:
    return [
        EpisodeRecord(
            env_index=0, seed=0, draw_index=i, params={}, episode_return=r, length=10 * (i + 1), terminated=True
        )
        for i, r in enumerate(returns)
    ]


def test_statistics_of_known_returns() -> None:
    # mean (100 + 200 + 300) / 3; deviations -100, 0, 100: variance 20000 / 2
    assert summarise(records([100.0, 200.0, 300.0]), threshold=200.0) == {
        "episodes": 3,
        "mean": 200.0,
        "std": 100.0,
        "min": 100.0,
        "max": 300.0,
        "length_mean": 20.0,
        "success_rate": pytest.approx(2 / 3),
    }


def test_one_episode_has_no_spread() -> None:
    assert summarise(records([5.0]))["std"] == 0.0


def test_without_a_threshold_there_is_no_success_rate() -> None:
    assert "success_rate" not in summarise(records([5.0]))
