"""What a fit has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gym_dr.randomization.spec import Randomization

if TYPE_CHECKING:  # heavy
    import pandas as pd

DETERMINED, NARROWED, UNTOLD = "determined", "narrowed", "keeps its prior"


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Ranges from a log; ``gym_dr.fit`` makes it.

    Example:
        >>> found = gym_dr.fit("flights", env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12, -6)})
        >>> run = gym_dr.train("ppo", env="gym_dr/LunarLanderDR-v3", randomization=found.randomization)
    """

    env: str  # id of the environment
    randomization: Randomization  # what the log leaves possible, with correlations
    prior: Randomization  # what was possible before
    # a row for each parameter to find, by name: unit, nominal, prior_low, prior_high, mean, deviation, low and high
    # (ends of the 90 % interval), shrink (deviation over that of the prior), told (one of the words above)
    parameters: pd.DataFrame
    particles: pd.DataFrame  # draws of the posterior: a column for each parameter
    # a row for each coordinate of the state, by name: unit, measured and process (deviations of errors)
    errors: pd.DataFrame
    # replay of held-out episodes: physics (nominal, fitted or true), steps, coordinate, error (root mean square), share
    # (of the coordinate's deviation in fitted episodes)
    replay: pd.DataFrame
    # residuals in units of their deviation: episode, step, coordinate, residual
    residuals: pd.DataFrame
    suspicious: bool  # whether noise does not explain the residuals
    findings: Sequence[str]  # sentences: the verdict first, then what is determined and what is not
    facts: Mapping[str, str]  # steps, episodes, method, seconds

    def __repr__(self) -> str:
        return "\n".join([f"Fit of {self.env}", *(f"  {sentence}" for sentence in self.findings)])
