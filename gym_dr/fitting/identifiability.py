"""Identifiability: which parameters and combinations a log determines, and which motion would show the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import scipy.stats

from gym_dr.arrays import Array
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.posterior import KEPT
from gym_dr.fitting.results import DETERMINED, NARROWED, PRIOR_KEPT
from gym_dr.wording import percent

_DETERMINED = 0.3  # contraction below which a parameter is determined
_TOGETHER = 0.9  # correlation from which only a combination is determined
_SHARPER = 3.0  # how many times narrower than its parts a combination must be
_PROBES = 1024  # states in which a silent parameter is tried
_WIDER = 4.0  # their standard deviation, in units of the log's
_EVEN = 1e-6  # share of the largest effect; smaller differences between states count as none
_EFFECT = 1e-9  # share of a coordinate's standard deviation that counts as no effect


def identified(contraction: float) -> str:
    """How well a log determines a parameter, by its standard deviation over that of the prior."""
    return DETERMINED if contraction < _DETERMINED else NARROWED if contraction < KEPT else PRIOR_KEPT


def combinations(
    values: Mapping[str, Array], sure: Collection[str] = (), varies: bool = False
) -> dict[tuple[str, str], str]:
    """Pairs of parameters whose ratio, product or other combination is better determined than each alone.

    Args:
        values: name -> values of all particles.
        sure: Parameters that are determined; pairs of these need no sentence.
        varies: Whether the particles are systems of a population, of which each episode may determine both parameters.

    Returns:
        A sentence for each pair, the best determined first; at most four.
    """
    names = list(values)
    sentences: list[tuple[float, str, tuple[str, str]]] = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            known = first in sure and second in sure
            sentence = None if known else _pair(first, second, values[first], values[second], varies)
            if sentence:
                sentences.append((*sentence, (first, second)))
    return {pair: text for _, text, pair in sorted(sentences)[:4]}


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
    share, together = spread / float(x.std()), f"{first} and {second} vary together"
    if not one_sign:
        sign = "-" if slope > 0 else "+"
        text = f"{first} {sign} {abs(slope):.3g} {second} = {rest.mean():.4g} +- {spread:.2g}"
        lead = together if varies else "Only a combination is determined"
        return share, f"{lead}: {text}."
    if abs(abs(slope) - 1.0) < 0.15:
        whole = float((a / b if slope > 0 else a * b).mean())
        kind = f"ratio {first}/{second}" if slope > 0 else f"product {first}*{second}"
        lead = f"{together}: the {kind} is" if varies else f"Only the {kind} is determined:"
        return share, f"{lead} {whole:.4g} +- {percent(spread)}."
    power = f"{first}*{second}^{-slope:.2g}"
    lead = f"{together}: {power} is constant" if varies else f"Only {power} is determined"
    return share, f"{lead}, to {percent(spread)}."


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
    states, actions = replay.add(motion.before[rows], deltas), motion.actions[shuffled]
    sentences = []
    for name in names:
        if name in replay.unidentifiable:
            sentences.append(f"{name} keeps its prior: {replay.unidentifiable[name]}.")
            continue
        values = prior.alone(name, np.array([0.05, 0.95])).tolist()
        ends = [likelihood.simulator.predict(states, actions, {**prior.params(u), name: value}) for value in values]
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
    middle = motion.before.mean(axis=0)
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
