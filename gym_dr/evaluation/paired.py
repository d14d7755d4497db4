"""Statistics over seeds, since a finding should hold for policies trained with other seeds.

Variants of a study share their seeds and evaluation episodes, so they are compared by the differences between runs with
the same seed. With only a handful of seeds, Student's t intervals are used, since percentile bootstrap intervals are
too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gym_dr.arrays import Array
from gym_dr.evaluation.statistics import CONFIDENCE, Interval

_SAME = 1e-12  # relative spread below which values count as equal


def mean_over_seeds(values: Array) -> tuple[Interval, float | None]:
    """The mean over seeds, with Student's t interval and test.

    Args:
        values: One number or difference per seed, shape ``(seeds,)``, at least one.

    Returns:
        The mean with its 95 % interval, and the two-sided p-value of the hypothesis that the mean is 0. A single seed,
        or equal values, have neither, since their spread is unknown.
    """
    found: Interval = {"value": float(values.mean()), "low": None, "high": None}
    if len(values) < 2 or np.ptp(values) <= _SAME * np.abs(values).max():
        return found, None
    from scipy import stats  # heavy

    test = stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(CONFIDENCE)
    return {**found, "low": float(interval.low), "high": float(interval.high)}, float(test.pvalue)


def ratio_over_seeds(numerators: Array, denominators: Array) -> Interval:
    """The ratio of two sums over seeds, with Fieller's interval (1954, "Some problems in interval estimation").

    A sum of ratios would be dominated by any seed whose denominator is near 0. The interval holds every ratio r for
    which Student's t interval of the seeds' ``numerators - r * denominators`` includes 0, so it is paired, and it is
    finite if and only if the t interval of the denominators' mean excludes 0. A percentile bootstrap over seeds would
    be too narrow: in simulations of normal returns with a clear gap, it covered the true ratio in 74, 83 and 90 % of
    studies of 3, 5 and 10 seeds, and this interval in 95 %.

    Args:
        numerators: One number per seed, shape ``(seeds,)``, at least one.
        denominators: As many, of the same seeds in the same order, with a sum other than 0.

    Returns:
        The ratio with its 95 % interval. There is no interval if the denominators' mean may be 0, or if the spread is
        unknown: for a single seed, or if the ratio is the same for all seeds.
    """
    seeds, ratio = len(numerators), float(numerators.sum() / denominators.sum())
    found: Interval = {"value": ratio, "low": None, "high": None}
    residuals = numerators - ratio * denominators
    if seeds < 2 or np.ptp(residuals) <= _SAME * np.abs(numerators).max():
        return found
    from scipy import stats  # heavy

    # (mean of numerators - r * mean of denominators)^2 = t^2 var(numerators - r * denominators) / seeds, solved for r
    width = stats.t.ppf(0.5 + CONFIDENCE / 2, seeds - 1) ** 2 / seeds
    (var_n, cov), (_, var_d) = width * np.cov(numerators, denominators)
    mean_n, mean_d = float(numerators.mean()), float(denominators.mean())
    square, middle = mean_d**2 - var_d, mean_n * mean_d - cov
    if square <= 0.0:
        return found
    half = math.sqrt(max(middle**2 - square * (mean_n**2 - var_n), 0.0))
    return {**found, "low": float((middle - half) / square), "high": float((middle + half) / square)}


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979, "A simple sequentially rejective multiple test procedure").

    If comparisons with a corrected p-value below 5 % are called significant, the probability of any false positive is
    below 5 %, even if the comparisons depend on each other.

    Args:
        p_values: P-values of a family of comparisons; None where there was no test.

    Returns:
        The corrected p-values, in the same order.
    """
    corrected: list[float | None] = [None] * len(p_values)
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    lowest = 0.0
    for rank, (p, index) in enumerate(tested):
        lowest = max(lowest, min(1.0, p * (len(tested) - rank)))
        corrected[index] = lowest
    return corrected
