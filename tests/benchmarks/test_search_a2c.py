from __future__ import annotations

from benchmarks.search_a2c import REPORTS, WORST, SearchSession
from gym_dr.training.a2c import train
from gym_dr.training.config import A2CConfig


def test_a_trial_trains_to_its_end_and_reports_its_returns_in_parts() -> None:
    reports: list[tuple[int, float]] = []
    config = A2CConfig(updates=2 * REPORTS, rollout_steps=64, hidden_sizes=(8,))
    session = SearchSession(
        "gym_dr/LunarLanderDR-v3", "default", 4, 1, config.updates, lambda stage, mean: reports.append((stage, mean))
    )
    train(session, config)
    assert [stage for stage, _ in reports] == list(range(1, REPORTS + 1))
    assert all(mean > WORST for _, mean in reports[2:])  # of episodes that have ended by then
    assert session.mean() == reports[-1][1]
