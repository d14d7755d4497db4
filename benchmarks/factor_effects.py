"""Effects of factors and shares of variance, from one number per run.

A run belongs to a combination of levels and to a seed. The model is linear: a mean for each combination, plus a block
for each seed, which all combinations share. Interactions of factors that are not crossed are taken to be absent.

What is stated of levels is a contrast: a sum of the combinations' means with weights that add up to 0. Its estimate is
that of least squares, and its interval comes from how it varies between seeds: the cluster-robust variance CR2 of Bell
and McCaffrey (2002, "Bias reduction in standard errors for linear regression with multi-stage samples"), with seeds as
clusters and their degrees of freedom. It does not assume equal variances, since returns of some levels vary more than
those of others. If all combinations have the same seeds, it is Student's t interval of the contrast's values over
seeds, and so that of a paired comparison.

A main effect is the mean over the pairs of combinations that differ in it alone. If a factor is crossed with two
others, it is no mean over all levels of both, since combinations of those two are not trained.

Shares of variance are those if all levels, and all combinations of two crossed factors, were equally frequent, so they
do not depend on how often the design trains each. That of a factor is the variance of its main effects. Each is an
unbiased estimate of a variance, or 0 if that is negative, divided by the sum of all. In a balanced design without
negative ones, this is omega squared (Hays 1963).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gym_dr.arrays import Array, Indices
from gym_dr.evaluation.statistics import CONFIDENCE, Interval
from gym_dr.studies.contrasts import Design

SEED_BLOCKS, RESIDUAL = "seed blocks", "residual variance"  # terms besides factors and pairs of factors
_NEGLIGIBLE = 1e-10  # relative to 1
_SAME = 1e-12  # relative spread below which values count as equal


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Which runs there are, and so the weights of all estimates."""

    combinations: Indices  # of each run: index of its combination
    seeds: Indices  # of each run: index of its seed
    num_combinations: int  # some may have no run

    @cached_property
    def matrix(self) -> Array:
        """The model, shape ``(runs, combinations + seeds)``: which combination and which seed a run has."""
        return np.hstack(
            [np.eye(self.num_combinations)[self.combinations], np.eye(int(self.seeds.max()) + 1)[self.seeds]]
        )

    @cached_property
    def inverse(self) -> Array:
        """From values of runs to coefficients of the model, those of least squares with the smallest norm."""
        return np.asarray(np.linalg.pinv(self.matrix, rcond=_NEGLIGIBLE), np.float64)

    @cached_property
    def leaves(self) -> Array:
        """From values of runs to residuals, shape ``(runs, runs)``."""
        left: Array = np.eye(len(self.seeds)) - self.matrix @ self.inverse
        return left

    @cached_property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return round(float(np.trace(self.leaves)))

    @cached_property
    def corrections(self) -> Array:
        """By what CR2 multiplies residuals: for each seed, the inverse root of how much of its noise residuals keep."""
        found = np.zeros_like(self.leaves)
        for seed in range(int(self.seeds.max()) + 1):
            own = np.ix_(*[np.flatnonzero(self.seeds == seed)] * 2)
            sizes, axes = np.linalg.eigh(self.leaves[own])
            kept = sizes > _NEGLIGIBLE
            found[own] = axes[:, kept] / np.sqrt(sizes[kept]) @ axes[:, kept].T
        return found

    def estimable(self, contrasts: Array) -> bool:
        """Whether the runs determine some contrasts of coefficients, shape ``(contrasts, combinations + seeds)``."""
        return bool(np.allclose(contrasts @ self.inverse @ self.matrix, contrasts, atol=1e-8))

    def padded(self, contrasts: Array) -> Array:
        """Contrasts of combinations as contrasts of all coefficients, with 0 for the seeds."""
        return np.hstack([contrasts, np.zeros((len(contrasts), self.matrix.shape[1] - self.num_combinations))])


def contrast_over_seeds(blocks: Blocks, values: Array, contrast: Array) -> tuple[Interval, float | None] | None:
    """A contrast of combinations with its 95 % interval.

    Args:
        blocks: The runs.
        values: Their values, shape ``(runs,)``.
        contrast: A weight for each combination, shape ``(combinations,)``; they add up to 0.

    Returns:
        The estimate with its interval, and the two-sided p-value of the hypothesis that the contrast is 0. There is
        neither if a combination has a single run, or if differences are equal in all seeds, since their spread is
        unknown. None if the runs do not determine the contrast.
    """
    row = blocks.padded(contrast[None, :])
    if not blocks.estimable(row):
        return None
    weights = (row @ blocks.inverse)[0]
    found: Interval = {"value": float(weights @ values), "low": None, "high": None}
    # what the residuals of each seed contribute to the estimate, corrected
    by_seed = (blocks.corrections @ weights)[:, None] * np.eye(int(blocks.seeds.max()) + 1)[blocks.seeds]
    variance = float(np.sum((blocks.leaves @ values @ by_seed) ** 2))
    spread = by_seed.T @ blocks.leaves @ by_seed  # covariances of the contributions, for equal variances of runs
    unseen = np.trace(spread) < (1 - 1e-6) * weights @ weights  # the noise of some runs leaves no residual
    if unseen or variance <= (_SAME * np.abs(weights) @ np.abs(values)) ** 2:
        return found, None
    from scipy import stats  # heavy

    freedom = float(np.trace(spread) ** 2 / (spread**2).sum())
    error = math.sqrt(variance)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * error
    p = 2 * float(stats.t.sf(abs(found["value"] or 0.0) / error, freedom))
    return {**found, "low": float(weights @ values) - half, "high": float(weights @ values) + half}, p


def effect_contrasts(design: Design) -> dict[tuple[tuple[str, str], ...], Array]:
    """The contrast of each effect.

    Returns:
        (factor, level), once for a main effect and twice for an interaction -> weights of ``design.combinations``. A
        main effect is a level's difference from the baseline's level, averaged over all pairs of combinations that
        differ in it alone. An interaction is how much more one level's difference is at a level of the
        other factor than at the baseline's.
    """
    places = {name: index for index, name in enumerate(design.combinations)}
    identity: Array = np.eye(len(places))

    def of(*levels: tuple[str, str]) -> Array:
        row: Array = identity[places[design.name_of(dict(levels))]]
        return row

    found: dict[tuple[tuple[str, str], ...], Array] = {}
    for factor, levels in design.levels.items():
        for level in levels[1:]:
            pairs = design.pairs(factor, level)
            both = [identity[places[other]] - identity[places[one]] for one, other in pairs]
            found[((factor, level),)] = np.mean(both, axis=0)
    for first, second in design.crossed:
        for a in ((first, level) for level in design.levels[first][1:]):
            for b in ((second, level) for level in design.levels[second][1:]):
                found[a, b] = of(a, b) - of(a) - of(b) + of()
    return found


def shares_of_variance(design: Design, blocks: Blocks, values: Array) -> dict[tuple[str, ...], float] | None:
    """How much of the variance of runs each factor explains, see the top of this file.

    Args:
        design: The factors.
        blocks: The runs.
        values: Their values, shape ``(runs,)``.

    Returns:
        A factor, two crossed factors, ``SEED_BLOCKS`` or ``RESIDUAL`` -> its share; they add up to 1. None if the runs
        do not determine all, or do not vary.
    """
    deviations = {term: blocks.padded(rows) for term, rows in _deviations(design).items()}
    num_seeds = blocks.matrix.shape[1] - blocks.num_combinations
    of_seeds = np.hstack([np.zeros((num_seeds, blocks.num_combinations)), _centered(num_seeds)])
    deviations[SEED_BLOCKS,] = of_seeds / math.sqrt(num_seeds)
    if not blocks.freedom or not all(blocks.estimable(rows) for rows in deviations.values()):
        return None
    noise = float(np.sum((blocks.leaves @ values) ** 2)) / blocks.freedom
    found = {}
    for term, rows in deviations.items():
        weights = rows @ blocks.inverse
        found[term] = max(float(np.sum((weights @ values) ** 2) - noise * np.sum(weights**2)), 0.0)
    found[RESIDUAL,] = noise
    total = sum(found.values())
    if total <= (_SAME * np.abs(values).max()) ** 2:
        return None
    return {term: variance / total for term, variance in found.items()}


def _deviations(design: Design) -> dict[tuple[str, ...], Array]:
    """Term -> contrasts whose sum of squares is its variance if all levels are equally frequent."""
    contrasts = effect_contrasts(design)
    zero = np.zeros(len(design.combinations))
    found: dict[tuple[str, ...], Array] = {}
    for factor, levels in design.levels.items():
        rows = np.stack([contrasts.get(((factor, level),), zero) for level in levels])
        found[factor,] = _centered(len(levels)) @ rows / math.sqrt(len(levels))
    for pair in design.crossed:
        first, second = ([(factor, level) for level in design.levels[factor]] for factor in pair)
        rows = np.stack([contrasts.get((a, b), zero) for a in first for b in second])
        both = np.kron(_centered(len(first)), _centered(len(second)))
        found[pair] = both @ rows / math.sqrt(len(rows))
    return found


def _centered(count: int) -> Array:
    """From values to their deviations from the mean."""
    return np.eye(count) - 1 / count


def blocks_of(variants: Sequence[str], by_variant: Mapping[str, Mapping[int, float]]) -> tuple[Blocks, Array]:
    """The runs of some variants, and their values.

    Args:
        variants: All of them, whether they have runs or not.
        by_variant: Variant -> seed -> value, at least one.
    """
    runs = [(index, seed, value) for index, v in enumerate(variants) for seed, value in by_variant.get(v, {}).items()]
    combinations, seeds, values = zip(*runs, strict=True)
    numbers = np.unique(seeds, return_inverse=True)[1]
    blocks = Blocks(combinations=np.array(combinations), seeds=numbers, num_combinations=len(variants))
    return blocks, np.array(values, dtype=np.float64)
