"""Sensitivity of a policy to parameters: Sobol indices of its return, and the failing cell nearest to nominal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.evaluation.cells import CellSet
from gym_dr.evaluation.statistics import bootstrap

Array = npt.NDArray[np.float64]

RESAMPLES = 1_000
SIGNIFICANCE = 0.05  # of the test whether a cell fails

_BATCH = 2_000_000  # numbers in memory during a bootstrap


def sensitivity(returns: Array, cells: CellSet) -> dict[str, Any]:
    """Sobol indices of a cell's mean return (Saltelli et al. 2010, by scipy), corrected for noise.

    The first-order index of a parameter is the share of the variance that it explains alone; the total index adds all
    of its interactions. A mean over few episodes also varies with other random influences: terrain, pushes, sampled
    actions. The noise is their share of the variance, estimated from the variance within cells. Cells share no seeds,
    so their noise is independent and adds exactly its share to each total index (``E (f(A) - f(AB))^2 / 2`` grows by
    the variance of one cell's noise), which is subtracted.

    Args:
        returns: Shape ``(cells, episodes)`` of a set with ``points``.
        cells: The set.

    Returns:
        ``parameters``, ``first_order`` and ``total`` (value, low, high for each), and ``noise``, which is None if cells
        have only one episode; total indices then include it. An index is None if returns do not vary, or if the
        parameter has the same value in all cells. Correlated parameters have no indices but a ``reason``, which is None
        otherwise.
    """
    from scipy import stats  # heavy

    n, d = cells.points or 0, len(cells.names)
    if cells.correlated:
        reason = (
            "they divide the variance between independent parameters, and "
            f"{' and '.join(cells.correlated)} are correlated"
        )
        return {"parameters": [], "first_order": [], "total": [], "noise": None, "reason": reason}
    means = returns.mean(-1).reshape(d + 2, n)
    repeated = returns.shape[1] > 1
    spread = returns.var(-1, ddof=1).reshape(d + 2, n) / returns.shape[1] if repeated else np.zeros((d + 2, n))

    def indices(rows: npt.NDArray[np.intp]) -> Array:
        """Rows of A and B, shape ``(s, n)`` -> ``(2 d + 1, s)``: first order, total, noise."""
        # one extra: scipy rejects a single sample of a single parameter
        f, s = means[:, np.concatenate([rows, rows[:1]])], len(rows)  # (d + 2, s + 1, n)
        found = stats.sobol_indices(func={"f_A": f[0], "f_B": f[1], "f_AB": f[2:]}, n=n)
        variance = np.var(f[:2], axis=(0, -1))[:s]
        variance[variance == 0.0] = np.nan  # a resample of few rows may not vary
        noise = spread[:, rows].mean((0, 2)) / variance
        first = np.where(np.isnan(variance), np.nan, np.reshape(found.first_order, (s + 1, d))[:s].T)
        total = np.reshape(found.total_order, (s + 1, d))[:s].T - noise
        return np.concatenate([first, total, noise[None]])

    with warnings.catch_warnings():  # a resample may not vary; its interval is then NaN
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        low, high = bootstrap(
            [np.arange(n)],
            lambda rows, axis: indices(np.atleast_2d(rows).astype(np.intp)),
            RESAMPLES,
            max(1, _BATCH // means.size),
        )
    values = indices(np.arange(n)[None])[:, 0]
    found = np.stack([values, low, high])
    found[:, :-1][:, np.tile(np.ptp(cells.values, axis=0) == 0, 2)] = np.nan
    ends = dict(zip(("value", "low", "high"), found.tolist(), strict=True))
    rows = [{key: row[i] if math.isfinite(row[i]) else None for key, row in ends.items()} for i in range(2 * d + 1)]
    return {
        "parameters": list(cells.names),
        "first_order": rows[:d],
        "total": rows[d : 2 * d],
        "noise": rows[-1]["value"] if repeated else None,
        "reason": None,
    }


def failing(returns: Array, success: float) -> npt.NDArray[np.bool_]:
    """Cells where the policy fails: its success rate is significantly below one half.

    The test is an exact one-sided binomial test at the 5 % level: 0 successes of 5, or at most 5 of 20.

    Args:
        returns: Shape ``(cells, episodes)``.
        success: Return from which an episode is a success.

    Returns:
        Shape ``(cells,)`` bool; all False with fewer than 5 episodes per cell.
    """
    from scipy import stats  # heavy

    successes = (returns >= success).sum(-1)
    fails: npt.NDArray[np.bool_] = stats.binom.cdf(successes, returns.shape[1], 0.5) < SIGNIFICANCE
    return fails


def least_perturbation(
    returns: Array, cells: CellSet, nominal: Mapping[str, float], success: float | None, *, fails_at_nominal: bool
) -> dict[str, Any]:
    """The failing cell that is nearest to nominal.

    A parameter's perturbation is its distance from nominal as a share of its range, which covers the set's values and
    the nominal value. A cell's perturbation is that of its most perturbed parameter; the sum over parameters breaks
    ties. Parameters that are constant over cells do not count. A policy that fails at nominal values has distance 0 and
    no cell.

    Args:
        returns: Shape ``(cells, episodes)``.
        cells: A set of fixed values.
        nominal: Nominal values of the set's parameters.
        success: Return from which an episode is a success; None if unknown.
        fails_at_nominal: Whether the policy fails at nominal values.

    Returns:
        ``found``, and if so ``distance``, ``cell``, its ``params``, the distance of each (``moved``) and its
        ``success_rate``; otherwise the ``reason``. Missing entries are None.
    """
    keys = ("distance", "cell", "params", "moved", "success_rate", "reason")
    result: dict[str, Any] = {"found": False, **dict.fromkeys(keys)}
    if success is None:
        return {**result, "reason": "there is no success threshold; give --success"}
    if fails_at_nominal:
        return {**result, "found": True, "distance": 0.0, "reason": "it already fails at nominal values"}
    if 0.5 ** returns.shape[1] >= SIGNIFICANCE:
        return {**result, "reason": f"{returns.shape[1]} episodes per cell are too few; play at least 5"}
    fails = failing(returns, success)
    if not fails.any():
        return {**result, "reason": "no cell fails"}
    values = cells.values
    center = np.array([nominal[name] for name in cells.names])
    width = np.maximum(values.max(0), center) - np.minimum(values.min(0), center)
    varies = np.ptp(values, axis=0) > 0
    moved = np.where(varies, np.abs(values - center) / np.where(width > 0, width, 1.0), 0.0)
    order = np.lexsort((moved.sum(1), moved.max(1, initial=0.0)))
    nearest = int(order[fails[order]][0])
    return {
        **result,
        "found": True,
        "distance": float(moved[nearest].max(initial=0.0)),
        "cell": nearest,
        "params": cells.cell(nearest),
        "moved": dict(zip(cells.names, moved[nearest].tolist(), strict=True)),
        "success_rate": float((returns[nearest] >= success).mean()),
    }
