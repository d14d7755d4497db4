"""Hypothesis strategies for distributions, rules and randomizations, shared by the whole suite."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from gym_dr.randomization.distributions import (
    Bernoulli,
    Choice,
    Constant,
    Distribution,
    Integer,
    LogUniform,
    Mixture,
    Normal,
    Uniform,
)
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Add, Correlation, Randomization, Rule, Scale

# .ci/run-all tries more; a busy machine must not fail a test for being slow
few = settings(max_examples=int(os.environ.get("GYMDR_EXAMPLES", "12")), deadline=None)

LEAST, MOST = 2.0**-53, 1.0 - 2.0**-53  # every keyed uniform is between these

probabilities = st.floats(LEAST, MOST)  # what ppf is given
seeds = st.integers(0, 2**64 - 1)  # seed words
names = st.text(st.characters(codec="utf-8"), max_size=12)  # of parameters


@st.composite
def intervals(draw: st.DrawFn, low: float, high: float) -> tuple[float, float]:
    """Two floats with low <= first < second <= high, neither too near to the other."""
    start = low + (high - low) * draw(st.floats(0.0, 0.9))
    return start, min(high, start + (high - start) * draw(st.floats(0.01, 1.0)))


@st.composite
def normals(draw: st.DrawFn, low: float, high: float) -> Normal:
    """Normal distributions with bounds in [low, high], a mean between them and a width that fits."""
    first, second = draw(intervals(low, high))
    mu = first + (second - first) * draw(st.floats(0.0, 1.0))
    sigma = (second - first) * draw(st.floats(0.05, 10.0))
    return Normal(mu, sigma, low=first, high=second, method=draw(st.sampled_from(["clip", "truncate"])))


@st.composite
def choices(draw: st.DrawFn, low: float, high: float, whole: bool = False) -> Choice:
    """Choices of numbers in [low, high], half of them with probabilities."""
    number = st.integers(math.ceil(low), math.floor(high)).map(float) if whole else st.floats(low, high)
    values = tuple(draw(st.lists(number, min_size=1, max_size=5)))
    if draw(st.booleans()):
        return Choice(values)
    weights = draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)).filter(any))
    return Choice(values, tuple(weight / sum(weights) for weight in weights))


@st.composite
def integers(draw: st.DrawFn, low: float, high: float) -> Integer:
    """Integer distributions in [low, high]."""
    first = draw(st.integers(math.ceil(low), math.floor(high) - 1))
    return Integer(first, draw(st.integers(first + 1, math.floor(high))))


def wide_distributions() -> st.SearchStrategy[Any]:
    """Normal, uniform and log-uniform distributions with any numbers that float64 can hold, and open ends.

    Bounds of a normal are so far apart that rounding leaves something between them.
    """
    number, positive = st.floats(-1e300, 1e300), st.floats(1e-300, 1e300)
    normal = st.builds(
        lambda low, width, sigma, method, sides: Normal(
            low,
            sigma,
            low=low if sides != "high" else -math.inf,
            high=low + max(width, 1e-6 * abs(low), 1e-6 * sigma) if sides != "low" else math.inf,
            method=method,
        ),
        *(number, positive.filter(lambda w: w > 1.0), positive),
        *(st.sampled_from(["clip", "truncate"]), st.sampled_from(["low", "high", "both"])),
    )
    ends = st.tuples(positive, positive).map(sorted).filter(lambda pair: pair[0] < pair[1])
    return st.one_of(normal, ends.map(lambda pair: Uniform(*pair)), ends.map(lambda pair: LogUniform(*pair)))


def simple_distributions(low: float = -1e3, high: float = 1e3, *, whole: bool = False) -> st.SearchStrategy[Any]:
    """All distributions but mixtures, with a support inside of [low, high]."""
    options: list[st.SearchStrategy[Any]] = [choices(low, high, whole)]
    if math.floor(high) > math.ceil(low):
        options.append(integers(low, high))
    if low <= 0.0 and high >= 1.0:
        options.append(st.floats(0.0, 1.0).map(Bernoulli))
    if whole:
        options.append(st.integers(math.ceil(low), math.floor(high)).map(Constant))
    else:
        options += [
            intervals(low, high).map(lambda ends: Uniform(*ends)),
            normals(low, high),
            st.floats(low, high).map(Constant),
        ]
        if high > 1e-6:
            options.append(intervals(max(low, 1e-9), high).map(lambda ends: LogUniform(*ends)))
    return st.one_of(options)


def distributions(low: float = -1e3, high: float = 1e3, *, whole: bool = False) -> st.SearchStrategy[Distribution]:
    """All distributions, with a support inside of [low, high]; ``whole`` for those of whole numbers alone."""
    simple = simple_distributions(low, high, whole=whole)

    @st.composite
    def mixtures(draw: st.DrawFn) -> Mixture:
        parts = draw(st.lists(simple, min_size=1, max_size=3))
        weights = draw(st.none() | st.lists(st.floats(0.1, 10.0), min_size=len(parts), max_size=len(parts)))
        return Mixture(tuple(parts), weights if weights is None else tuple(weights))

    return st.one_of(simple, mixtures())


def rules(param: Param) -> st.SearchStrategy[Rule]:
    """Rules that keep a parameter with finite bounds inside of them."""
    low, high, nominal = param.low, param.high, param.nominal
    whole = param.kind != "float"
    options: list[st.SearchStrategy[Any]] = [distributions(low, high, whole=whole).map(Rule)]
    if whole:
        options.append(distributions(low - nominal, high - nominal, whole=True).map(Add))
        return st.one_of(options)
    inside = 0.999  # so that rounding in nominal + draw or nominal x draw stays within the bounds
    options.append(distributions((low - nominal) * inside, (high - nominal) * inside).map(Add))
    if nominal != 0.0:
        ends = sorted((1.0 + (low / nominal - 1.0) * inside, 1.0 + (high / nominal - 1.0) * inside))
        options.append(distributions(*ends).map(Scale))
    return st.one_of(options)


@st.composite
def correlations(draw: st.DrawFn, among: list[str]) -> Correlation:
    """Correlations of two or more of the names: products of triangular matrices whose rows have length 1."""
    chosen = draw(st.permutations(among))[: draw(st.integers(2, min(4, len(among))))]
    factor = np.eye(len(chosen))
    for row in range(1, len(chosen)):
        factor[row, :row] = draw(st.lists(st.floats(-1.0, 1.0), min_size=row, max_size=row))
        factor[row] /= np.linalg.norm(factor[row])
    return Correlation(tuple(chosen), tuple(map(tuple, (factor @ factor.T).tolist())))


@st.composite
def randomizations(draw: st.DrawFn, space: ParamSpace, min_size: int = 0) -> Randomization:
    """Randomizations that are valid for a space whose bounds are finite; some correlated."""
    chosen = draw(st.lists(st.sampled_from(list(space)), unique=True, min_size=min_size))
    read = {name: draw(rules(space[name])) for name in chosen}
    correlated = len(chosen) >= 2 and draw(st.booleans())
    return Randomization(read, correlation=draw(correlations(chosen)) if correlated else None)
