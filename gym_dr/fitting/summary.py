"""The tables of a ``Fit``: parameters, errors and residuals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from gym_dr.arrays import Array
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.findings import identified
from gym_dr.fitting.motion import LoggedMotion
from gym_dr.fitting.prior import Prior

_GRID = 1000  # draws of a prior, for its standard deviation


def parameter_table(prior: Prior, values: Mapping[str, Array], best: Mapping[str, Array]) -> pd.DataFrame:
    """``Fit.parameters``.

    Args:
        prior: Of the parameters.
        values: name -> values of all particles.
        best: name -> the estimate, ``(1,)``; without it, as for a distribution over episodes, the mean is the best.
    """
    grid = (np.arange(_GRID) + 0.5) / _GRID
    rows = {}
    for name, drawn in values.items():
        param, spread = prior.space[name], float(prior.alone(name, grid).std())
        low, high = prior.randomization[name].support(param.nominal)
        contraction = float(drawn.std()) / spread
        rows[name] = {
            "unit": param.unit,
            "nominal": param.nominal,
            "prior_low": low,
            "prior_high": high,
            "best": float(best.get(name, drawn).mean()),
            "mean": float(drawn.mean()),
            "std": float(drawn.std()),
            "low": float(np.quantile(drawn, 0.05)),
            "high": float(np.quantile(drawn, 0.95)),
            "contraction": contraction,
            "identified": identified(contraction),
        }
    columns = [
        "unit",
        "nominal",
        "prior_low",
        "prior_high",
        "best",
        "mean",
        "std",
        "low",
        "high",
        "contraction",
        "identified",
    ]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("parameter")


def error_table(motion: LoggedMotion, estimate: Estimate) -> pd.DataFrame:
    """``Fit.errors``."""
    noise = estimate.noise
    rows = {
        c.name: {
            "unit": c.unit,
            "measured": float(np.sqrt(noise.measured[k])) if motion.seen[k] else float("nan"),
            "process": float(np.sqrt(noise.process[k])),
        }
        for k, c in enumerate(motion.coordinates)
        if motion.seen[k] or estimate.forced[k]
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("coordinate")


def residual_table(motion: LoggedMotion, estimate: Estimate) -> pd.DataFrame:
    """``Fit.residuals``."""
    seen = np.flatnonzero(motion.seen).tolist()
    return pd.DataFrame(
        {
            "episode": np.repeat(motion.episode, len(seen)),
            "step": np.repeat(motion.steps // motion.holds, len(seen)),
            "coordinate": np.tile([motion.coordinates[k].name for k in seen], len(motion)),
            "residual": estimate.innovations[:, seen].ravel(),
        }
    )
