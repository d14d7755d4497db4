"""Where policies fall short: the worst cell, the failing one that is nearest to nominal, and regret.

The lowest of many noisy means is too low, and among many cells some seem to fail by chance. So both cells are played
again, for unbiased episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.errors import counted, percent
from gym_dr.evaluation.sets import NO_NEEDS, CellSet, Needs
from gym_dr.evaluation.statistics import Interval, holm, means_with_intervals
from gym_dr.randomization.space import acts
from gym_dr.training.api import seed_for

WORST_CELLS = "worst_cells.csv"  # their fresh episodes, with the columns of ``episodes.csv``
FRESH_SEED = seed_for(0, stream=3)  # of the first fresh episode; no other episodes use these seeds
SIGNIFICANCE = 0.05  # of the test whether a cell fails
SUSPECTS = 5  # most cells that seem to fail and are played again
FEWEST = 20  # fresh episodes of a cell, even if it had fewer

REGRET = "regret"  # statistic of a policy on a set
# Variance of a mean over both halves, relative to independent halves. A policy that is lucky in one half is chosen for
# the other one, so errors are alike; with 1.5, 95 to 98 % of simulated intervals hold the mean of the chosen policies.
_ALIKE = 1.5


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


# ---- the nearest failure ---------------------------------------------------------------------------------------------


def failure_p_values(returns: Array, success: float) -> Array:
    """P-values of exact one-sided binomial tests of whether fewer than half of a cell's episodes succeed.

    Args:
        returns: Shape ``(..., episodes)``.
        success: Return from which an episode is a success.

    Returns:
        Shape ``(...)``.
    """
    from scipy import stats  # heavy

    return np.asarray(stats.binom.cdf((returns >= success).sum(-1), returns.shape[-1], 0.5))


def failing(returns: Array, success: float) -> Mask:
    """Cells where the policy fails: where its success rate is significantly below one half.

    The test of each cell is at the 5 % level: 0 successes of 5, or at most 5 of 20. Of many cells, some seem to fail by
    chance.

    Args:
        returns: Shape ``(cells, episodes)``.
        success: Return from which an episode is a success.

    Returns:
        Shape ``(cells,)`` bool; all False with fewer than 5 episodes per cell.
    """
    return failure_p_values(returns, success) < SIGNIFICANCE


def perturbations(cells: CellSet, nominal: Mapping[str, float], needs: Needs) -> Array:
    """How far each cell is from nominal.

    A parameter's perturbation is its distance from nominal as a share of its range, which covers the set's values and
    the nominal value. Parameters that are constant over cells, or have no effect in a cell, do not count.

    Returns:
        Shape ``(cells, len(cells.names))``.
    """
    values = cells.values
    center = np.array([nominal[name] for name in cells.names])
    width = np.maximum(values.max(0), center) - np.minimum(values.min(0), center)
    acting = [acts(needs.get(name, {}), cells.columns, cells.num_cells) for name in cells.names]
    counts = (np.ptp(values, axis=0) > 0) & np.array(acting).T
    return np.where(counts, np.abs(values - center) / np.where(width > 0, width, 1.0), 0.0)


def nearest_suspects(
    returns: Array, cells: CellSet, nominal: Mapping[str, float], success: float | None, needs: Needs = NO_NEEDS
) -> list[int]:
    """The cells nearest to nominal that seem to fail, to be played again: at most ``SUSPECTS``, the nearest first.

    A cell's perturbation is that of its most perturbed parameter; the sum over parameters breaks ties.

    Args:
        returns: Shape ``(cells, episodes)``.
        cells: A set of fixed values.
        nominal: Nominal values of the set's parameters.
        success: Return from which an episode is a success; None if unknown.
        needs: As in ``sensitivity``.
    """
    if success is None:
        return []
    moved = perturbations(cells, nominal, needs)
    order = np.lexsort((moved.sum(1), moved.max(1, initial=0.0)))
    return [int(cell) for cell in order[failing(returns, success)[order]][:SUSPECTS]]


def nearest_failure(
    returns: Array,
    again: Mapping[int, Array],
    cells: CellSet,
    nominal: Mapping[str, float],
    success: float | None,
    *,
    needs: Needs = NO_NEEDS,
    fails_at_nominal: bool,
) -> dict[str, Any]:
    """The failing cell that is nearest to nominal.

    The first episodes choose a few suspects. The answer is the nearest of them that also fails in its fresh episodes,
    by a test at 5 % divided by the number of suspects (Bonferroni). However many cells there are, at most 5 % of all
    answers name a cell where the policy succeeds in half of the episodes or more. A policy that fails at nominal values
    has distance 0 and no cell.

    Args:
        returns: Of the first episodes, shape ``(cells, episodes)``.
        again: Cell -> returns of its fresh episodes, for all ``nearest_suspects``.
        cells: A set of fixed values.
        nominal: Nominal values of the set's parameters.
        success: Return from which an episode is a success; None if unknown.
        needs: As in ``sensitivity``.
        fails_at_nominal: Whether the policy fails at nominal values.

    Returns:
        ``found``, and if so ``distance``, ``cell``, its ``params``, the distance of each (``moved``) and its
        ``success_rate`` in the fresh episodes; otherwise the ``reason``. Missing entries are None.
    """
    keys = ("distance", "cell", "params", "moved", "success_rate", "reason")
    result: dict[str, Any] = {"found": False, **dict.fromkeys(keys)}
    if success is None:
        return {**result, "reason": "there is no success threshold, and none was given"}
    if fails_at_nominal:
        return {**result, "found": True, "distance": 0.0, "reason": "it already fails at nominal values"}
    if 0.5 ** returns.shape[1] >= SIGNIFICANCE:
        return {**result, "reason": f"{counted(returns.shape[1], 'episode')} per cell cannot tell; play at least 5"}
    suspects = nearest_suspects(returns, cells, nominal, success, needs)
    level = SIGNIFICANCE / max(1, len(suspects))
    failed = (cell for cell in suspects if failure_p_values(again[cell], success) < level)
    if (cell := next(failed, None)) is None:
        rates = (returns < success).mean(-1)
        than = "surely more than" if rates.max() > 0.5 else "more than"
        text = f"it fails {percent(rates.mean())} of episodes, but in no single setting {than} half"
        if suspects:
            text = f"it did not fail again where it seemed to ({counted(len(suspects), 'nearest setting')})"
        return {**result, "reason": text if rates.any() else "it fails in no episode"}
    fresh, moved = again[cell], perturbations(cells, nominal, needs)[cell]
    return {
        **result,
        "found": True,
        "distance": float(moved.max(initial=0.0)),
        "cell": cell,
        "params": cells.cell(cell, needs),
        "moved": dict(zip(cells.names, moved.tolist(), strict=True)),
        "success_rate": float((fresh >= success).mean()),
    }


# ---- regret ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class BestKnown:
    """Returns of the best known policies, and the regret of all policies.

    The highest of several noisy means is too high. So one half of the episodes chooses the best policy and the other
    half estimates its return, and the reverse: the estimate is independent of the choice. If policies are equal, regret
    is 0 on average. Otherwise few episodes may choose another than the best policy, and regret is too low rather than
    too high.
    """

    returns: Array  # of the policy that the other half of the episodes chose, (cells, episodes)
    regret: Array  # ``returns`` minus each policy's own, (policies, cells, episodes)


def best_known(returns: Array) -> BestKnown:
    """Finds the best known policy of each cell.

    One policy is chosen for a whole set of one cell, or of one episode per draw, which cannot tell the best policy on a
    draw.

    Args:
        returns: Shape ``(policies, cells, episodes)``, all on the same draws and seeds, of at least two episodes.
    """
    policies, cells, episodes = returns.shape
    if episodes == 1:
        found = best_known(returns.reshape(policies, 1, cells))
        return BestKnown(returns=found.returns.T, regret=found.regret.swapaxes(1, 2))
    half = np.arange(episodes) % 2
    # of the other half, (halves, policies, cells)
    means = np.stack([returns[:, :, half != own].mean(-1) for own in (0, 1)])
    chosen: Indices = means.argmax(1)  # (halves, cells)
    best = np.take_along_axis(returns, chosen.T[None][:, :, half], axis=0)[0]
    return BestKnown(returns=best, regret=best - returns)


def best_on(cells: CellSet, returns: Array) -> BestKnown | None:
    """Finds the best known policy of each cell of a set; None if episodes are too few, see ``why_no_regret``."""
    return None if why_no_regret(cells) else best_known(returns)


def why_no_regret(cells: CellSet) -> str:
    """Why the regret on a set is unknown; empty if it is known."""
    if cells.num_episodes == 1:
        return "a single episode does not tell which policy is best"
    if cells.kind == "grid" and cells.episodes == 1:
        # the halves would have different cells instead of different episodes of the same cells
        return "play at least two episodes per cell: one does not tell which policy is best there"
    return ""


def regret_statistics(known: BestKnown, cells: CellSet) -> list[dict[str, Interval]]:
    """For each policy, its mean regret; its interval is for the policies that were chosen."""
    found = means_with_intervals(known.regret.reshape(len(known.regret), -1), cells, inflation=_ALIKE)
    return [{REGRET: interval} for interval in found]


def describe_best(
    known: BestKnown, cells: CellSet, success: float | None, within: tuple[float, float]
) -> dict[str, Any]:
    """The entry of a set in an evaluation.

    Args:
        known: The best known returns.
        cells: The set.
        success: Return from which an episode counts as solved; None for no shares.
        within: The lowest and highest possible return.

    Returns:
        ``set``, ``mean`` return of the best known policy (value, low, high), its ``success_rate``, and ``failing``: in
        how many of the ``cells`` it fails beyond chance (Holm's correction), None if there is one cell or too few
        episodes to tell: 5 for a single cell, 12 for 100.
    """
    (mean,) = means_with_intervals(known.returns.reshape(1, -1), cells, within, inflation=_ALIKE)
    entry = {"set": cells.name, "cells": cells.num_cells, "mean": mean, "success_rate": None, "failing": None}
    if success is not None:
        entry["success_rate"] = float((known.returns >= success).mean())
        if cells.num_cells > 1 and 0.5**cells.episodes * cells.num_cells < SIGNIFICANCE:
            entry["failing"] = int((holm(failure_p_values(known.returns, success)) < SIGNIFICANCE).sum())
    return entry


def impossible(entry: Mapping[str, Any]) -> list[str]:
    """Sentences on episodes that even the best known policy of a set does not solve; none without a threshold."""
    if entry["success_rate"] is None:
        return []
    sentences = [f"The best known policy solves {entry['success_rate']:.0%} of the episodes."]
    if entry["failing"]:
        sentences.append(f"It fails in {entry['failing']:,} of {entry['cells']:,} cells.")
    return sentences
