"""Episodes sorted into tiles over two parameters, or into bins over one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MOST_VALUES = 25  # a parameter with more values than this is cut into bins
BINS = 8


@dataclass(frozen=True, kw_only=True)
class Ticks:
    """Where the tiles of one parameter are."""

    centres: Array  # (tiles,), ascending
    edges: Array  # (tiles + 1,)
    tile: npt.NDArray[np.int64]  # (episodes,), which tile each episode is in


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Statistics of the episodes in each tile; NaN where there is none."""

    mean: Array  # (y, x)
    worst: Array  # (y, x), the lowest return of an episode
    error: Array  # (y, x), standard error of the mean; NaN for a single episode
    count: npt.NDArray[np.int64]  # (y, x), episodes


def ticks(values: Array) -> Ticks:
    """One tile for each value where there are few, else equally wide bins from the smallest to the largest.

    Args:
        values: Of one parameter, shape ``(episodes,)``.
    """
    distinct, index = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST_VALUES:
        return Ticks(centres=distinct, edges=_edges(distinct), tile=index.astype(np.int64))
    edges = np.linspace(distinct[0], distinct[-1], BINS + 1)
    tile = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BINS - 1)
    return Ticks(centres=(edges[:-1] + edges[1:]) / 2, edges=edges, tile=tile.astype(np.int64))


def tiles(x: Ticks, y: Ticks, returns: Array) -> Tiles:
    """Sorts episodes into tiles.

    Args:
        x: Tiles of the first parameter.
        y: Of the second.
        returns: Shape ``(runs, episodes)``: the same episodes played by several runs, or their differences.
    """
    shape = (len(y.centres), len(x.centres))
    flat = np.broadcast_to(y.tile * shape[1] + x.tile, returns.shape).ravel()
    values = returns.ravel()
    size = shape[0] * shape[1]
    count = np.bincount(flat, minlength=size)
    worst = np.full(size, np.inf)
    np.minimum.at(worst, flat, values)
    with np.errstate(invalid="ignore", divide="ignore"):  # empty tiles
        mean = np.bincount(flat, values, size) / count
        squares = np.bincount(flat, (values - mean[flat]) ** 2, size)
        error = np.sqrt(squares / (count - 1) / count)
    return Tiles(
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
