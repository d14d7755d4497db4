"""Simulations of all intervals that are printed or drawn, but those of fits (``tests/fitting``).

Returns are those of policies that crash or land, or skewed ones: normal returns are easy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gym_dr import Randomization
from gym_dr.arrays import Array
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.family import UNLIMITED
from gym_dr.evaluation import ranges
from gym_dr.evaluation.failures import (
    REGRET,
    best_known,
    describe_best,
    nearest_failure,
    nearest_suspects,
    regret_statistics,
)
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import mean_over_seeds, means_with_intervals, policy_statistics, rate_ends
from gym_dr.reports.binning import bin_statistics, make_bins
from tests.evaluation.points import points_in

CRASH, LAND = -150.0, 250.0
Ends = tuple[float, float]
# share of all repetitions, and of intervals that hold the true value, the least and the most
SLOW_AND_FAST = [
    pytest.param(1.0, (0.93, 0.97), marks=pytest.mark.slow, id="slow"),
    pytest.param(0.1, (0.88, 1.0), id="fast"),
]
accurate = pytest.mark.parametrize(("share", "ends"), SLOW_AND_FAST)


def grid(count: int, episodes: int) -> CellSet:
    return CellSet.grid(LUNAR_LANDER, {"gravity": np.linspace(-12, -2, count)}, episodes)


def draws(episodes: int) -> CellSet:
    return CellSet.of_draws("training", Randomization({"gravity": (-12, -2)}), episodes)


def landings(rng: np.random.Generator, rates: Any) -> Array:
    """Returns of episodes that land at some rates, and crash otherwise."""
    lands = rng.random(np.shape(rates)) < rates
    return np.where(lands, LAND, CRASH) + rng.normal(0, 20, np.shape(rates))


def mean_of(rates: Any) -> float:
    return float(CRASH + (LAND - CRASH) * np.mean(rates))


def covered(intervals: Sequence[Any], true: Any) -> float:
    """The share of the intervals that hold the true value, of those that there are."""
    known = [(found, value) for found, value in zip(intervals, np.broadcast_to(true, len(intervals)), strict=True)]
    hits = [found["low"] <= value <= found["high"] for found, value in known if found["low"] is not None]
    assert len(hits) > 0.9 * len(intervals)
    return float(np.mean(hits))


# ---- one policy, over episodes ---------------------------------------------------------------------------------------

CELLS: dict[str, tuple[CellSet, Any]] = {  # the set, and the rate of landings in each cell
    "100 draws": (draws(100), 0.85),
    "20 draws": (draws(20), 0.5),
    "50 cells of 2": (grid(50, 2), np.linspace(0.05, 0.95, 50)),
    "9 cells of 5": (grid(9, 5), np.linspace(0.05, 0.95, 9)),
    "50 cells of 5, almost surely solved or not": (grid(50, 5), np.where(np.arange(50) % 2, 0.95, 0.05)),
    "54 cells of 20": (grid(54, 20), np.linspace(0.5, 1.0, 54)),
}


@accurate
@pytest.mark.parametrize("name", CELLS)
def test_means_and_rates_of_landings_are_covered(name: str, share: float, ends: Ends) -> None:
    cells, rates = CELLS[name]
    rng, each = np.random.default_rng(0), np.repeat(np.broadcast_to(rates, cells.num_cells), cells.episodes)
    found = policy_statistics(landings(rng, np.tile(each, (int(4000 * share), 1))), cells, 0.0)
    assert ends[0] <= covered([row["mean"] for row in found], mean_of(rates)) <= ends[1]
    assert ends[0] <= covered([row["success_rate"] for row in found], np.mean(rates)) <= ends[1]


@pytest.mark.parametrize(
    ("episodes", "between", "worst"), [(5, (0.89, 0.993), 0.83), (20, (0.91, 0.985), 0.85), (100, (0.92, 0.985), 0.91)]
)
def test_rates_of_few_episodes_are_covered_as_the_page_says(
    episodes: int, between: tuple[float, float], worst: float
) -> None:
    successes, rates = np.arange(episodes + 1), np.linspace(0.002, 0.998, 997)[:, None]
    low, high = rate_ends((successes[:, None] > np.arange(episodes))[:, None].astype(np.float64), episodes)
    share = (stats.binom.pmf(successes, episodes, rates) * ((low <= rates) & (rates <= high))).sum(-1)
    inner = share[(rates[:, 0] >= 0.05) & (rates[:, 0] <= 0.95)]
    assert between[0] <= inner.min()
    assert inner.max() <= between[1]
    assert share.min() == pytest.approx(worst, abs=0.006)


@accurate
def test_means_of_skewed_returns_are_covered_whose_spread_grows_tenfold(share: float, ends: Ends) -> None:
    scales = np.repeat(np.geomspace(10, 100, 25), 5)
    returns = -scales * np.random.default_rng(0).exponential(size=(int(4000 * share), len(scales)))
    found = means_with_intervals(returns, grid(25, 5))
    assert ends[0] <= covered(found, -scales.mean()) <= ends[1]


@accurate
def test_differences_between_policies_on_the_same_draws_are_covered(share: float, ends: Ends) -> None:
    rng, count = np.random.default_rng(0), int(4000 * share)
    easy = rng.random((count, 100))  # how easy the draw of an episode is for both
    one, other = (np.where(easy > limit, LAND, CRASH) + rng.normal(0, 20, easy.shape) for limit in (0.2, 0.35))
    found = means_with_intervals(one - other, draws(100))
    assert ends[0] <= covered(found, mean_of(0.8) - mean_of(0.65)) <= ends[1]


def rate_at(values: Array) -> Array:
    """Rates of landings at three parameters, of which one has no effect."""
    rates: Array = 0.98 * np.clip(1.3 - 1.5 * values[..., 0] * values[..., 1], 0.0, 1.0)
    return rates


@accurate
def test_means_rates_curves_and_tiles_over_a_sobol_set_are_covered(
    share: float, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, found, curve, tile = np.random.default_rng(0), [], [], []
    everywhere = rng.random((200_000, 3))
    rates = rate_at(everywhere)
    for seed in range(int(600 * share)):
        monkeypatch.setattr(ranges, "_SOBOL_SEED", seed)
        cells = points_in({"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}, 128, 5)
        returns = landings(rng, np.repeat(rate_at(cells.values), 5))[None]
        found += policy_statistics(returns, cells, 0.0)
        x, y = (make_bins(np.repeat(cells.values[:, k], 5)) for k in (0, 1))
        low, high = [x.edges[5], y.edges[4]], [x.edges[6], y.edges[5]]
        inside = (everywhere[:, :2] >= low) & (everywhere[:, :2] < high)
        for into, table, where in (
            (curve, bin_statistics(returns, cells, x), inside[:, 0]),
            (tile, bin_statistics(returns, cells, x, y), inside.all(1)),
        ):
            place = (5,) if into is curve else (4, 5)
            into.append(({"low": table.low[place], "high": table.high[place]}, mean_of(rates[where])))
    assert ends[0] <= covered([row["mean"] for row in found], mean_of(rates)) <= ends[1]
    assert ends[0] <= covered([row["success_rate"] for row in found], rates.mean()) <= ends[1]
    assert ends[0] <= covered(*zip(*curve, strict=True)) <= ends[1]
    assert ends[0] - 0.04 <= covered(*zip(*tile, strict=True)) <= ends[1]


@accurate
def test_curves_and_worst_cells_are_covered(share: float, ends: Ends) -> None:
    rng, cells, curve = np.random.default_rng(0), draws(200), []
    for _ in range(int(2000 * share)):
        gravity = rng.uniform(-12, -2, 200)
        part = make_bins(gravity)
        table = bin_statistics(landings(rng, np.full((1, 200), 0.6)), cells, part)
        curve.append({"low": table.low[3], "high": table.high[3]})
    assert ends[0] <= covered(curve, mean_of(0.6)) <= ends[1]
    again = means_with_intervals(landings(rng, np.full((int(4000 * share), 20), 0.3)), draws(20))  # of a worst cell
    assert ends[0] <= covered(again, mean_of(0.3)) <= ends[1]


# ---- several policies ------------------------------------------------------------------------------------------------


@accurate
@pytest.mark.parametrize("differ", [0.0, 0.2, 0.6])
def test_regret_and_the_best_known_returns_are_covered(differ: float, share: float, ends: Ends) -> None:
    """Of the policies that were chosen; each of the three is better in a third of the cells."""
    rng, cells, own, best = np.random.default_rng(0), grid(21, 10), [], []
    rates = 0.3 + differ * (np.arange(21) % 3 == np.arange(3)[:, None])
    means = CRASH + (LAND - CRASH) * rates
    for _ in range(int(1500 * share)):
        returns = landings(rng, np.repeat(rates[:, :, None], 10, axis=2))
        known = best_known(returns)
        halves = np.stack([returns[:, :, 1::2].mean(-1), returns[:, :, ::2].mean(-1)])
        chosen = np.take_along_axis(means[None], halves.argmax(1)[:, None], axis=1).mean((0, 1, 2))
        own.append((regret_statistics(known, cells)[0][REGRET], chosen - means[0].mean()))
        best.append((describe_best(known, cells, None, UNLIMITED)["mean"], chosen))
    assert ends[0] <= covered(*zip(*own, strict=True)) <= ends[1] + 0.02
    assert ends[0] <= covered(*zip(*best, strict=True)) <= ends[1] + 0.02


@accurate
@pytest.mark.parametrize("rate", [0.75, 0.5])
def test_a_failure_is_rarely_told_of_a_policy_that_succeeds_in_half_of_all_episodes(
    rate: float, share: float, ends: Ends
) -> None:
    rng, times, told = np.random.default_rng(0), int(300 * share), 0
    cells = points_in({"gravity": (-12.0, -2.0), "wind_power": (0.0, 10.0)}, 128, 5)
    nominal = {"gravity": -10.0, "wind_power": 5.0}
    for _ in range(times):
        returns = (rng.random((cells.num_cells, 5)) < rate).astype(np.float64)
        suspects = nearest_suspects(returns, cells, nominal, 1.0)
        again = {cell: (rng.random(20) < rate).astype(np.float64) for cell in suspects}
        told += nearest_failure(returns, again, cells, nominal, 1.0, fails_at_nominal=False)["found"]
    assert told / times <= 0.05


# ---- over seeds ------------------------------------------------------------------------------------------------------


@accurate
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_means_over_seeds_and_differences_paired_by_seed_are_covered(seeds: int, share: float, ends: Ends) -> None:
    rng, times = np.random.default_rng(0), int(3000 * share)
    one = 200 + 30 * rng.normal(size=(times, seeds))
    other = one - 10 + 20 * rng.normal(size=(times, seeds))
    assert ends[0] <= covered([mean_over_seeds(row)[0] for row in one], 200.0) <= ends[1]
    assert ends[0] <= covered([mean_over_seeds(row)[0] for row in one - other], 10.0) <= ends[1]


@accurate
def test_curves_over_seeds_are_covered_although_seeds_share_their_episodes(share: float, ends: Ends) -> None:
    rng, cells, found = np.random.default_rng(0), draws(100), []
    part = make_bins(np.repeat([-10.0, -5.0], 50))
    for _ in range(int(3000 * share)):
        episodes = 300 * rng.normal(size=100)  # how hard they are for all seeds
        episodes -= episodes[:50].mean()
        table = bin_statistics(episodes + 30 * rng.normal(size=(5, 1)) + rng.normal(size=(5, 100)), cells, part)
        found.append({"low": table.low[0], "high": table.high[0]})
    assert ends[0] <= covered(found, 0.0) <= ends[1]
