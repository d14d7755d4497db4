"""The estimator behind the results of the study of factors, on runs whose values are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from benchmarks.factor_effects import (
    RESIDUAL,
    SEED_BLOCKS,
    blocks_of,
    contrast_over_seeds,
    effect_contrasts,
    shares_of_variance,
)
from gym_dr.arrays import Array
from gym_dr.studies.contrasts import Design

A, B, C = ({f"{name}{level}": {} for level in range(count)} for name, count in (("a", 3), ("b", 2), ("c", 2)))
GRID = Design(factors={"a": A, "b": B}, crossed=(("a", "b"),))
STAR = Design(factors={"a": A, "b": B, "c": C}, crossed=(("a", "b"),))
A1, A2, B1, C1 = ("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1")


def effects(design: Design, runs: Mapping[str, Mapping[int, float]]) -> dict[tuple[tuple[str, str], ...], float | None]:
    """The estimates; None for those that the runs do not determine."""
    blocks, values = blocks_of(list(design.combinations), runs)
    found = {key: contrast_over_seeds(blocks, values, row) for key, row in effect_contrasts(design).items()}
    return {key: None if one is None else one[0]["value"] for key, one in found.items()}


def means(design: Design, plus: Mapping[tuple[tuple[str, str], ...], float]) -> dict[str, float]:
    """The mean of each combination: 100, and what is added for each of its levels and pairs of levels."""
    return {
        name: 100.0 + sum(value for key, value in plus.items() if all(one in own.items() for one in key))
        for name, own in design.combinations.items()
    }


def with_seeds(of: Mapping[str, float], seeds: Sequence[float]) -> dict[str, dict[int, float]]:
    return {name: {seed: mean + plus for seed, plus in enumerate(seeds)} for name, mean in of.items()}


KNOWN = {(A1,): 10.0, (A2,): 20.0, (B1,): -6.0, (C1,): 3.0, (A2, B1): 12.0}


def test_known_effects_are_found_averaged_over_crossed_levels() -> None:
    found = effects(STAR, with_seeds(means(STAR, KNOWN), [0.0, 5.0, -3.0]))
    expected = {
        (A1,): 10.0,
        (A2,): 20.0 + 12.0 / 2,  # half of the levels of b have the interaction
        (B1,): -6.0 + 12.0 / 3,
        (C1,): 3.0,
        (A1, B1): 0.0,
        (A2, B1): 12.0,
    }
    assert found == pytest.approx(expected)


def test_seeds_that_some_combinations_lack_do_not_bias_effects() -> None:
    """The seeds differ by 50 and more, and are the same for all combinations."""
    runs = with_seeds(means(STAR, KNOWN), [0.0, 50.0, -80.0, 10.0])
    for lost in ("a1", "a2+b1"):
        del runs[lost][1], runs[lost][3]
    del runs["c1"][0]
    full = effects(STAR, with_seeds(means(STAR, KNOWN), [0.0]))
    assert effects(STAR, runs) == pytest.approx(full)


def noisy(design: Design, seeds: int, seed: int, spreads: Sequence[float]) -> tuple[Array, dict[str, dict[int, float]]]:
    """Values of shape (combinations, seeds), and as runs."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(len(design.combinations), seeds)) * np.array(spreads)[:, None]
    rows = zip(design.combinations, table.tolist(), strict=True)
    return table, {name: dict(enumerate(row)) for name, row in rows}


def test_shares_of_a_balanced_design_are_omega_squared() -> None:
    """By hand: sums of squares of two factors, their interaction and blocks of seeds (Hays 1963)."""
    table, _ = noisy(GRID, 4, 3, [1.0] * 6)
    cells = np.array([[0.0, 3.0], [4.0, 5.0], [9.0, 2.0]])  # (a, b)
    order = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]  # of the combinations
    assert list(GRID.combinations) == ["baseline", "a1", "a2", "b1", "a1+b1", "a2+b1"]
    table = table + np.array([cells[place] for place in order])[:, None] + np.array([2.0, -1.0, 0.0, 4.0])
    y = np.empty((3, 2, 4))
    for place, row in zip(order, table, strict=True):
        y[place] = row
    grand = y.mean()
    a, b, seeds = (y.mean(axis=axes) - grand for axes in ((1, 2), (0, 2), (0, 1)))
    both = y.mean(axis=2) - grand - a[:, None] - b
    squares = {
        ("a",): 8 * a @ a,
        ("b",): 12 * b @ b,
        ("a", "b"): 4 * np.sum(both**2),
        (SEED_BLOCKS,): 6 * seeds @ seeds,
    }
    total = np.sum((y - grand) ** 2)
    mean_square = (total - sum(squares.values())) / (23 - 2 - 1 - 2 - 3)
    freedom = {("a",): 2, ("b",): 1, ("a", "b"): 2, (SEED_BLOCKS,): 3}
    omega = {term: (squares[term] - freedom[term] * mean_square) / (total + mean_square) for term in squares}
    assert min(omega.values()) > 0.0  # negative ones would count as 0
    runs = {name: dict(enumerate(row)) for name, row in zip(GRID.combinations, table.tolist(), strict=True)}
    found = shares_of_variance(GRID, *blocks_of(list(GRID.combinations), runs))
    assert found == pytest.approx({**omega, (RESIDUAL,): 1 - sum(omega.values())})


@pytest.mark.parametrize(
    ("few", "repetitions"),
    [
        pytest.param(False, 1000, marks=pytest.mark.slow),
        pytest.param(True, 1000, marks=pytest.mark.slow),
        (True, 150),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(few: bool, repetitions: int) -> None:
    """Spreads differ by a factor of ten, seeds shift all combinations, and two combinations may have half the seeds."""
    rng, seeds, error = np.random.default_rng(5), 8, math.sqrt(0.95 * 0.05 / repetitions)
    names = list(STAR.combinations)
    truth = np.array(list(means(STAR, KNOWN).values()))
    counts = {name: 4 if few and name.startswith("a2") else seeds for name in names}
    places = [(i, s) for i, name in enumerate(names) for s in range(counts[name])]
    runs = {name: dict.fromkeys(range(counts[name]), 0.0) for name in names}
    blocks, _ = blocks_of(names, runs)
    combination, seed = np.array(places).T
    spreads = np.array([1.0, 10.0, 2.0, 5.0, 1.0, 3.0, 8.0])
    contrasts = effect_contrasts(STAR)
    hits = dict.fromkeys(contrasts, 0)
    for _ in range(repetitions):
        noise = rng.normal(size=len(places)) * spreads[combination] + rng.normal(size=seeds)[seed] * 4
        values = truth[combination] + noise
        for key, contrast in contrasts.items():
            found, _ = contrast_over_seeds(blocks, values, contrast) or pytest.fail("unknown")
            low, high = found["low"], found["high"]
            assert low is not None
            assert high is not None
            hits[key] += low <= contrast @ truth <= high
    assert 0.95 - 3.6 * error < min(hits.values()) / repetitions
    assert max(hits.values()) / repetitions < 0.95 + 5.8 * error
