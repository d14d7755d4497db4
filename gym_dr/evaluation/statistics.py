"""Numbers that sum up a policy's episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gym_dr.wrappers.record import EpisodeRecord


def summarise(records: Sequence[EpisodeRecord], threshold: float | None = None) -> dict[str, float]:
    """Mean, standard deviation and extremes of the returns, and the mean length.

    Args:
        records: At least one finished episode.
        threshold: Return from which an episode counts as a success.

    Returns:
        Statistics by name; the standard deviation is that of the sample (n - 1), 0 for one episode.
    """
    returns = np.array([record.episode_return for record in records])
    statistics = {
        "episodes": len(records),
        "mean": float(returns.mean()),
        "std": float(returns.std(ddof=1)) if len(returns) > 1 else 0.0,
        "min": float(returns.min()),
        "max": float(returns.max()),
        "length_mean": float(np.mean([record.length for record in records])),
    }
    if threshold is not None:
        statistics["success_rate"] = float(np.mean(returns >= threshold))
    return statistics
