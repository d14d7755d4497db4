"""Sensitivity of a policy to parameters: Sobol indices of its return, and the failing cell nearest to nominal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.evaluation.indices import MIN_PARTS, orthonormal, sobol_indices
from gym_dr.evaluation.ranges import SEQUENCES
from gym_dr.evaluation.sets import NO_NEEDS, CellSet, Needs
from gym_dr.evaluation.statistics import as_intervals
from gym_dr.randomization.space import acts
from gym_dr.wording import counted, percent

SIGNIFICANCE = 0.05  # of the test whether a cell fails
SUSPECTS = 5  # most cells that seem to fail and are played again

_QUANTILES = 2**14  # that describe the distribution of a parameter


def sensitivity(returns: Array, cells: CellSet, needs: Needs = NO_NEEDS) -> dict[str, Any]:
    """Sobol indices of a cell's mean return, corrected for noise; see ``sobol_indices``.

    The first-order index of a parameter is the share of the variance that it explains alone; the total index adds all
    of its interactions. A mean over few episodes also varies with other random influences: terrain, pushes, sampled
    actions. ``noise`` is their share of the variance, estimated from the variance within cells. Cells share no seeds,
    so their noise is independent.

    A parameter that has no effect in some cells, such as the power of wind that does not blow, has the indices of the
    others: shares of the variance between the points in whose cells it has an effect.

    Estimates are unbiased rather than positive: a parameter without effect is estimated below 0 half of the time, and
    its interval begins at 0. Intervals take the Sobol sequences of a set as independent. With a single noisy episode
    per cell, intervals are too wide rather than too narrow.

    Args:
        returns: Shape ``(cells, episodes)`` of a set with ``points``.
        cells: The set.
        needs: Parameter -> the parameters of which one must not be 0 for it to have an effect -> nominal values.

    Returns:
        ``parameters``, ``first_order`` and ``total`` (value, low, high for each), and ``noise``, which is None if cells
        have only one episode; total indices then include it. An index is None if returns do not vary, or if the
        parameter has the same value in all cells. Correlated parameters and fewer than 4 points have no indices but a
        ``reason``, which is None otherwise.
    """
    n, d = cells.points or 0, len(cells.names)
    if reason := _no_indices(cells):
        return {"parameters": [], "first_order": [], "total": [], "noise": None, "reason": reason}
    quantiles = list(cells.quantiles((np.arange(_QUANTILES) + 0.5) / _QUANTILES).T)
    values, outputs = cells.values.reshape(d + 2, n, d), returns.reshape(d + 2, n, -1)
    shares, noise = _shares(outputs, values, quantiles)
    for i, name in enumerate(cells.names):
        needed = needs.get(name, {})
        points = acts(needed, cells.columns, cells.num_cells).reshape(d + 2, n).all(0)
        if not points.all():
            # of a single parameter that it needs, only values other than 0 are left
            left = [q[q != 0] if [*needed] == [other] else q for other, q in zip(cells.names, quantiles, strict=True)]
            shares[:, i] = _shares(outputs[:, points], values[:, points], left)[0][:, i]
    first, total = (as_intervals(*rows.T) for rows in shares)
    return {
        "parameters": list(cells.names),
        "first_order": first,
        "total": total,
        "noise": noise if returns.shape[1] > 1 else None,
        "reason": None,
    }


def _shares(outputs: Array, values: Array, quantiles: Sequence[Array]) -> tuple[Array, float | None]:
    """First-order and total indices ``(2, d, 3)``, NaN where there are none, and the share of noise.

    Args:
        outputs: Returns at the points of A, of B and of A with each column from B, ``(d + 2, points, episodes)``.
        values: The parameters there, ``(d + 2, points, d)``.
        quantiles: Of each parameter.
    """
    d, n = values.shape[2], values.shape[1]
    shares = np.full((2, d, 3), np.nan)
    # the most points that even parts of one size leave
    parts = max(range(MIN_PARTS, min(n, SEQUENCES) + 1, 2), key=lambda p: (n // p * p, p), default=0)
    n = parts and n // parts * parts
    outputs, values = outputs[:, :n], values[:, :n]
    varied = [i for i in range(d) if n and np.ptp(values[..., i]) > 0 and np.ptp(quantiles[i]) > 0]
    if not varied or not np.ptp(outputs.mean(-1)) > 0:
        return shares, None
    rows = [0, 1, *(2 + i for i in varied)]  # of A, of B, and of A with a parameter from B
    functions = [orthonormal(values[rows][..., i], quantiles[i]) for i in varied]
    if (found := sobol_indices(outputs[rows], functions, parts)) is None:
        return shares, None
    shares[:, varied] = found.first_order, found.total
    return shares, found.noise


def _no_indices(cells: CellSet) -> str:
    """Why a set has no Sobol indices; empty if it has them."""
    if cells.correlated:
        return (
            "they divide the variance between independent parameters, and "
            f"{' and '.join(cells.correlated)} are correlated"
        )
    if (cells.points or 0) < MIN_PARTS:
        return f"they need at least {MIN_PARTS} points, got {cells.points}"
    return ""


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
