"""The findings of a fit: the verdict on the model, what the log determines, and which motion would show the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
import scipy.stats

from gym_dr.arrays import Array
from gym_dr.errors import counted, percent, printable
from gym_dr.fitting.estimate import Estimate
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.misfit import LEVEL, Contradiction, Lack, Misfit
from gym_dr.fitting.posterior import KEPT
from gym_dr.fitting.prior import NOISE
from gym_dr.fitting.results import DETERMINED, NARROWED, PRIOR_KEPT
from gym_dr.fitting.sensors import is_of_sensor
from gym_dr.randomization.distributions import Distribution
from gym_dr.randomization.space import ParamSpace

_DETERMINED = 0.3  # contraction below which a parameter is determined
_TOGETHER = 0.9  # correlation from which only a combination is determined
_SHARPER = 3.0  # how many times narrower than its parts a combination must be
_PROBES = 1024  # states in which a silent parameter is tried
_WIDER = 4.0  # their standard deviation, in units of the log's
_EVEN = 1e-6  # share of the largest effect; smaller differences between states count as none
_EFFECT = 1e-9  # share of a coordinate's standard deviation that counts as no effect
_WRONG = 0.8  # share of a coordinate's changes from which a lack looks like a wrong log
_EPISODES = 6  # named in a sentence, at most
_END = 0.02  # share of a prior's range around its ends
_PRESSED = 2.0  # standard deviations from an end up to which particles press against it
_NEAR = 0.1  # relative difference at which noise is still within its prior


def findings(
    likelihood: Likelihood,
    estimate: Estimate,
    misfit: Misfit,
    table: pd.DataFrame,
    values: Mapping[str, Array],
    at_ends: Mapping[str, str],
    rng: np.random.Generator,
    *,
    varies: Collection[str],
) -> list[str]:
    """Sentences about the model and the parameters.

    Args:
        likelihood: Of the logged steps.
        estimate: Its maximum.
        misfit: Evidence against the model.
        table: See ``Fit.parameters``.
        values: name -> values of all particles.
        at_ends: See ``at_ends_of_priors``.
        rng: For the states in which silent parameters are tried.
        varies: Parameters of which each episode has its own.
    """
    sentences = [*_verdict(misfit, likelihood, bool(at_ends)), *at_ends.values()]
    if estimate.unsettled:
        sentences.append(
            f"The estimate has not settled after {counted(estimate.rounds, 'round')}: parameters still moved by "
            f"{estimate.unsettled:.2g} standard deviations, and ranges are wider by that. Log more episodes, or "
            "gentler motion."
        )
    sure = {str(name) for name in table.index if table["identified"][name] == DETERMINED}
    tied = combinations(values, sure, bool(varies))
    told = {*at_ends, *(() if varies else (name for pair in tied for name in pair))}  # each has one sentence
    groups = {
        how: [str(name) for name in table.index if table["identified"][name] == how and name not in told]
        for how in (DETERMINED, NARROWED, PRIOR_KEPT)
    }
    unsure = [name for name in groups.pop(PRIOR_KEPT) if not any(name in pair for pair in tied)]
    sentences += [f"{how.capitalize()}: {', '.join(names)}." for how, names in groups.items() if names]
    sentences += tied.values()
    # the log has more information on these than their priors, whose variance is 1/12
    informed = {name for name, own in zip(values, estimate.information.diagonal(), strict=True) if own > 12.0}
    wide = [name for name in unsure if name in varies and name in informed]
    sentences += [f"{name} varies as widely as its prior." for name in wide]
    sentences += silent(likelihood, estimate.u, [name for name in unsure if name not in wide], rng)
    if any(map(is_of_sensor, likelihood.prior.names)):
        sentences.append(
            "Gains and offsets of sensors are not in the ranges: correct the readings before a policy sees them."
        )
    if varies and (shared := [name for name in values if name not in varies]):
        sentences.append(f"All episodes share {', '.join(shared)}.")
    for reason, count in likelihood.motion.skipped:
        sentences.append(f"{counted(count, 'step')} could not be replayed: {reason}.")
    return sentences


def at_ends_of_priors(table: pd.DataFrame, values: Mapping[str, Array], space: ParamSpace) -> dict[str, str]:
    """Parameters at an end of their prior: name -> a sentence.

    Args:
        table: See ``Fit.parameters``.
        values: name -> values of all particles, before ranges are widened.
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


def _verdict(misfit: Misfit, likelihood: Likelihood, at_ends: bool) -> list[str]:
    """What noise does not explain, with its size in physical units."""
    lack, differ = misfit.lack, misfit.contradiction
    found = lack is not None and lack.p < LEVEL
    sentences = [_lack(lack, likelihood)] if lack is not None and found else []
    if differ is not None and differ.p < LEVEL / 2:
        sentences.append(_contradiction(differ, likelihood))
    if not sentences:
        p = min([one.p for one in (lack, differ) if one is not None], default=1.0)
        return [f"The residuals are consistent with noise (p = {p:.2g})."]
    told = "Ranges are wider by what this may have changed."
    if not misfit.suspicious:
        return [f"The model is right up to effects too small to matter. {' '.join([*sentences, told])}"]
    wrong = at_ends or (lack is not None and found and (lack.share > _WRONG or not lack.feature))
    check = "Check signs, units and offsets of the log first" + (", and the ends of priors" if at_ends else "")
    return [f"The model is suspicious. {' '.join([*sentences, *([f'{check}.'] if wrong else []), told])}"]


def _lack(lack: Lack, likelihood: Likelihood) -> str:
    duration, unit, name = _duration(likelihood), lack.coordinate.unit, lack.coordinate.name
    on = f"mostly with {lack.feature}" if lack.feature else "always alike"
    why = f"{on}, like {lack.cause} (p = {lack.p:.1g})"
    if not lack.is_force:
        off = f"{lack.size:.2g} {unit}".rstrip()
        return f"Readings of {name} are off by {off}, {percent(lack.share)} of its standard deviation, {why}."
    per = f"{unit[:-2]}/s^2" if unit.endswith("/s") else f"{unit}/s" if unit else "per second"
    size = f"{lack.size / duration:.2g} {per}" if duration else f"{lack.size:.2g} {unit} a step".replace("  ", " ")
    return f"In the rate of change of {name} {size} are missing, {percent(lack.share)} of that rate in the log, {why}."


def _duration(likelihood: Likelihood) -> float:
    """The mean duration of a logged step, s; 0 if it is not known."""
    step = likelihood.replay.time_step
    if isinstance(step, str):
        step = likelihood.prior.value(step) if step not in likelihood.prior.names else None
    return float(step * likelihood.motion.holds.mean()) if step else 0.0


def _contradiction(differ: Contradiction, likelihood: Likelihood) -> str:
    prior, motion = likelihood.prior, likelihood.motion
    names = [printable(motion.sources[episode]) for episode in np.unique(motion.episode).tolist()]
    name = prior.names[differ.name]
    own = prior.values(differ.points)[name]
    unit = f" {prior.space[name].unit}".rstrip()
    effect = f"p = {differ.p:.1g}; {percent(differ.share)} of the motion's changes"
    if differ.odd is not None:
        return (
            f"{names[differ.odd]} contradicts the other episodes: {name} would be {own[0]:.4g}{unit} there and "
            f"{own[1]:.4g}{unit} in the others ({effect})."
        )
    order = np.argsort(own)
    shown = order if len(order) <= _EPISODES else order[[0, -1]]
    each = ", ".join(f"{own[k]:.4g}{unit} in {names[k]}" for k in shown.tolist())
    return (
        f"Episodes contradict each other: {name} would be {each} ({effect}). If the system does vary, fit with "
        f"`varies={[name]!r}`."
    )


def noise_sentence(measured: Array, prior: Distribution) -> str:
    """A sentence on the measurement noise, which may lie beyond the prior of ``obs_noise``.

    Args:
        measured: Standard deviations of measurement noise, in units of the observation, ``(n,)``.
        prior: Of ``obs_noise``.
    """
    (low, high), (least, most) = prior.support, (float(measured.min()), float(measured.max()))
    found = f"{NOISE}: the log's is {least:.2g} to {most:.2g}"
    if low * (1.0 - _NEAR) <= least and most <= high * (1.0 + _NEAR):
        return f"{found}."
    return (
        f"{found}, beyond its prior of {low:.4g} to {high:.4g}; the result stays within. Widen the prior if the noise "
        "belongs in training."
    )


# ---- identifiability -------------------------------------------------------------------------------------------------


def identified(contraction: float) -> str:
    """How well a log determines a parameter, by its standard deviation over that of the prior."""
    return DETERMINED if contraction < _DETERMINED else NARROWED if contraction < KEPT else PRIOR_KEPT


def combinations(
    values: Mapping[str, Array], sure: Collection[str] = (), varies: bool = False
) -> dict[tuple[str, str], str]:
    """Pairs of parameters whose ratio, product or other combination is better determined than each alone.

    Args:
        values: name -> values of all particles.
        sure: Parameters that are determined alone; pairs with one of them, or with ``varies`` of two, get no sentence.
        varies: Whether the particles are systems of a population, of which each episode may determine both parameters.

    Returns:
        A sentence for each pair, the best determined first; at most four, none of which follows from others.
    """
    names = list(values)
    sentences: list[tuple[float, str, tuple[str, str]]] = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            known = (all if varies else any)(name in sure for name in (first, second))
            sentence = None if known else _pair(first, second, values[first], values[second], varies)
            if sentence:
                sentences.append((*sentence, (first, second)))
    found: dict[tuple[str, str], str] = {}
    for _, text, pair in sorted(sentences):
        if not {*pair} <= {name for other in found for name in other} and len(found) < 4:
            found[pair] = text
    return found


def _pair(first: str, second: str, a: Array, b: Array, varies: bool) -> tuple[float, str] | None:
    one_sign = all((v > 0).all() or (v < 0).all() for v in (a, b))
    x, y = (np.log(np.abs(a)), np.log(np.abs(b))) if one_sign else (a, b)
    if min(x.std(), y.std()) < 1e-9 or abs(rho := float(np.corrcoef(x, y)[0, 1])) < _TOGETHER:
        return None
    slope = float(x.std() / y.std()) * np.sign(rho)
    rest = x - slope * y
    spread = float(rest.std())
    if spread * _SHARPER > x.std():
        return None
    share, lead = spread / float(x.std()), f"{first} and {second} vary together: " if varies else "Only "
    is_found = "is" if varies else "is determined:"
    if not one_sign:
        text = f"{first} {'-' if slope > 0 else '+'} {abs(slope):.3g} {second} = {rest.mean():.4g} +- {spread:.2g}"
        return share, f"{lead}a combination {is_found} {text}."
    if abs(abs(slope) - 1.0) < 0.15:
        whole = float((a / b if slope > 0 else a * b).mean())
        kind = f"ratio {first}/{second}" if slope > 0 else f"product {first}*{second}"
        return share, f"{lead}the {kind} {is_found} {whole:.4g} +- {percent(spread)}."
    power = f"{first}*{second}^{-slope:.2g}"
    return share, f"{lead}{power} is {'constant' if varies else 'determined'}, to {percent(spread)}."


def silent(likelihood: Likelihood, u: Array, names: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Which motion would show the parameters that keep their prior.

    Each is moved across its range in states around the logged ones, spread four times as widely, under logged actions.

    Args:
        likelihood: Of the logged steps.
        u: Point of the prior for the other parameters.
        names: The parameters.
        rng: For the states and the choice of their actions.

    Returns:
        A sentence for each.
    """
    prior, motion, replay = likelihood.prior, likelihood.motion, likelihood.replay
    rows = rng.integers(len(motion), size=_PROBES)
    shuffled = rng.integers(len(motion), size=_PROBES)
    deltas = _WIDER * motion.scale * rng.standard_normal((_PROBES, len(motion.scale)))
    states, actions = replay.add(likelihood.path.states[rows], deltas), motion.actions[shuffled]
    holds, known = motion.holds[rows], {name: values[rows] for name, values in motion.known.items()}
    sentences = []
    for name in names:
        if name in replay.unidentifiable:
            sentences.append(f"{name} keeps its prior: {replay.unidentifiable[name]}.")
            continue
        values = prior.alone(name, np.array([0.05, 0.95])).tolist()
        ends = [
            likelihood.simulator.predict(states, actions, {**prior.params(u), name: value}, holds=holds, known=known)
            for value in values
        ]
        effect = np.abs(replay.difference(*ends) / motion.scale).max(axis=1)
        if not np.isfinite(effect).all() or effect.max() < _EFFECT:
            sentences.append(f"{name} keeps its prior: no step that can be replayed depends on it.")
            continue
        sentences.append(f"{name} keeps its prior: it shows {_where(likelihood, states, actions, effect)}.")
    return sentences


def _where(likelihood: Likelihood, states: Array, actions: Array, effect: Array) -> str:
    """In which motion an effect is largest."""
    if np.ptp(effect) < _EVEN * effect.max():
        return "in all motion alike, so log more of it, or with less noise"
    motion = likelihood.motion
    middle = likelihood.path.states.mean(axis=0)
    columns: list[tuple[str, Array]] = []
    for k, coordinate in enumerate(motion.coordinates):
        values = states[:, motion.places[k]] - middle[motion.places[k]]
        columns += [
            (f"{coordinate.name} is far above its mean", values),
            (f"{coordinate.name} is far below its mean", -values),
        ]
    if actions.ndim == 1:
        columns += [(f"the action is {choice}", (actions == choice) * 1.0) for choice in np.unique(actions).tolist()]
    else:
        columns += [(f"action {k} is large", np.abs(values)) for k, values in enumerate(actions.T)]
    columns = [(text, values) for text, values in columns if values.std() > 0]
    strengths = [float(scipy.stats.spearmanr(values, effect).statistic) for _, values in columns]
    best = int(np.nanargmax(strengths))
    seen = float(np.mean(effect > 0.1 * effect.max()))
    return f"when {columns[best][0]} (in {percent(seen)} of motion wider than the log's)"
