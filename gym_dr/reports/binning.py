"""Sorts episodes into bins along one parameter, or over two."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array, Indices

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
    error: Array  # standard error of the mean; NaN for a single episode
    count: Indices  # episodes


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
    if len(distinct) <= min(
        MAX_VALUES, max(NUM_BINS, len(values) // 2)
    ):  # edges halfway between neighbors; outer bins are symmetric
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


def bin_statistics(returns: Array, x: Bins, y: Bins | None = None) -> BinStatistics:
    """Sorts episodes into the bins of one or two parameters.

    Args:
        returns: Shape ``(runs, episodes)``: the same episodes played by several runs, or their differences.
        x: Bins of the first parameter.
        y: Bins of the second parameter, from ``tile_bins``; None for only one.
    """
    import pandas as pd  # heavy

    shape = (len(x.centers),) if y is None else (len(y.centers), len(x.centers))
    flat = x.index if y is None else np.where(y.index < 0, -1, y.index * len(x.centers) + x.index)
    bins = pd.Series(returns.ravel()).groupby(np.broadcast_to(flat, returns.shape).ravel())
    table = bins.agg(mean="mean", error="sem", count="size").reindex(range(math.prod(shape)))
    table["count"] = table["count"].fillna(0).astype(int)
    return BinStatistics(**{str(name): column.to_numpy().reshape(shape) for name, column in table.items()})
