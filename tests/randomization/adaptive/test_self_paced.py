"""SPDL goes to the box as far as the mean return allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.randomization.adaptive.self_paced import SelfPaced, SelfPacedOptions, updated
from gym_dr.randomization.sampler import TrainingInfo
from gym_dr.randomization.spec import Randomization
from tests.randomization.adaptive.synthetic import LINE, SPACE, Returns, play_at_once

NUM_ENVS = 2000


def spdl(**options: Any) -> SelfPaced:
    asked = SelfPacedOptions(**{"cohort": NUM_ENVS, "kl_bound": 0.3, **options})
    return SelfPaced(SPACE, LINE, asked, TrainingInfo(num_envs=NUM_ENVS))


def falling(params: Any) -> float:
    return 100.0 - 400.0 * float(params["x"])


# Near V a version whose episodes happen to return a little more is widened, and one with less is not taken back, so
# that draws end somewhat beyond V: by up to three standard deviations of a mean return, 400 x 0.25 / sqrt(2000) = 2.2.
@pytest.mark.parametrize(
    ("threshold", "mean"),
    [
        (-120.0, 0.5),  # the box has a mean return of 100 - 400 x 0.5 = -100, which will do
        (-60.0, 0.4),  # 100 - 400 m = -60 at a mean of m = 0.4
    ],
)
def test_draws_go_to_the_box_as_far_as_the_mean_return_allows(threshold: float, mean: float) -> None:
    sampler = spdl(success=threshold)
    rows = play_at_once(sampler, falling, updates=12, episodes=NUM_ENVS)
    a, b = sampler.shape[0]
    assert a / (a + b) == pytest.approx(mean, abs=0.025)
    assert rows[-1]["return_mean"] == pytest.approx(100.0 - 400.0 * mean, abs=16.0)
    if mean == 0.5:
        assert rows[-1]["entropy"] == pytest.approx(0.0, abs=1e-4)


def test_draws_seek_the_return_until_it_is_first_reached() -> None:
    # they start at x from 0.5 to 0.9, at -180, and are to have -60
    sampler = spdl(success=-60.0, start=Randomization({"x": (0.5, 0.9)}))
    rows = play_at_once(sampler, falling, updates=12, episodes=NUM_ENVS)
    did = [row["did"] for row in rows]
    assert did[0] == "seeks"
    assert did.index("widens") == did.count("seeks")
    returns = [float(row["return_mean"]) for row in rows]
    assert returns[0] < -150.0
    assert returns[-1] == pytest.approx(-60.0, abs=10.0)


def test_draws_stay_when_the_return_falls_below_again() -> None:
    sampler = spdl(success=-60.0)
    play_at_once(sampler, falling, updates=2, episodes=NUM_ENVS)
    worse: Returns = lambda params: -1000.0  # noqa: E731
    shape = sampler.shape
    rows = play_at_once(sampler, worse, updates=1, episodes=NUM_ENVS)
    assert rows[0]["did"] == "stays"
    assert (sampler.shape == shape).all()


@pytest.mark.parametrize("unit", [2.0**-13, 2.0**12])  # powers of two, so that rounding is the same
@pytest.mark.parametrize("threshold", [-0.6, 0.4])
def test_the_unit_of_reward_does_not_change_an_update(unit: float, threshold: float) -> None:
    rng = np.random.default_rng(1)
    shape, z = np.full((7, 2), 23.5), rng.beta(23.5, 23.5, (7, 100))
    surplus = rng.normal(size=7) @ (z - 0.5) + 0.3 * rng.normal(size=100) + threshold
    update: dict[str, Any] = {"reached": threshold > 0, "kl_bound": 0.05, "highest": 33.5}
    new, did = updated(shape, z, surplus, **update)
    assert did == ("widens" if threshold > 0 else "seeks")
    in_that_unit, did_too = updated(shape, z, unit * surplus, **update)
    np.testing.assert_array_equal(in_that_unit, new)
    assert did_too == did
