"""The findings of a fit in sentences: the verdict on the model first, then what the log determines and what not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from gym_dr.arrays import Array
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.identifiability import combinations, silent
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.misfit import LEVEL, Misfit
from gym_dr.fitting.prior import NOISE
from gym_dr.fitting.results import DETERMINED, PRIOR_KEPT
from gym_dr.randomization.distributions import Distribution
from gym_dr.randomization.space import ParamSpace
from gym_dr.wording import counted, percent

_SHOWN = 10  # steps of replay in a sentence, at most
_END = 0.02  # share of a prior's range around its ends
_PRESSED = 2.0  # standard deviations from an end up to which particles press against it
_NEAR = 0.1  # relative difference at which noise is still within its prior


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
        rng: For the states in which silent parameters are tried.
        varies: Whether each episode has its own parameters.
    """
    at_ends = _at_ends(table, values, likelihood.prior.space)
    sentences = [_verdict(misfit, varies, bool(at_ends)), *at_ends.values()]
    if estimate.unsettled:
        sentences.append(
            f"The estimate has not settled after {counted(estimate.rounds, 'round')}: parameters still moved by "
            f"{estimate.unsettled:.2g} standard deviations, and ranges are wider by that. Log more episodes, or motion "
            "with fewer contacts."
        )
    sure = {str(name) for name in table.index if table["identified"][name] == DETERMINED}
    tied = combinations(values, sure, varies)
    paired = set() if varies else {name for pair in tied for name in pair}
    alone = [str(name) for name in table.index if name in sure - {*at_ends} - paired]
    if alone:
        sentences.append(f"Determined: {', '.join(alone)}.")
    sentences += tied.values()
    unsure = [n for n in table.index if table["identified"][n] == PRIOR_KEPT and not any(n in pair for pair in tied)]
    wide = [name for name in unsure if varies and _informed(likelihood, estimate, name)]
    sentences += [f"{name} varies as widely as its prior." for name in wide]
    sentences += silent(likelihood, estimate.u, [name for name in unsure if name not in wide], rng)
    for reason, count in likelihood.motion.skipped:
        sentences.append(f"{counted(count, 'step')} could not be replayed: {reason}.")
    return sentences


def _informed(likelihood: Likelihood, estimate: Estimate, name: str) -> bool:
    """Whether the log has more information on a parameter than its prior, whose variance is 1/12."""
    place = likelihood.prior.names.index(name)
    return bool(estimate.information[place, place] > 12.0)


def _at_ends(table: pd.DataFrame, values: Mapping[str, Array], space: ParamSpace) -> dict[str, str]:
    """Parameters at an end of their prior: name -> a sentence.

    Args:
        table: See ``Fit.parameters``.
        values: name -> values of all particles.
        space: Whose bounds no prior can go beyond.
    """
    sentences = {}
    for name, drawn in values.items():
        low, high = float(table["prior_low"][name]), float(table["prior_high"][name])
        ends = [("lower", low, space[name].low), ("upper", high, space[name].high)]
        for which, end, bound in ends if np.isfinite(high - low) else []:
            away, spread = np.abs(drawn - end), max(float(drawn.std()), 1e-6 * (high - low))
            if end != bound and np.median(away) < _END * (high - low) and away.mean() < _PRESSED * spread:
                sentences[name] = (
                    f"{name} lies at the {which} end of its prior, {end:.4g}; the best value may be beyond. Widen the "
                    "prior."
                )
    return sentences


def _verdict(misfit: Misfit, varies: bool, at_ends: bool) -> str:
    if misfit.p < LEVEL:
        how = f"depend on {misfit.feature}" if misfit.feature else "are not 0 on average"
        cause = "A prior is too narrow, or something" if at_ends else "Something"
        return (
            f"The model is suspicious: residuals of {misfit.coordinate} {how} "
            f"({percent(misfit.explained)} of their variance, p = {misfit.p:.1g}), which noise does not explain. "
            f"{cause} that is not fitted differs: friction, a time step, a delay."
        )
    if misfit.episodes_differ(varies):
        return (
            f"The model is suspicious: parameters differ between episodes (p = {misfit.episodes_p:.1g}). If the "
            "system does vary, fit with `varies=True`."
        )
    return f"The residuals are consistent with noise (p = {misfit.p:.2g})."


def noise_sentences(measured: Array, prior: Distribution) -> list[str]:
    """A sentence if the measurement noise lies beyond the prior of ``obs_noise``.

    Args:
        measured: Standard deviations of measurement noise, in units of the observation, ``(n,)``.
        prior: Of ``obs_noise``.
    """
    (low, high), (least, most) = prior.support, (float(measured.min()), float(measured.max()))
    if low * (1.0 - _NEAR) <= least and most <= high * (1.0 + _NEAR):
        return []
    return [
        f"{NOISE}: the log's is {least:.2g} to {most:.2g}, beyond its prior of {low:.4g} to {high:.4g}; the result "
        "stays within. Widen the prior if the noise belongs in training."
    ]


def replay_sentences(replayed: pd.DataFrame, unseen: int, held_out: int) -> list[str]:
    """A sentence on how much better fitted than nominal parameters predict.

    Args:
        replayed: See ``Fit.replay``.
        unseen: Held-out episodes that were replayed; 0 if fitted ones were.
        held_out: All episodes that were held out.
    """
    if replayed.empty:
        return []
    steps = max(s for s in replayed["steps"] if s <= _SHOWN)
    part = replayed[replayed["steps"] == steps].groupby("physics")["share"].mean()
    where = counted(unseen, "held-out episode") if unseen else "the fitted episodes themselves"
    if held_out and not unseen:
        where += " (no step of those held out can be replayed)"
    texts = [f"{percent(part[name])} with {name} parameters" for name in ("nominal", "fitted")]
    return [
        f"Replay of {where}, error after {counted(int(steps), 'step')} relative to the motion's standard deviation: "
        f"{', '.join(texts)}."
    ]
