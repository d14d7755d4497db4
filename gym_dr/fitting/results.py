"""The result of a fit, and the files that it is written to: its randomization, its particles and its page."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.errors import ConfigError
from gym_dr.randomization.files import randomization_text
from gym_dr.randomization.spec import Randomization
from gym_dr.table import Table

if TYPE_CHECKING:  # heavy
    import pandas as pd

DETERMINED, NARROWED, PRIOR_KEPT = "determined", "narrowed", "keeps its prior"


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Ranges from a log, as ``gym_dr.fit`` returns them.

    Example:
        >>> fitted = gym_dr.fit("flights", env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12, -6)})
        >>> run = gym_dr.train("ppo", env="gym_dr/LunarLanderDR-v3", randomization=fitted.randomization)
    """

    env: str  # id of the environment
    randomization: Randomization  # what the log leaves possible, with correlations
    prior: Randomization  # of the parameters to find
    # a row for each parameter to find, by name: unit, nominal, prior_low, prior_high, best (the estimate), mean and std
    # of the particles, low and high (ends of the 90 % interval), contraction (std over that of the prior), identified
    # (one of the words above)
    parameters: pd.DataFrame
    particles: pd.DataFrame  # draws of the posterior: a column for each parameter
    # a row for each coordinate of the state, by name: unit, measured and process (standard deviations of noise)
    errors: pd.DataFrame
    # predictions of held-out episodes: physics (nominal, fitted, or the method that was not taken), horizon, seconds
    # (nan for whole episodes), coordinate, unit, error (root mean square over all times up to the horizon), share (of
    # the coordinate's standard deviation in fitted episodes)
    replay: pd.DataFrame
    # residuals in units of their standard deviation: episode, step, coordinate, residual
    residuals: pd.DataFrame
    suspicious: bool  # whether the residuals are not consistent with noise
    findings: Sequence[str]  # sentences: the verdict first, then what is determined and what is not
    facts: Mapping[str, str]  # steps, episodes, method, seconds

    def __repr__(self) -> str:
        return "\n".join([f"Fit of {self.env}", *(f"  {sentence}" for sentence in self.findings)])

    @property
    def table(self) -> Table:
        """The parameters, rounded to two digits of their standard deviation."""
        rows = []
        for name, row in self.parameters.iterrows():
            best, low, high = (_rounded(row[key], row["std"]) for key in ("best", "low", "high"))
            prior = f"{row['prior_low']:.4g} to {row['prior_high']:.4g}"
            unit = "times nominal" if row["unit"] == "x" else row["unit"]
            rows.append([str(name), prior, f"{row['nominal']:.4g}", best, f"{low} to {high}", unit, row["identified"]])
        columns = ["parameter", "prior", "nominal", "best", "90 % interval", "unit", ""]
        return Table(columns=columns, rows=rows)

    @property
    def prediction_table(self) -> Table:
        """The errors of predictions: a row for each coordinate, a column for each horizon."""
        horizons, rows = list(dict.fromkeys(self.replay["horizon"])), []
        for coordinate, part in self.replay.groupby("coordinate", sort=False):
            errors = part.set_index(["physics", "horizon"])["error"].to_dict()
            pairs = [[errors.get((name, horizon), math.nan) for name in ("fitted", "nominal")] for horizon in horizons]
            told = [f"{fitted:.2g} ({nominal:.2g})" for fitted, nominal in pairs]
            rows.append([str(coordinate), *told, str(part["unit"].iloc[0])])
        note = (
            "Root mean squares over all times up to the horizon; in parentheses with nominal parameters. A prediction "
            "begins in a state that is fitted to a short window before it, and repeats the logged actions."
        )
        return Table(
            caption="Errors of predictions", columns=["error of prediction", *horizons, "unit"], rows=rows, notes=[note]
        )

    @property
    def error_table(self) -> Table:
        """The standard deviations of measurement and process noise."""
        rows = [
            [
                str(name),
                *("" if np.isnan(row[key]) else f"{row[key]:.3g}" for key in ("measured", "process")),
                row["unit"],
            ]
            for name, row in self.errors.iterrows()
        ]
        note = (
            "Standard deviations. Measurement noise is that of the log's sensors. Process noise is what each step of "
            "the system adds and the simulation lacks."
        )
        columns = ["coordinate", "measurement noise", "process noise, each step", "unit"]
        return Table(caption="Noise that the fit has estimated", columns=columns, rows=rows, notes=[note])


def _rounded(value: float, std: float) -> str:
    """A value with two digits of its standard deviation, and at most six decimals."""
    if not std > 0:
        return f"{value:.4g}"
    return f"{value:.{min(max(1 - math.floor(math.log10(std)), 0), 6)}f}"


@dataclass(frozen=True)
class FitFiles:
    """Where a fit writes."""

    randomization: Path  # such as fitted.toml; the others lie beside it

    @property
    def particles(self) -> Path:
        """The draws of the posterior."""
        return self.randomization.with_suffix(".npz")

    @property
    def page(self) -> Path:
        """The report."""
        return self.randomization.with_suffix(".html")

    def check(self, logs: Collection[Path]) -> None:
        """Checks that all can be written, before anything is fitted, and makes their folder.

        Args:
            logs: Files and folders of the log, without links.

        Raises:
            ConfigError: The path does not end in .toml, its folder cannot be made, or a file would replace one of the
                log or lie between them.
        """
        path = self.randomization
        if path.suffix != ".toml":
            raise ConfigError(f"`output`: expected a file that ends in .toml, got {str(path)!r}.")
        for file in (path, self.particles, self.page):
            place = Path(os.path.realpath(file))
            if place in logs or place.parent in logs:
                raise ConfigError(f"`output`: expected a file that is not part of the log, got {str(file)!r}.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"`output`: {str(path.parent)!r} cannot be made: {error.strerror}.") from None


def particle_bytes(fit: Fit) -> bytes:
    """The content of the file of particles: an array for each parameter."""
    columns: dict[str, Any] = {str(name): values.to_numpy() for name, values in fit.particles.items()}
    archive = io.BytesIO()
    np.savez_compressed(archive, **columns)
    return archive.getvalue()


def randomization_bytes(fit: Fit, command: str, notes: Sequence[str] = ()) -> bytes:
    """The content of the file of the randomization, with the command, the findings and notes as a comment."""
    comment = [f"Found by: {command}" if command else "Found by gym_dr.fit", *fit.findings, *notes]
    return randomization_text(fit.randomization, "\n".join(comment)).encode()
