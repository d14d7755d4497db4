"""Statistics of policies' episodes, with 95 % intervals of means and of success rates.

An interval is over independent units, by Student's t for a mean and Wilson's (1927) for a rate. The cells of a grid are
chosen, so units are the episodes within each cell. The draws of a distribution are a sample: units are its episodes.
Of a Sobol set they are its independent sequences, each with all of its cells, or the points of a single sequence, which
is more even than independent points, so that intervals are too wide rather than too narrow. All policies play the same
episodes, so differences between them are paired: how hard an episode is for every policy cancels out.

A finding should also hold for policies trained with other seeds. Variants of a study share their seeds, so they are
compared by the differences between runs with the same seed.

Simulations of all intervals are in ``tests/evaluation/test_coverage.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.envs.family import UNLIMITED
from gym_dr.evaluation.sets import CellSet

CONFIDENCE = 0.95

_LEVEL = 0.5 + CONFIDENCE / 2
_SAME = 1e-12  # relative spread below which values count as equal

Interval = dict[str, Any]  # value, low and high; None where unknown

# intervals do not cover training: the policies are given
ONE_TRAINING = "Intervals over episodes say nothing about another training run: for that, compare several seeds."
# why several seeds give no interval: all values are equal, or no two runs that could differ share a seed
NO_SPREAD = "seeds do not show how much this varies, so there is no interval"


def statistic_names(success: float | None) -> list[str]:
    """Names of the statistics from ``policy_statistics``, in its order."""
    names = ["mean", "median", "iqm", "std", "cvar_10", "cvar_25"]
    return names if success is None else [*names, "success_rate"]


def point_statistics(returns: Array, success: float | None) -> Array:
    """Statistics of episodes.

    The interquartile mean is the mean of the middle half (Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge
    of the Statistical Precipice"); CVaR at 10 % is the mean of the worst tenth, rounded up to whole episodes
    (Rockafellar and Uryasev 2000, "Optimization of conditional value-at-risk"). The standard deviation is the sample's
    (n - 1), NaN for one episode.

    Args:
        returns: Shape ``(..., episodes)``.
        success: Return from which an episode counts as solved; None leaves the success rate out.

    Returns:
        Shape ``(statistics, ...)``, in the order of ``statistic_names``.
    """
    ordered = np.sort(returns, axis=-1)
    n = ordered.shape[-1]
    cut = n // 4
    rows = [
        ordered.mean(-1),
        0.5 * (ordered[..., (n - 1) // 2] + ordered[..., n // 2]),
        ordered[..., cut : n - cut].mean(-1),
        ordered.std(-1, ddof=1) if n > 1 else np.full(ordered.shape[:-1], math.nan),
        ordered[..., : math.ceil(n * 0.1)].mean(-1),
        ordered[..., : math.ceil(n * 0.25)].mean(-1),
    ]
    if success is not None:
        rows.append((ordered >= success).mean(-1))
    return np.stack(rows)


def policy_statistics(
    returns: Array, cells: CellSet, success: float | None, within: tuple[float, float] = UNLIMITED
) -> list[dict[str, Interval]]:
    """Statistics of each policy on one set; the mean and the success rate have 95 % intervals.

    Intervals of medians and of means of a part are left out: where episodes either crash or land, they would cover far
    less than 95 % even with 100 episodes.

    Args:
        returns: Shape ``(policies, cells.num_episodes)``.
        cells: The set.
        success: Return from which an episode counts as solved; None for no success rate.
        within: The lowest and highest possible return.

    Returns:
        For each policy: statistic -> value, low, high. One episode, or one in each cell of a grid, has no interval.
    """
    values = point_statistics(returns, success)
    ends = np.full((2, *values.shape), math.nan)
    ends[:, 0] = np.clip(mean_ends(in_units(returns, cells)), *within)
    if success is not None:
        ends[:, -1] = rate_ends(
            in_units(returns >= success, cells), cells.num_cells if cells.points else cells.num_episodes
        )
    names = statistic_names(success)
    return [dict(zip(names, as_intervals(values[:, k], *ends[:, :, k]), strict=True)) for k in range(values.shape[1])]


def means_with_intervals(
    values: Array, cells: CellSet, within: tuple[float, float] = UNLIMITED, *, inflation: float = 1.0
) -> list[Interval]:
    """Means over a set's episodes, with 95 % intervals as in ``policy_statistics``.

    Args:
        values: Numbers of each episode, shape ``(rows, cells.num_episodes)``.
        cells: The set.
        within: The lowest and highest possible mean.
        inflation: By how much the variances of means are larger than those of independent units.

    Returns:
        One mean for each row.
    """
    means = values.mean(-1)
    ends = means + math.sqrt(inflation) * (mean_ends(in_units(values, cells)) - means)
    return as_intervals(means, *np.clip(ends, *within))


def in_units(values: npt.NDArray[Any], cells: CellSet) -> Array:
    """Means over the episodes of each independent unit of a set.

    Args:
        values: Numbers of each episode, shape ``(..., cells.num_episodes)``.
        cells: The set.

    Returns:
        Shape ``(..., strata, units)``: the units of each cell of a grid, or of the whole set.
    """
    if not cells.points:
        return values.reshape(*values.shape[:-1], cells.num_cells, cells.episodes)
    units = _sequences(cells)
    blocks = (cells.num_cells // cells.points, units, cells.points // units * cells.episodes)
    return np.asarray(values.reshape(*values.shape[:-1], *blocks).mean((-3, -1))[..., None, :])


def unit_of_episodes(cells: CellSet) -> Indices:
    """The number of each episode's independent unit, shape ``(cells.num_episodes,)``."""
    episodes = np.arange(cells.num_episodes)
    if not cells.points:
        return episodes
    return episodes // cells.episodes % cells.points * _sequences(cells) // cells.points


def _sequences(cells: CellSet) -> int:
    """Independent sequences of a Sobol set; its points if they are from a single one."""
    return int(cells.definition.get("sequences", cells.points))


def mean_ends(units: Array) -> Array:
    """Ends of Student's t intervals of the mean over strata.

    Strata may have different variances: degrees of freedom are those of Satterthwaite (1946, "An approximate
    distribution of estimates of variance components").

    Args:
        units: Independent numbers, shape ``(..., strata, units)``.

    Returns:
        Shape ``(2, ...)``; NaN for a single unit, and if numbers do not vary within strata.
    """
    from scipy import special  # heavy

    strata, count = units.shape[-2:]
    if count < 2:
        return np.full((2, *units.shape[:-2]), math.nan)
    means, own = units.mean((-2, -1)), units.var(-1, ddof=1) / count / strata**2
    total = own.sum(-1)
    total = np.where(total > (_SAME * np.abs(units).max((-2, -1))) ** 2, total, math.nan)
    freedom = (count - 1) * total**2 / (own**2).sum(-1)
    half = special.stdtrit(freedom, _LEVEL) * np.sqrt(total)
    return np.stack([means - half, means + half])


def rate_ends(units: Array, count: int) -> Array:
    """Ends of Wilson's intervals of rates, stratified: variances are those within strata.

    One more success anywhere raises both ends.

    Args:
        units: Whether each independent episode is a success, or rates of independent units, ``(..., strata, units)``.
        count: Different conditions behind all units: the episodes, or the cells of a Sobol set.

    Returns:
        Shape ``(2, ...)``, within 0 and 1; NaN for a single unit.
    """
    from scipy import special  # heavy

    if units.shape[-1] < 2:
        return np.full((2, *units.shape[:-2]), math.nan)
    total = math.prod(units.shape[-2:])
    quantile = special.ndtri(_LEVEL) if total == count else special.stdtrit(total - 1, _LEVEL)
    rates, shift = units.mean((-2, -1)), quantile**2 / count
    variance = units.var(-1, ddof=1).mean(-1) * (total - 1) / total**2  # of one stratum: exactly Wilson's
    middle, half = rates + shift / 2, np.sqrt(count * shift * variance + shift**2 / 4)
    return np.asarray(np.clip(np.stack([middle - half, middle + half]) / (1.0 + shift), 0.0, 1.0))


def as_intervals(values: Array, low: Array, high: Array) -> list[Interval]:
    """Numbers and the ends of their intervals, shape ``(n,)`` each, with None in place of NaN."""
    rows = np.stack([values, low, high], axis=-1).tolist()
    return [
        dict(zip(("value", "low", "high"), [None if math.isnan(x) else x for x in row], strict=True)) for row in rows
    ]


# ---- over seeds ------------------------------------------------------------------------------------------------------


def mean_over_seeds(values: Array, within: tuple[float, float] = UNLIMITED) -> tuple[Interval, float | None]:
    """The mean over seeds, with Student's t interval and test.

    Args:
        values: One number or difference per seed, shape ``(seeds,)``, at least one.
        within: The lowest and highest possible mean, such as 0 and 1 of a share, where the interval ends.

    Returns:
        The mean with its 95 % interval, and the two-sided p-value of the hypothesis that the mean is 0. With a single
        seed or equal values there are neither, since the spread is unknown.
    """
    from scipy import stats  # heavy

    (found,) = as_intervals(values.mean(keepdims=True), *mean_ends(values[None, None]).clip(*within))
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
