"""Statistics over seeds: a policy that is trained again has another seed, so seeds are what a finding must hold for.

Variants of a study have the same seeds and meet the same episodes, so they are compared by the differences of runs with
the same seed. For the handful of seeds that one can afford, Student's t intervals are honest where percentile
bootstraps are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gym_dr.evaluation.statistics import CONFIDENCE, Interval

Array = npt.NDArray[np.float64]

_SAME = 1e-12  # spread, relative to the values, below which they count as equal


def mean_over_seeds(values: Array) -> tuple[Interval, float | None]:
    """The mean of one number a seed, or of one difference a seed, with Student's t interval and test.

    Args:
        values: Shape ``(seeds,)``, at least one.

    Returns:
        The mean with its 95 % interval, and the p value of a mean of 0 (two-sided); no interval and no p value for a
        single seed or for equal values, which say nothing about their spread.
    """
    found: Interval = {"value": float(values.mean()), "low": None, "high": None}
    if len(values) < 2 or np.ptp(values) <= _SAME * np.abs(values).max():
        return found, None
    from scipy import stats  # heavy

    test = stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(CONFIDENCE)
    return {**found, "low": float(interval.low), "high": float(interval.high)}, float(test.pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979, "A simple sequentially rejective multiple test procedure").

    If all comparisons whose corrected value is below 5 % are believed, the chance that even one of them is false is
    below 5 %, whether or not they depend on each other.

    Args:
        p_values: Of a family of comparisons; None where there was no test.

    Returns:
        The corrected values, in the same order.
    """
    corrected: list[float | None] = [None] * len(p_values)
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    lowest = 0.0
    for rank, (p, index) in enumerate(tested):
        lowest = max(lowest, min(1.0, p * (len(tested) - rank)))
        corrected[index] = lowest
    return corrected
