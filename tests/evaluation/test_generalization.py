from __future__ import annotations

import pytest

from gym_dr.evaluation.generalization import generalization

SETS = ("nominal", "random", "extreme")


def test_scores_are_those_of_the_paper() -> None:
    policies = [
        {"name": "d", "algorithm": "a2c", "trained_on": "none"},
        {"name": "r1", "algorithm": "a2c", "trained_on": "random"},
        {"name": "r2", "algorithm": "a2c", "trained_on": "random"},
        {"name": "w", "algorithm": "a2c", "trained_on": "wide"},
        {"name": "s", "algorithm": "a2c", "trained_on": "random", "sampler": "adr"},
    ]
    rates = {
        "d": (0.9, 0.4, 0.2),
        "r1": (0.8, 0.6, 0.5),
        "r2": (0.8, 0.8, 0.3),
        "w": (0.0, 0.0, 0.0),  # was trained on none of the versions
        "s": (0.0, 0.0, 0.0),  # nor this, whose draws followed its policy
    }
    success = {(name, cells): rate for name, row in rates.items() for cells, rate in zip(SETS, row, strict=True)}
    (row,) = generalization(policies, success)
    assert row["algorithm"] == "a2c"
    assert row["success"]["R"] == pytest.approx({"D": 0.8, "R": 0.7, "E": 0.4})  # the mean of two seeds
    assert row["default"] == 0.9
    assert row["interpolation"] == pytest.approx(0.7)
    # (D on R x D on E x R on E) ** (1/3) = (0.4 x 0.2 x 0.4) ** (1/3)
    assert row["extrapolation"] == pytest.approx(0.032 ** (1 / 3))


def test_a_reference_is_no_seed_of_what_is_scored() -> None:
    policies = [{"name": name, "algorithm": "a2c", "trained_on": "random"} for name in ("r", "oracle")]
    success = {(name, cells): rate for name, rate in (("r", 0.5), ("oracle", 0.9)) for cells in SETS}
    (row,) = generalization(policies, success, references=["oracle"])
    assert row["interpolation"] == 0.5


def test_each_algorithm_has_its_own_scores_and_missing_runs_leave_gaps() -> None:
    policies = [
        {"name": "d", "algorithm": "a2c", "trained_on": "none"},
        {"name": "r", "algorithm": "reinforce", "trained_on": "random"},
    ]
    success = {(name, cells): 0.5 for name in ("d", "r") for cells in SETS}
    one, other = generalization(policies, success)
    assert (one["default"], one["interpolation"], one["extrapolation"]) == (0.5, None, None)
    assert (other["default"], other["interpolation"], other["extrapolation"]) == (None, 0.5, None)


def test_a_policy_that_never_succeeds_elsewhere_extrapolates_to_zero() -> None:
    policies = [{"name": n, "algorithm": "a2c", "trained_on": t} for n, t in (("d", "none"), ("r", "random"))]
    success = {(name, cells): 0.0 if cells == "extreme" else 1.0 for name in ("d", "r") for cells in SETS}
    assert generalization(policies, success)[0]["extrapolation"] == 0.0
