from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gym_dr import Randomization
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.family import UNLIMITED
from gym_dr.evaluation.failures import (
    REGRET,
    best_known,
    best_on,
    describe_best,
    impossible,
    regret_statistics,
    why_no_regret,
)
from gym_dr.evaluation.sets import CellSet

SPREAD = 100.0  # of returns of one cell


def grid(count: int, episodes: int) -> CellSet:
    return CellSet.grid(LUNAR_LANDER, {"gravity": np.linspace(-12, -2, count)}, episodes)


def draws(episodes: int) -> CellSet:
    return CellSet.of_draws("training", Randomization({"gravity": (-12, -2)}), episodes)


def estimates(means: Any, episodes: int, times: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Mean and standard error, over repetitions, of estimates for the first policy; ``means`` is (policies, cells)."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[float]] = {REGRET: [], "naive": []}
    for _ in range(times):
        returns = np.asarray(means)[:, :, None] + SPREAD * rng.normal(size=(*np.shape(means), episodes))
        known = best_known(returns)
        found[REGRET].append(known.regret[0].mean())
        each = returns.mean(-1)
        found["naive"].append((each.max(0) - each[0]).mean())
    return {name: (float(np.mean(v)), float(np.std(v) / math.sqrt(times))) for name, v in found.items() if v}


# ---- regret ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_cells", "episodes"), [(20, 2), (20, 5), (20, 20), (1, 100), (100, 1)], ids=lambda n: str(n)
)
def test_the_regret_of_equal_policies_is_0_on_average_where_the_highest_mean_is_too_high(
    num_cells: int, episodes: int
) -> None:
    found = estimates(np.zeros((4, num_cells)), episodes, 1500)
    mean, error = found[REGRET]
    assert abs(mean) < 4 * error
    assert found["naive"][0] > 5 * found["naive"][1]


def test_regret_is_too_low_rather_than_too_high_and_right_with_many_episodes() -> None:
    """A specialist is 60 better in one half of the cells, another one 120 in the other: 90 on average."""
    means = np.zeros((3, 40))
    means[1, :20], means[2, 20:] = 60.0, 120.0
    few, many = estimates(means, 5, 200), estimates(means, 200, 50)
    assert 50 < few[REGRET][0] < 90
    assert many[REGRET][0] == pytest.approx(90, abs=1)


def test_without_noise_regret_is_exact_and_that_of_the_best_is_0() -> None:
    returns = np.repeat(np.array([[5.0, 1.0, 2.0], [3.0, 4.0, 2.0]])[:, :, None], 4, axis=2)
    known = best_known(returns)
    assert known.returns[:, 0].tolist() == [5.0, 4.0, 2.0]
    assert known.regret[:, :, 0].tolist() == [[0.0, 3.0, 0.0], [2.0, 0.0, 0.0]]


def test_single_episodes_do_not_tell_which_policy_is_best_on_a_draw() -> None:
    """Each is the best on half of the draws; the first one on average."""
    returns = np.where(np.arange(40) % 4 < 2, [[10.0], [0.0]], [[0.0], [9.0]])
    for shape in ((2, 1, 40), (2, 40, 1)):
        known = best_known(returns.reshape(shape))
        assert known.regret.reshape(2, 40).mean(1).tolist() == [0.0, 0.5]
        assert known.returns.shape == shape[1:]


def test_a_single_episode_has_no_regret() -> None:
    assert best_on(CellSet.nominal(1), np.zeros((3, 1, 1))) is None


def test_cells_of_a_grid_with_one_episode_each_have_no_regret_since_each_half_would_be_other_physics() -> None:
    few, enough = grid(8, 1), grid(8, 2)
    easy = np.arange(8) % 2 == 0
    returns = np.array([np.where(easy, 100.0, 0.0), np.where(easy, 0.0, 100.0), np.full(8, 60.0)])[:, :, None]
    assert best_on(few, returns) is None
    assert "two episodes per cell" in why_no_regret(few)
    known = best_on(enough, returns.repeat(2, axis=2))
    assert known is not None
    assert known.returns.mean() == 100.0
    assert why_no_regret(enough) == ""


def test_statistics_are_those_of_each_policy() -> None:
    returns = np.random.default_rng(0).normal(size=(3, 20, 4))
    known = best_known(returns)
    for k, found in enumerate(regret_statistics(known, grid(20, 4))):
        assert found[REGRET]["value"] == pytest.approx(known.regret[k].mean())
        assert found[REGRET]["low"] < found[REGRET]["value"] < found[REGRET]["high"]


# ---- what is impossible ----------------------------------------------------------------------------------------------


def test_a_set_says_what_the_best_known_policy_does_not_solve_either() -> None:
    some = grid(30, 10)
    returns = np.zeros((2, 30, 10))
    returns[0, :15], returns[1, 10:] = 300.0, 300.0  # one solves the first half, the other the last two thirds
    returns[:, 20:] = 0.0  # and nobody the last third
    known = best_known(returns)
    entry = describe_best(known, some, 200.0, UNLIMITED)
    assert (entry["set"], entry["cells"], entry["failing"]) == ("grid", 30, 10)
    assert entry["mean"]["value"] == pytest.approx(200.0)
    assert entry["success_rate"] == pytest.approx(2 / 3)
    assert impossible(entry) == ["The best known policy solves 67% of the episodes.", "It fails in 10 of 30 cells."]
    unknown = describe_best(known, some, None, UNLIMITED)
    assert (unknown["success_rate"], unknown["failing"], impossible(unknown)) == (None, None, [])
