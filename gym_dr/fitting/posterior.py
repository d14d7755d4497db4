"""From particles to a randomization: a distribution for each parameter, and their correlation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.stats

from gym_dr.arrays import Array
from gym_dr.fitting.prior import Prior
from gym_dr.fitting.sensors import is_of_sensor
from gym_dr.randomization.distributions import Choice, Constant, Distribution, Mixture, Normal, Uniform
from gym_dr.randomization.spec import Correlation, Randomization, Rule

KEPT = 0.9  # contraction from which a parameter keeps its prior
_BINS = 10  # of equal probability, where a normal distribution does not fit
_FITS = 0.04  # largest distance of distribution functions
_CORRELATED = 0.1  # smallest correlation that matters
_INDEPENDENT = 1e-4  # share of independence, which keeps a correlation matrix positive definite


def randomization_of(
    prior: Prior,
    values: Mapping[str, Array],
    contraction: Mapping[str, float],
    others: Mapping[str, Distribution],
    margin: float = 1.0,
) -> Randomization:
    """The randomization of particles.

    Args:
        prior: Whose bounds are kept.
        values: name -> values of all particles.
        contraction: name -> standard deviation of the particles over that of the prior.
        others: Distributions of disturbances.
        margin: Factor by which to widen ranges.

    Returns:
        A randomization that includes the known values, without sensors: a policy sees corrected readings.
    """
    values = {name: drawn for name, drawn in values.items() if not is_of_sensor(name)}
    rules: dict[str, Rule] = {}
    for name, drawn in values.items():
        rule = prior.randomization[name]
        if contraction[name] < KEPT:  # by the same operation as before
            nominal = prior.space[name].nominal
            numbers = drawn / nominal if rule.operation == "scale" else drawn - nominal * (rule.operation == "add")
            rule = Rule(marginal(numbers, *rule.distribution.support, margin), rule.operation)
        rules[name] = rule
    for name, value in prior.known.items():
        if not is_of_sensor(name):
            rules[name] = Rule(Constant(value))
    rules |= {name: Rule(distribution) for name, distribution in others.items()}
    return Randomization(rules, correlation=_correlation(values))


def marginal(values: Array, low: float, high: float, margin: float = 1.0) -> Distribution:
    """A distribution within bounds: truncated normal if that fits, else bins of equal probability."""
    mean, deviation = float(values.mean()), max(float(values.std()), 1e-12 * max(1.0, abs(float(values.mean()))))
    ends = (low - mean) / deviation, (high - mean) / deviation
    normal = scipy.stats.truncnorm(*ends, loc=mean, scale=deviation)
    if scipy.stats.kstest(values, normal.cdf).statistic < _FITS:
        return Normal(mean, margin * deviation, low, high, method="truncate")
    middle = float(np.median(values))
    edges = np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1))
    edges = np.unique(np.clip(middle + margin * (edges - middle), low, high))
    if len(edges) < 2:
        return Constant(middle)
    shares = np.histogram(np.clip(middle + margin * (values - middle), low, high), edges)[0] / len(values)
    kept = [(Uniform(a, b), float(w)) for a, b, w in zip(edges[:-1], edges[1:], shares, strict=True) if w > 0]
    if len(kept) == 1:
        return kept[0][0]
    return Mixture(tuple(part for part, _ in kept), tuple(weight for _, weight in kept))


def delay_distribution(delays: tuple[int, ...], probabilities: Array) -> Distribution:
    """A choice of delays with their probabilities, or a constant."""
    kept = probabilities > 1e-3
    chosen = [float(d) for d, keep in zip(delays, kept, strict=True) if keep]
    if len(chosen) == 1:
        return Constant(chosen[0])
    weights = probabilities[kept] / probabilities[kept].sum()
    return Choice(tuple(chosen), tuple(weights.tolist()))


def noise_distribution(measured: Array, margin: float, prior: Distribution) -> Distribution:
    """The range of ``obs_noise`` that covers the measurement noise, within the bounds of its prior.

    Args:
        measured: Standard deviations of measurement noise, in units of the observation, ``(n,)``.
        margin: Factor by which to widen the range.
        prior: Of ``obs_noise``.
    """
    ends = np.array([measured.min() / margin, measured.max() * margin])
    low, high = np.clip(ends, *prior.support).tolist()
    return Constant(high) if high - low < 1e-3 * high else Uniform(low, high)


def _correlation(values: Mapping[str, Array]) -> Correlation | None:
    """Correlation of the normal scores of the particles; None if it is negligible."""
    names = tuple(sorted(values))
    if len(names) < 2:
        return None
    count = len(values[names[0]])
    ranks = np.stack([scipy.stats.rankdata(values[name], method="ordinal") for name in names])
    matrix = np.corrcoef(scipy.stats.norm.ppf((ranks - 0.5) / count))
    if np.abs(matrix - np.eye(len(names))).max() < _CORRELATED:
        return None
    matrix = (1.0 - _INDEPENDENT) * matrix + _INDEPENDENT * np.eye(len(names))
    np.fill_diagonal(matrix, 1.0)
    return Correlation(names, tuple(tuple(row) for row in matrix.round(6).tolist()))
