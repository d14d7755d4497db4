"""The tables of a ``Fit``: parameters, errors, residuals, and replays of held-out episodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from gym_dr.arrays import Array, Indices
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.findings import identified
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.motion import LoggedMotion
from gym_dr.fitting.path import Path
from gym_dr.fitting.prior import Prior

_GRID = 1000  # draws of a prior, for its standard deviation
_STEPS = (1, 2, 5, 10, 20, 50)  # of replays
_APART = 5  # steps between two starts
_MOST = 400  # starts


def parameter_table(prior: Prior, values: Mapping[str, Array]) -> pd.DataFrame:
    """``Fit.parameters``."""
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
            "mean": float(drawn.mean()),
            "std": float(drawn.std()),
            "low": float(np.quantile(drawn, 0.05)),
            "high": float(np.quantile(drawn, 0.95)),
            "contraction": contraction,
            "identified": identified(contraction),
        }
    columns = ["unit", "nominal", "prior_low", "prior_high", "mean", "std", "low", "high", "contraction", "identified"]
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


def replay_errors(
    likelihood: Likelihood, path: Path, physics: Mapping[str, Mapping[str, float]], scale: Array
) -> pd.DataFrame:
    """Errors of replays from smoothed states under logged actions.

    Args:
        likelihood: Of held-out episodes.
        path: Their smoothed states.
        physics: name -> values of parameters that are not nominal.
        scale: Standard deviation of each coordinate in fitted episodes, ``(n,)``; in a few held-out steps it may be 0.

    Returns:
        A row for each physics, number of steps and coordinate: ``error``, the root mean square in the coordinate's
        unit, and ``share``, over ``scale``.
    """
    rows, motion = [], likelihood.motion
    for name, params in physics.items():
        for steps, errors in _departures(likelihood, path, params).items():
            for k, coordinate in enumerate(motion.coordinates):
                if motion.seen[k]:
                    error = float(np.sqrt(np.mean(np.square(errors[:, k]))))
                    share = error / float(scale[k])
                    rows.append((name, steps, coordinate.name, coordinate.unit, error, share))
    return pd.DataFrame(rows, columns=["physics", "steps", "coordinate", "unit", "error", "share"])


def _departures(likelihood: Likelihood, path: Path, params: Mapping[str, float]) -> dict[int, Array]:
    """Steps -> simulated minus measured states, ``(starts, n)``."""
    motion, simulator, phases = likelihood.motion, likelihood.simulator, likelihood.phases
    starts, lengths = _starts(motion)
    replay, slots = simulator.replay, simulator.replay.num_envs
    errors: dict[int, list[Array]] = {step: [] for step in _STEPS}
    for first in range(0, len(starts), slots):
        chosen = np.minimum(np.arange(first, first + slots), len(starts) - 1)
        fresh = np.arange(first, first + slots) < len(starts)
        rows, left = starts[chosen], lengths[chosen]
        states = path.states[rows]
        for step in range(1, int(left.max()) + 1):
            here = np.minimum(rows + step - 1, len(motion) - 1)
            known = {name: values[here] for name, values in motion.known.items()}
            at = None if phases is None else phases[here]
            acting, holds = motion.actions[here], motion.holds[here]
            states = simulator.predict(states, acting, params, holds=holds, known=known, phases=at, seed=step * slots)
            if step in errors:
                valid = fresh & (left >= step)
                errors[step].append(np.nan_to_num(replay.difference(states, motion.measured[here])[valid]))
    return {step: np.concatenate(parts) for step, parts in errors.items() if parts and sum(map(len, parts))}


def _starts(motion: LoggedMotion) -> tuple[Indices, Indices]:
    """Rows to start from, and how many steps can be replayed from each, at most the largest of ``_STEPS``."""
    ends = np.flatnonzero(~motion.joined)
    lengths = ends[np.searchsorted(ends, np.arange(len(motion)))] - np.arange(len(motion)) + 1
    starts = np.arange(0, len(motion), max(_APART, len(motion) // _MOST))
    return starts, np.minimum(lengths[starts], _STEPS[-1])
