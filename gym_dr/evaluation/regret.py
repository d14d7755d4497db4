"""Regret: how much more the best known policy returns on the same draws and seeds, and where even it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices
from gym_dr.evaluation.failures import SIGNIFICANCE, failure_p_values
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.statistics import Interval, holm, means_with_intervals

REGRET = "regret"  # statistic of a policy on a set

# Variance of a mean over both halves, relative to independent halves. A policy that is lucky in one half is chosen for
# the other one, so errors are alike; with 1.5, 95 to 98 % of simulated intervals hold the mean of the chosen policies.
_ALIKE = 1.5


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
