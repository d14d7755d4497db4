"""What a fit says in words: the verdict first, then what is determined and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gym_dr.arrays import Array
from gym_dr.fitting.estimate import Estimate, Likelihood
from gym_dr.fitting.identifiability import combinations, silent
from gym_dr.fitting.misfit import LEVEL, Misfit
from gym_dr.fitting.results import DETERMINED, UNTOLD
from gym_dr.wording import counted, either, flag

if TYPE_CHECKING:  # heavy
    import pandas as pd

_SHOWN = 10  # steps of replay in a sentence, at most


def findings(
    likelihood: Likelihood,
    estimate: Estimate,
    misfit: Misfit,
    table: pd.DataFrame,
    values: Mapping[str, Array],
    rng: np.random.Generator,
    *,
    varies: bool,
) -> list[str]:
    """Sentences about the model and the parameters.

    Args:
        likelihood: Of the logged steps.
        estimate: Its maximum.
        misfit: Evidence against the model.
        table: See ``Fit.parameters``.
        values: name -> values of all particles.
        rng: Of the states in which silent parameters are tried.
        varies: Whether each episode had parameters of its own.
    """
    found = [_verdict(misfit, varies)]
    if estimate.unsettled:
        found.append(
            f"The estimate has not settled after {counted(estimate.rounds, 'round')}: parameters still moved by "
            f"{estimate.unsettled:.2g} deviations, and ranges are wider by that. More episodes would help, or motion "
            "with fewer contacts."
        )
    sure = {str(name) for name in table.index if table["told"][name] == DETERMINED}
    tied = combinations(values, sure, varies)
    alone = [str(name) for name in table.index if name in sure and (varies or not any(name in pair for pair in tied))]
    if alone:
        found.append(f"Determined: {', '.join(alone)}.")
    found += tied.values()
    unsure = [n for n in table.index if table["told"][n] == UNTOLD and not any(n in pair for pair in tied)]
    wide = [name for name in unsure if varies and _shown(likelihood, estimate, name)]
    found += [f"{name} varies as widely as its prior." for name in wide]
    found += silent(likelihood, estimate.u, [name for name in unsure if name not in wide], rng)
    for reason, count in likelihood.motion.skipped:
        found.append(f"{counted(count, 'step')} could not be replayed: {reason}.")
    return found


def _shown(likelihood: Likelihood, estimate: Estimate, name: str) -> bool:
    """Whether the log tells more of a parameter than its prior, whose variance is 1/12."""
    place = likelihood.prior.names.index(name)
    return bool(estimate.information[place, place] > 12.0)


def _verdict(misfit: Misfit, varies: bool) -> str:
    if misfit.p < LEVEL:
        share = f"{100 * misfit.explained:.2g} % of their variance"
        return (
            f"The model is suspicious: residuals of {misfit.coordinate} depend on {misfit.feature} ({share}, p = "
            f"{misfit.p:.1g}), which noise does not explain. Something that is not fitted differs: friction, a time "
            "step, a delay."
        )
    if misfit.episodes_differ(varies):
        return (
            f"The model is suspicious: parameters differ between episodes (p = {misfit.episodes_p:.1g}). If it "
            f"does vary, fit with {either(flag('varies'), 'varies=True')}."
        )
    return f"Noise explains the residuals (p = {misfit.p:.2g})."


def replay_sentences(replayed: pd.DataFrame, held_out: int) -> list[str]:
    """How much better than nominal parameters fitted ones replay."""
    if replayed.empty:
        return []
    steps = max(s for s in replayed["steps"] if s <= _SHOWN)
    part = replayed[replayed["steps"] == steps].groupby("physics")["share"].mean()
    where = f"{counted(held_out, 'held-out episode')}" if held_out else "the fitted episodes themselves"
    texts = [
        f"{100 * part[name]:.2g} % with {name} parameters" for name in ("nominal", "fitted", "true") if name in part
    ]
    return [
        f"Replay of {where}, error after {counted(int(steps), 'step')} in units of the motion's deviation: "
        f"{', '.join(texts)}."
    ]
