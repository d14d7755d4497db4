"""Plays chosen cells again, the worst and the nearest that seem to fail, since fresh episodes are unbiased.

The lowest of many noisy means is too low, and among many cells some seem to fail by chance.
"""

from __future__ import annotations

from typing import Any

from gym_dr.arrays import Array
from gym_dr.evaluation.sets import NO_NEEDS, CellSet, Needs
from gym_dr.evaluation.statistics import means_with_intervals
from gym_dr.training.api import seed_for

WORST_CELLS = "worst_cells.csv"  # their fresh episodes, with the columns of ``episodes.csv``
FRESH_SEED = seed_for(0, stream=3)  # of the first fresh episode; no other episodes use these seeds
FEWEST = 20  # fresh episodes of a cell, even if it had fewer


def worst_of(returns: Array) -> int:
    """The cell with the lowest mean return.

    Args:
        returns: Shape ``(cells, episodes)``.
    """
    return int(returns.mean(-1).argmin())


def fresh_episodes(cells: CellSet) -> int:
    """How often a chosen cell of a set is played again; 0 for a set of a single cell."""
    return max(cells.episodes, FEWEST) if cells.num_cells > 1 else 0


def again(cells: CellSet, cell: int) -> CellSet:
    """One cell of a set, to be played again."""
    return CellSet.of_values(cells.name, cells.cell(cell), fresh_episodes(cells))


def worst_cell(
    returns: Array, fresh: Array, cells: CellSet, within: tuple[float, float], needs: Needs = NO_NEEDS
) -> dict[str, Any]:
    """Describes the worst cell.

    The first episodes choose the cell, and fresh episodes estimate its mean, so the estimate is unbiased. Another cell
    may be as bad or worse.

    Args:
        returns: Of the first episodes, shape ``(cells, episodes)``.
        fresh: Of the fresh episodes of the worst cell, shape ``(fresh_episodes(cells),)``.
        cells: The set.
        within: The lowest and highest possible return.
        needs: As in ``sensitivity``.

    Returns:
        ``cell``, its ``params``, ``mean`` (value, low, high) and ``min`` of the fresh episodes and their number
        (``episodes``), and ``first_mean``, by which the cell was chosen.
    """
    chosen = worst_of(returns)
    return {
        "cell": chosen,
        "params": cells.cell(chosen, needs),
        "mean": means_with_intervals(fresh[None], again(cells, chosen), within)[0],
        "min": float(fresh.min()),
        "episodes": len(fresh),
        "first_mean": float(returns[chosen].mean()),
    }
