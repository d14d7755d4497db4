"""Sorts episodes into bins along one parameter, or over two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.envs.family import UNLIMITED
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import mean_ends, unit_of_episodes

MAX_VALUES = 25  # a parameter with more values than this is divided into ranges
NUM_BINS = 8  # largest number of ranges
PER_TILE = 4  # episodes of a range over two parameters, at least, on average


@dataclass(frozen=True, kw_only=True)
class Bins:
    """The bins of one parameter."""

    centers: Array  # (bins,), ascending; the mean of a bin's values
    edges: Array  # (bins + 1,)
    index: Indices  # (episodes,), the bin of each episode; -1 for none


@dataclass(frozen=True, kw_only=True)
class BinStatistics:
    """Statistics of the episodes in each bin, shape ``(x bins,)`` or ``(y bins, x bins)``; NaN for an empty bin."""

    mean: Array
    low: Array  # ends of the mean's 95 % interval; NaN without one
    high: Array
    count: Indices  # episodes

    @property
    def intervals(self) -> npt.NDArray[Any]:
        """The intervals as text, which says where there is none."""
        return np.array(
            [
                "no interval" if math.isnan(low) else f"95 % interval {low:.1f} to {high:.1f}"
                for low, high in zip(self.low.flat, self.high.flat, strict=True)
            ]
        ).reshape(self.low.shape)


def evenly_spaced(length: int, count: int) -> Indices:
    """At most ``count`` evenly spaced indices into a sequence of ``length``, including the first and the last."""
    return np.unique(np.linspace(0, length - 1, min(count, length)).round().astype(np.int64))


def make_bins(values: Array, most: int = NUM_BINS) -> Bins:
    """Makes one bin for each value if there are few, else ranges with about the same number of episodes.

    Ranges of equal width would be almost empty in the tails of a distribution.

    Args:
        values: One parameter's value in each episode, shape ``(episodes,)``; NaN where it belongs to no bin.
        most: Largest number of ranges.
    """
    known, index = ~np.isnan(values), np.full(len(values), -1)
    values = values[known]
    distinct, index[known] = np.unique(values, return_inverse=True)
    if len(distinct) <= min(MAX_VALUES, max(NUM_BINS, len(values) // 2)):
        # edges halfway between neighbors; outer bins are symmetric
        step = np.diff(distinct) if len(distinct) > 1 else np.ones(1)
        outer = distinct[0] - step[0] / 2, distinct[-1] + step[-1] / 2
        edges = np.concatenate([outer[:1], (distinct[:-1] + distinct[1:]) / 2, outer[1:]])
        return Bins(centers=distinct, edges=edges, index=index)
    ends = np.quantile(values, np.linspace(0, 1, most + 1), method="nearest")  # values: no empty range
    edges = np.unique(ends)  # fewer if one value is frequent
    index[known] = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    centers = np.bincount(index[known], values) / np.bincount(index[known])
    return Bins(centers=centers, edges=edges, index=index)


def tile_bins(x: Array, y: Array) -> tuple[Bins, Bins]:
    """The bins of two parameters whose tiles all have some episodes, on average; NaN is for neither."""
    known = ~(np.isnan(x) | np.isnan(y))
    most = min(NUM_BINS, max(2, math.isqrt(int(known.sum()) // PER_TILE)))
    first, second = (make_bins(np.where(known, values, np.nan), most) for values in (x, y))
    return first, second


def bin_statistics(
    returns: Array,
    cells: CellSet | None,
    x: Bins,
    y: Bins | None = None,
    within: tuple[float, float] = UNLIMITED,
) -> BinStatistics:
    """Sorts episodes into the bins of one or two parameters.

    Intervals are over runs if there are several, else over the independent units of the set's episodes.

    Args:
        returns: Shape ``(runs, episodes)``: the same episodes played by several runs, or their differences.
        cells: The set; None for no intervals of a single run.
        x: Bins of the first parameter.
        y: Bins of the second parameter, from ``tile_bins``; None for only one.
        within: The lowest and highest possible mean.
    """
    shape = (len(x.centers),) if y is None else (len(y.centers), len(x.centers))
    index = x.index if y is None else np.where(y.index < 0, -1, y.index * len(x.centers) + x.index)
    found = np.full((4, math.prod(shape)), np.nan)
    found[3] = 0
    for each in np.unique(index[index >= 0]):
        episodes = np.flatnonzero(index == each)
        own = returns[:, episodes]
        if len(returns) > 1 or cells is None:
            units = own.mean(-1)[None]
        elif cells.kind == "grid":  # a bin has whole cells
            units = own.reshape(-1, cells.episodes)
        else:  # a mean over units of different sizes varies as their sums of residuals do (linearization)
            unit = np.unique(unit_of_episodes(cells)[episodes], return_inverse=True)[1]
            sums = np.bincount(unit, own[0] - own.mean())
            units = own.mean() + sums[None] * len(sums) / len(episodes)
        found[:, each] = own.mean(), *np.clip(mean_ends(units), *within), own.size
    mean, low, high, count = (row.reshape(shape) for row in found)
    return BinStatistics(mean=mean, low=low, high=high, count=count.astype(np.int64))
