"""Regret: how much more the best known policy returns on the same draws and seeds, and where it fails too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices
from gym_dr.evaluation.cells import CellSet
from gym_dr.evaluation.sensitivity import SIGNIFICANCE, failing
from gym_dr.evaluation.statistics import Interval, means_with_intervals

REGRET, WORST_REGRET = "regret", "regret_worst_10"  # statistics of a policy on a set
TAIL = 0.1  # of the cells, whose regret is the largest


@dataclass(frozen=True, kw_only=True, eq=False)
class BestKnown:
    """What the best known policies return, and how much less others do.

    The highest of several noisy means is too high. So one half of the episodes chooses the best policy, and the other
    half says what it returns, and the reverse: what a choice returns is independent of the choice. If policies are
    equal, regret is 0 on average. If they are not and episodes are few, the choice is not always the best one, and
    regret is too low rather than too high.
    """

    returns: Array  # of each episode: what the policy that the other half chose returns, (cells, episodes)
    regret: Array  # of each policy and episode: returns minus its own, (policies, cells, episodes)
    # of each policy and episode, so that the mean is that of the cells with the largest regret, which the other half
    # chooses; None if there is one choice for the whole set: single episodes do not tell a draw from chance
    worst: Array | None


def best_known(returns: Array) -> BestKnown | None:
    """Finds the best known policy of each cell.

    With a single episode per draw, nothing tells which policy is best on a draw, so there is one choice for the whole
    set. The same holds for a set of one cell.

    Args:
        returns: Shape ``(policies, cells, episodes)``: the same draws and seeds, played by all.

    Returns:
        The best known returns; None if there is only one episode.
    """
    policies, cells, episodes = returns.shape
    if cells * episodes == 1:
        return None
    if episodes == 1:
        found = best_known(returns.reshape(policies, 1, cells))
        return found and BestKnown(returns=found.returns.T, regret=found.regret.swapaxes(1, 2), worst=None)
    half = np.arange(episodes) % 2
    # of the other half, (halves, policies, cells)
    means = np.stack([returns[:, :, half != own].mean(-1) for own in (0, 1)])
    chosen: Indices = means.argmax(1)  # (halves, cells)
    best = np.take_along_axis(returns, chosen.T[None][:, :, half], axis=0)[0]
    regret = best - returns
    if cells == 1:
        return BestKnown(returns=best, regret=regret, worst=None)
    largest = math.ceil(TAIL * cells)
    seeming = means.max(1, keepdims=True) - means
    rank = np.argsort(np.argsort(-seeming, axis=-1, kind="stable"), axis=-1)
    among = (rank < largest).transpose(1, 2, 0)[:, :, half]  # (policies, cells, episodes)
    return BestKnown(returns=best, regret=regret, worst=np.where(among, regret * cells / largest, 0.0))


def best_on(cells: CellSet, returns: Array) -> BestKnown | None:
    """Finds the best known policy of each cell of a set; None if its episodes do not tell, see ``why_no_regret``."""
    return None if why_no_regret(cells) else best_known(returns)


def why_no_regret(cells: CellSet) -> str:
    """Why no regret is known on a set; empty if it is."""
    if cells.num_episodes == 1:
        return "a single episode does not tell which policy is best"
    if cells.kind in ("grid", "corners") and cells.episodes == 1:
        # both halves would have different cells, not other episodes of the same ones
        return "play at least two episodes per cell: one does not tell which policy is best there"
    return ""


def regret_statistics(known: BestKnown, cells: CellSet) -> list[dict[str, Interval]]:
    """For each policy, mean regret and, where cells have several episodes, that of the worst tenth of the cells.

    Intervals take choices as given. That makes them somewhat too narrow where policies are nearly equal.
    """
    rows = {REGRET: known.regret} if known.worst is None else {REGRET: known.regret, WORST_REGRET: known.worst}
    count = len(known.regret)
    found = means_with_intervals(np.concatenate(list(rows.values())).reshape(count * len(rows), -1), cells)
    return [{name: found[k + count * i] for i, name in enumerate(rows)} for k in range(count)]


def describe_best(known: BestKnown, cells: CellSet, success: float | None) -> dict[str, Any]:
    """The entry of a set in an evaluation.

    Args:
        known: The best known returns.
        cells: The set.
        success: Return from which an episode is a success; None for no shares.

    Returns:
        ``set``, ``mean`` return of the best known policy (value, low, high), its ``success_rate``, and ``failing``: in
        how many of the ``cells`` it fails, None if there is one cell or fewer than 5 episodes in each.
    """
    flat = known.returns.reshape(1, -1)
    mean = means_with_intervals(flat, cells)[0]
    entry = {"set": cells.name, "cells": cells.num_cells, "mean": mean, "success_rate": None, "failing": None}
    if success is not None:
        entry["success_rate"] = float((flat >= success).mean())
        if cells.num_cells > 1 and 0.5**cells.episodes < SIGNIFICANCE:
            entry["failing"] = int(failing(known.returns, success).sum())
    return entry


def impossible(entry: Mapping[str, Any]) -> list[str]:
    """Sentences on what the best known policy of a set does not solve either; none if success is unknown."""
    if entry["success_rate"] is None:
        return []
    sentences = [f"The best known policy solves {entry['success_rate']:.0%} of the episodes."]
    if entry["failing"]:
        sentences.append(f"It fails in {entry['failing']:,} of {entry['cells']:,} cells.")
    return sentences


def best_entry(document: Mapping[str, Any], set_name: str) -> dict[str, Any] | None:
    """What an evaluation says about the best known policy on a set; None without references."""
    found: Sequence[dict[str, Any]] = document["best_known"]
    return next((entry for entry in found if entry["set"] == set_name), None)
