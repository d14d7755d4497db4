"""Sorts episodes into bins along one parameter, or over two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MAX_VALUES = 25  # a parameter with more values than this is cut into ranges
NUM_BINS = 8


@dataclass(frozen=True, kw_only=True)
class Bins:
    """The bins of one parameter."""

    centres: Array  # (bins,), ascending
    edges: Array  # (bins + 1,)
    index: npt.NDArray[np.int64]  # (episodes,), the bin of each episode


@dataclass(frozen=True, kw_only=True)
class BinStatistics:
    """Statistics of the episodes in each bin, shape ``(x bins,)`` or ``(y bins, x bins)``; NaN for an empty bin."""

    mean: Array
    worst: Array  # lowest return of an episode
    error: Array  # standard error of the mean; NaN for a single episode
    count: npt.NDArray[np.int64]  # episodes


def evenly_spaced(length: int, count: int) -> npt.NDArray[np.int64]:
    """At most ``count`` indices into something of a length, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(count, length)).round().astype(np.int64))


def make_bins(values: Array) -> Bins:
    """One bin for each value where there are few, otherwise ranges of equal width.

    Args:
        values: Of one parameter, shape ``(episodes,)``.
    """
    distinct, index = np.unique(values, return_inverse=True)
    if len(distinct) <= MAX_VALUES:
        return Bins(centres=distinct, edges=_edges(distinct), index=index.astype(np.int64))
    edges = np.linspace(distinct[0], distinct[-1], NUM_BINS + 1)
    index = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, NUM_BINS - 1)
    return Bins(centres=(edges[:-1] + edges[1:]) / 2, edges=edges, index=index.astype(np.int64))


def bin_statistics(returns: Array, x: Bins, y: Bins | None = None) -> BinStatistics:
    """Sorts episodes into the bins of one or two parameters.

    Args:
        returns: Shape ``(runs, episodes)``: the same episodes played by several runs, or their differences.
        x: Bins of the first parameter.
        y: Bins of the second; None for the first alone.
    """
    shape = (len(x.centres),) if y is None else (len(y.centres), len(x.centres))
    flat = x.index if y is None else y.index * len(x.centres) + x.index
    flat, values, size = np.broadcast_to(flat, returns.shape).ravel(), returns.ravel(), int(np.prod(shape))
    count = np.bincount(flat, minlength=size)
    worst = np.full(size, np.inf)
    np.minimum.at(worst, flat, values)
    with np.errstate(invalid="ignore", divide="ignore"):  # empty bins
        mean = np.bincount(flat, values, size) / count
        squares = np.bincount(flat, (values - mean[flat]) ** 2, size)
        error = np.sqrt(squares / (count - 1) / count)
    return BinStatistics(
        mean=mean.reshape(shape),
        worst=np.where(count > 0, worst, np.nan).reshape(shape),
        error=np.where(count > 1, error, np.nan).reshape(shape),
        count=count.reshape(shape),
    )


def _edges(centres: Array) -> Array:
    """Half way between neighbours; the outer ones as far out as in."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = (centres[:-1] + centres[1:]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])
