"""Statistics over seeds: a finding should hold for policies trained with other seeds.

Variants of a study share their seeds and evaluation episodes, so they are compared by the differences between runs with
the same seed. Intervals are Student's t.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.family import UNLIMITED
from gym_dr.evaluation.statistics import Interval, as_intervals, mean_ends


def mean_over_seeds(values: Array, within: tuple[float, float] = UNLIMITED) -> tuple[Interval, float | None]:
    """The mean over seeds, with Student's t interval and test.

    Args:
        values: One number or difference per seed, shape ``(seeds,)``, at least one.
        within: The lowest and highest possible mean, such as 0 and 1 of a share; the interval ends there, or
            at the mean if an estimate lies beyond.

    Returns:
        The mean with its 95 % interval, and the two-sided p-value of the hypothesis that the mean is 0. With a single
        seed or equal values there are neither, since the spread is unknown.
    """
    from scipy import stats  # heavy

    mean = values.mean(keepdims=True)
    low, high = min(within[0], mean[0]), max(within[1], mean[0])
    (found,) = as_intervals(mean, *mean_ends(values[None, None]).clip(low, high))
    return found, None if found["low"] is None else float(stats.ttest_1samp(values, 0.0).pvalue)


def holm(p_values: npt.ArrayLike) -> Array:
    """Holm's step-down correction (1979, "A simple sequentially rejective multiple test procedure").

    If comparisons with a corrected p-value below 5 % are called significant, the probability of any false positive is
    below 5 %, even if the comparisons depend on each other.

    Args:
        p_values: P-values of a family of comparisons, shape ``(n,)``.

    Returns:
        The corrected p-values, in the same order, shape ``(n,)``.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(np.minimum(p[order] * np.arange(len(p), 0, -1), 1.0))
    return corrected
