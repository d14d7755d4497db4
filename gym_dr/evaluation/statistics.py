"""Numbers that sum up a policy's episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gym_dr.wrappers.record import EpisodeRecord

RESAMPLES = 10_000  # of a bootstrap
CONFIDENCE = 0.95


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


def iqm_with_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Interquartile mean of runs and its bootstrap interval.

    The mean of the middle half is steadier than the median and less moved by one lucky or failed seed than the mean
    (Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice"). The interval is the
    percentile bootstrap's, which for a handful of seeds is narrower than it should be.

    Args:
        values: One number for each run, at least one.

    Returns:
        The interquartile mean, and the lower and upper end of its 95 % interval; all the same for a single run.
    """
    from scipy import stats  # heavy

    sample = np.asarray(values, dtype=np.float64)
    centre = float(stats.trim_mean(sample, 0.25))
    if len(sample) < 2:
        return centre, centre, centre

    def iqm(resampled: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
        trimmed: npt.NDArray[np.float64] = stats.trim_mean(resampled, 0.25, axis=axis)
        return trimmed

    result = stats.bootstrap(
        (sample,),
        iqm,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return centre, float(result.confidence_interval.low), float(result.confidence_interval.high)
