"""DORAEMON ends with the most varied draws that succeed as often as they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from gym_dr.errors import ConfigError
from gym_dr.randomization.adaptive.doraemon import Doraemon, DoraemonOptions, updated
from gym_dr.randomization.sampler import TrainingInfo
from gym_dr.randomization.spec import Randomization
from tests.randomization.adaptive.synthetic import LINE, SPACE, SQUARE, below_06, play_at_once

NUM_ENVS = 2000


def doraemon(support: Randomization = LINE, **options: Any) -> Doraemon:
    asked = DoraemonOptions(**{"success": 1.0, "cohort": NUM_ENVS, "kl_bound": 0.3, **options})
    return Doraemon(SPACE, support, asked, TrainingInfo(num_envs=NUM_ENVS))


def test_draws_are_those_of_the_beta_distributions() -> None:
    sampler = doraemon(SQUARE)
    drawn = sampler.draw(np.arange(4000, dtype=np.uint64), np.zeros(4000, np.int64))
    for name, (a, b) in zip("xy", sampler.shape, strict=True):
        assert stats.kstest(drawn[name], stats.beta(a, b).cdf).pvalue > 1e-3


def test_draws_become_the_box_where_it_succeeds_often_enough() -> None:
    # 60 % of the box succeeds, more than alpha = 0.5
    sampler = doraemon()
    rows = play_at_once(sampler, below_06, updates=12, episodes=NUM_ENVS)
    np.testing.assert_allclose(sampler.shape, 1.0, atol=0.01)
    assert rows[-1]["entropy"] == pytest.approx(0.0, abs=1e-4)
    assert rows[-1]["success_rate"] == pytest.approx(0.6, abs=0.04)


def test_draws_end_with_the_largest_entropy_at_success_rate_alpha() -> None:
    # The largest entropy of Beta(a, b) with a, b >= 1 and P(x < 0.6) = 0.9: for each a there is one such b, so that a
    # search along a line finds it.
    def b_of(a: float) -> float:
        return float(optimize.brentq(lambda b: stats.beta(a, b).cdf(0.6) - 0.9, 1.0, 50.0))

    best = optimize.minimize_scalar(lambda a: -stats.beta(a, b_of(a)).entropy(), bounds=(1.0, 10.0), method="bounded")
    sampler = doraemon(alpha=0.9)
    rows = play_at_once(sampler, below_06, updates=15, episodes=NUM_ENVS)
    assert np.mean([float(row["entropy"]) for row in rows[-5:]]) == pytest.approx(-best.fun, abs=0.05)
    # each version meets alpha by the estimate of the one before, whose standard deviation is about 0.007
    assert np.mean([float(row["success_rate"]) for row in rows[-5:]]) == pytest.approx(0.9, abs=0.02)


def test_two_parameters_that_interact_share_what_success_allows() -> None:
    # success if x + y < 1, alpha = 0.7, the same for x and y by symmetry
    sampler = doraemon(SQUARE, alpha=0.7, start=Randomization({"x": (0.2, 0.4), "y": (0.2, 0.4)}))
    rows = play_at_once(sampler, lambda p: float(p["x"] + p["y"] < 1), updates=12, episodes=NUM_ENVS)
    assert rows[-1]["success_rate"] == pytest.approx(0.7, abs=0.04)
    np.testing.assert_allclose(sampler.shape[0], sampler.shape[1], rtol=0.25)


def test_a_parameter_that_does_not_matter_becomes_uniform() -> None:
    sampler = doraemon(SQUARE, alpha=0.9)
    play_at_once(sampler, below_06, updates=15, episodes=NUM_ENVS)
    np.testing.assert_allclose(sampler.shape[1], 1.0, atol=0.12)
    assert sampler.shape[0].max() > 1.5


def test_each_step_stays_in_the_trust_region_and_reports_it() -> None:
    rows = play_at_once(doraemon(kl_bound=0.05), below_06, updates=4, episodes=NUM_ENVS)
    for row in rows:
        assert float(row["divergence"]) <= 0.05 + 1e-5
        assert 100 < float(row["effective_sample_size"]) <= NUM_ENVS
        assert row["did"] == "widens"


def test_nothing_changes_until_alpha_is_first_reached() -> None:
    sampler = doraemon(start=Randomization({"x": (0.6, 0.9)}))
    rows = play_at_once(sampler, below_06, updates=2, episodes=NUM_ENVS)
    assert [row["did"] for row in rows] == ["waits", "waits"]
    assert sampler.version == 0


def draws_of(shape: Any) -> Any:
    return np.stack([stats.beta(a, b).ppf((np.arange(2000) + 0.5) / 2000) for a, b in shape])


def test_draws_that_no_longer_succeed_back_up_towards_those_that_do() -> None:
    shape = np.array([[1.0, 1.0]])
    z = draws_of(shape)
    new, did = updated(shape, z, (z[0] < 0.3).astype(float), alpha=0.5, kl_bound=0.01, highest=100.0)
    assert did == "backs up"  # 30 % succeed, and no shape so near reaches half
    assert stats.beta(*new[0]).cdf(0.3) > 0.32


def test_where_the_backup_reaches_alpha_draws_are_as_varied_as_it_allows() -> None:
    # 45 % succeed; within a divergence of 1 half can, and the most varied such draws have just half
    shape = np.array([[1.0, 1.0]])
    z = draws_of(shape)
    new, did = updated(shape, z, (z[0] < 0.45).astype(float), alpha=0.5, kl_bound=1.0, highest=100.0)
    assert did == "widens"
    assert stats.beta(*new[0]).cdf(0.45) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("bad", [{"alpha": 1.5}, {"kl_bound": 0.0}])
def test_impossible_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(bad))}: expected"):
        DoraemonOptions(**bad)
