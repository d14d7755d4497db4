"""Sensitivity of a policy to parameters: Sobol indices of its return, a noisy function, from some thousand episodes.

Estimators that only compare pairs of evaluations (Saltelli's, Jansen's and others) are unbiased but noisy, and a
regression misses what its terms cannot express. Here a regression explains what it can, and pairs estimate the rest:

1. The function is regressed on products of orthonormal polynomials, one of each parameter, so that an index is a sum of
   squared coefficients (polynomial chaos: Sudret 2008, "Global sensitivity analysis using polynomial chaos
   expansions").
2. The evaluations are independent parts, in two halves. The regression of each half predicts the other (cross-fitting:
   Chernozhukov et al. 2018, "Double/debiased machine learning for treatment and structural parameters"), and the
   residuals correct its coefficients (control variates: Qian et al. 2018, "Multifidelity Monte Carlo estimation of
   variance and sensitivity indices"). A squared coefficient is the mean product of its estimates from two parts.
   Neither shrinkage nor noise biases it, so the estimate of a zero square is below 0 half of the time.
3. The rest, which polynomials cannot express, is known from pairs of evaluations that differ in one parameter only
   (total index: Jansen 1999, "Analysis of variance designs for model output") or share one only (first order: Saltelli
   et al. 2010, "Variance based sensitivity analysis of model output", table 2 b). They are weighted by their precision
   against the prior that an index of the rest lies between 0 and the whole rest.

Intervals come from the differences between parts, and end at 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.evaluation.ranges import SEQUENCES
from gym_dr.evaluation.sets import NO_NEEDS, CellSet, Needs
from gym_dr.evaluation.statistics import CONFIDENCE, as_intervals
from gym_dr.randomization.space import acts

_QUANTILES = 2**14  # that describe the distribution of a parameter

Terms = npt.NDArray[np.intp]  # (terms, d): degrees of the polynomials whose product is a term
MAX_TERMS = 300  # of the regression
MAX_DEGREE = 16  # of a polynomial
MIN_PARTS = 4  # two in each half
_PENALTIES = np.geomspace(1e-10, 1e2, 25)  # of a regression whose terms have variance 1
_LEAST_NORM = 1e-3  # of a polynomial's part that lower degrees do not express; a smaller part rests on few rare values


def sensitivity(returns: Array, cells: CellSet, needs: Needs = NO_NEEDS) -> dict[str, Any]:
    """Sobol indices of a cell's mean return, corrected for noise; see ``sobol_indices``.

    The first-order index of a parameter is the share of the variance that it explains alone; the total index adds all
    of its interactions. A mean over few episodes also varies with other random influences: terrain, pushes, sampled
    actions. ``noise`` is their share of the variance, estimated from the variance within cells. Cells share no seeds,
    so their noise is independent.

    A parameter that has no effect in some cells, such as the power of wind that does not blow, has the indices of the
    others: shares of the variance between the points in whose cells it has an effect.

    Estimates are unbiased rather than positive: a parameter without effect is estimated below 0 half of the time, and
    its interval begins at 0. Intervals take the Sobol sequences of a set as independent. With a single noisy episode
    per cell, intervals are too wide rather than too narrow.

    Args:
        returns: Shape ``(cells, episodes)`` of a set with ``points``.
        cells: The set.
        needs: Parameter -> the parameters of which one must not be 0 for it to have an effect -> nominal values.

    Returns:
        ``parameters``, ``first_order`` and ``total`` (value, low, high for each), and ``noise``, which is None if cells
        have only one episode; total indices then include it. An index is None if returns do not vary, or if the
        parameter has the same value in all cells. Correlated parameters and fewer than 4 points have no indices but a
        ``reason``, which is None otherwise.
    """
    n, d = cells.points or 0, len(cells.names)
    if reason := _no_indices(cells):
        return {"parameters": [], "first_order": [], "total": [], "noise": None, "reason": reason}
    quantiles = list(cells.quantiles((np.arange(_QUANTILES) + 0.5) / _QUANTILES).T)
    values, outputs = cells.values.reshape(d + 2, n, d), returns.reshape(d + 2, n, -1)
    shares, noise = _shares(outputs, values, quantiles)
    for i, name in enumerate(cells.names):
        needed = needs.get(name, {})
        points = acts(needed, cells.columns, cells.num_cells).reshape(d + 2, n).all(0)
        if not points.all():
            # of a single parameter that it needs, only values other than 0 are left
            left = [q[q != 0] if [*needed] == [other] else q for other, q in zip(cells.names, quantiles, strict=True)]
            shares[:, i] = _shares(outputs[:, points], values[:, points], left)[0][:, i]
    first, total = (as_intervals(*rows.T) for rows in shares)
    return {
        "parameters": list(cells.names),
        "first_order": first,
        "total": total,
        "noise": noise if returns.shape[1] > 1 else None,
        "reason": None,
    }


def _shares(outputs: Array, values: Array, quantiles: Sequence[Array]) -> tuple[Array, float | None]:
    """First-order and total indices ``(2, d, 3)``, NaN where there are none, and the share of noise.

    Args:
        outputs: Returns at the points of A, of B and of A with each column from B, ``(d + 2, points, episodes)``.
        values: The parameters there, ``(d + 2, points, d)``.
        quantiles: Of each parameter.
    """
    d, n = values.shape[2], values.shape[1]
    shares = np.full((2, d, 3), np.nan)
    # the most points that even parts of one size leave
    parts = max(range(MIN_PARTS, min(n, SEQUENCES) + 1, 2), key=lambda p: (n // p * p, p), default=0)
    n = parts and n // parts * parts
    outputs, values = outputs[:, :n], values[:, :n]
    varied = [i for i in range(d) if n and np.ptp(values[..., i]) > 0 and np.ptp(quantiles[i]) > 0]
    if not varied or not np.ptp(outputs.mean(-1)) > 0:
        return shares, None
    rows = [0, 1, *(2 + i for i in varied)]  # of A, of B, and of A with a parameter from B
    functions = [orthonormal(values[rows][..., i], quantiles[i]) for i in varied]
    if (found := sobol_indices(outputs[rows], functions, parts)) is None:
        return shares, None
    shares[:, varied] = found.first_order, found.total
    return shares, found.noise


def _no_indices(cells: CellSet) -> str:
    """Why a set has no Sobol indices; empty if it has them."""
    if cells.correlated:
        return (
            "they divide the variance between independent parameters, and "
            f"{' and '.join(cells.correlated)} are correlated"
        )
    if (cells.points or 0) < MIN_PARTS:
        return f"they need at least {MIN_PARTS} points, got {cells.points}"
    return ""


# ---- the estimator ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SobolIndices:
    """Shares of the variance of a mean over repeats: the value and the ends of its 95 % interval."""

    first_order: Array  # (d, 3)
    total: Array  # (d, 3)
    noise: float  # a value only


def sobol_indices(outputs: Array, functions: Sequence[Array], parts: int) -> SobolIndices | None:
    """First-order and total Sobol indices of a function of d independent parameters.

    Args:
        outputs: Repeated evaluations at the points of A, of B, and of A with the column of each parameter from B, shape
            ``(d + 2, points, repeats)``. With one repeat, noise is unknown and counts as variance of the function.
        functions: From ``orthonormal`` for each parameter, at the same points: shape ``(d + 2, points, degrees)``.
        parts: Number of independent parts, even and at least ``MIN_PARTS``. All have equally many neighboring points.

    Returns:
        The indices; None if the outputs vary too little to tell their variance from 0.
    """
    means, repeats = outputs.mean(-1) - outputs.mean(), outputs.shape[-1]
    noise = outputs.var(-1, ddof=1) / repeats if repeats > 1 else np.zeros_like(means)
    terms = _terms([f.shape[-1] for f in functions], min(MAX_TERMS, means.size // 4))
    coefficients, errors, residuals = _cross_fit(means, functions, terms, parts)

    def in_parts(values: Array) -> Array:
        own = values.reshape(-1, parts, means.shape[1] // parts).mean((0, 2))
        return np.stack([own, own])

    chance, left = in_parts(noise), _products(errors)
    rest = in_parts(residuals**2 - noise) - left.sum(-1)
    whole = _products(coefficients)[..., 1:].sum(-1) + rest + chance
    if not whole[0].mean() > 0.0:
        return None
    fit = _Fit(coefficients, errors, rest, whole)
    a, b, *mixed = residuals
    d, order = len(functions), np.count_nonzero(terms, axis=1)
    first, total = [], []
    for i, ab in enumerate(mixed):
        involved = terms[:, i] > 0
        alone, any_way = in_parts(b * (ab - a)), in_parts(((a - ab) ** 2 - noise[0] - noise[2 + i]) / 2)
        # A smooth function of one parameter leaves nothing, hence 0. If d parameters and their interactions split the
        # rest at random (a flat Dirichlet distribution), a share squared is 2 / ((d + 1) (d + 2)) on average.
        first.append(fit.index(involved & (order == 1), alone, center=0.0, spread=2 / ((d + 1) * (d + 2))))
        total.append(fit.index(involved, any_way, center=1 / 2, spread=1 / 12))  # any share is equally likely
    return SobolIndices(np.array(first), np.array(total), float(chance[0].mean() / whole[0].mean()))


def orthonormal(values: Array, quantiles: Array) -> Array:
    """Polynomials of a parameter's rank, orthonormal under its distribution and orthogonal to constants.

    Equal values, as of a switch or at a bound, share the mean of their ranks.

    Args:
        values: Values of the parameter, shape ``(...)``.
        quantiles: Its values at evenly spaced probabilities, shape ``(N,)``.

    Returns:
        Shape ``(..., degrees)``: degrees 1 to ``MAX_DEGREE``, or fewer if the parameter has few values; none if it has
        only one.
    """
    from numpy.polynomial.legendre import legvander

    distinct, counts = np.unique(quantiles, return_counts=True)
    weights = counts / counts.sum()
    ranks = np.cumsum(weights) - weights / 2
    mixing = np.linalg.qr(np.sqrt(weights)[:, None] * legvander(2 * ranks - 1, min(MAX_DEGREE, len(distinct) - 1)))[1]
    degrees = int(np.argmax(np.append(np.abs(np.diag(mixing)) < _LEAST_NORM, True)))
    raw = legvander(2 * np.interp(values, distinct, ranks) - 1, max(degrees - 1, 0))
    return np.asarray((raw @ np.linalg.inv(mixing[:degrees, :degrees]))[..., 1:])


@dataclass(frozen=True)
class _Fit:
    """A regression and its residuals.

    ``rest`` and ``whole`` are estimates, of shape ``(2, parts)``: the mean of the first row is the estimate, and the
    second row has the influence of each part on it. For a mean over parts both are the same; a product of two parts has
    twice the influence, since each part is in both factors.
    """

    coefficients: Array  # (parts, 1 + terms), the constant first
    errors: Array  # (parts, 1 + terms): coefficients of the residuals, which the coefficients include
    rest: Array  # the variance of what the terms cannot express
    whole: Array  # the variance of a mean over repeats

    def index(self, terms: Mask, pairs: Array, *, center: float, spread: float) -> tuple[float, float, float]:
        """A share of the whole variance: squared coefficients, and a share of the rest.

        The share of the rest is a linear Bayes estimate from pairs (Hartigan 1969, "Linear Bayesian methods").

        Args:
            terms: The terms that count.
            pairs: The same share of the residuals' variance by pairs of evaluations, an estimate like ``rest``.
            center: Mean of the prior, as a share of the rest.
            spread: Variance of the prior.

        Returns:
            Value, lower and upper end.
        """
        from scipy import stats  # heavy

        counted, parts = np.append(False, terms), pairs.shape[1]
        by_pairs = pairs - _products(self.errors[:, counted]).sum(-1)
        prior = spread * self.rest[0].mean() ** 2
        weight = prior / (prior + by_pairs[1].var(ddof=1) / parts) if prior > 0.0 else 0.0
        variance = _products(self.coefficients[:, counted]).sum(-1)
        variance += (1.0 - weight) * center * self.rest + weight * by_pairs
        share = variance[0].mean() / self.whole[0].mean()
        influence = variance[1] - share * self.whole[1]
        # Influences count the noise of a product twice, once for each factor (its variance is that of a U-statistic:
        # Hoeffding 1948, "A class of statistics with asymptotically normal distribution").
        in_errors = (1.0 - weight) * center + weight * counted
        once = _noise_of_products((self.coefficients, counted), (self.errors, -in_errors))
        squared_error = max(influence.var(ddof=1) - once, once) / parts + (1.0 - weight) * prior
        # Influences are products, whose tails make their variance as uncertain as that of half as many normal values
        # (a kurtosis of 5; degrees of freedom by Satterthwaite 1946, "An approximate distribution of estimates of
        # variance components").
        quantile = stats.t.ppf(0.5 + CONFIDENCE / 2, parts / 2 - 1)
        margin = float(quantile) * math.sqrt(squared_error) / self.whole[0].mean()
        return share, min(max(share - margin, 0.0), 1.0), min(max(share + margin, 0.0), 1.0)


def _products(values: Array) -> Array:
    """Unbiased squares of means over independent parts, from products of two parts of the same half.

    Args:
        values: Shape ``(parts, ...)``.

    Returns:
        Estimates as in ``_Fit``, shape ``(2, parts, ...)``.
    """
    halves = values.reshape(2, len(values) // 2, *values.shape[1:])
    others = (halves.sum(1, keepdims=True) - halves) / (halves.shape[1] - 1)
    own = (halves * others).reshape(values.shape)
    return np.stack([own, 2.0 * own])


def _noise_of_products(*factors: tuple[Array, Array]) -> float:
    """The variance of sums of ``_products`` of means that are 0, times the number of parts.

    Args:
        factors: Values of parts, shape ``(parts, n)``, and the weights of their products, ``(n,)``.
    """
    half = len(factors[0][0]) // 2
    kernel = np.zeros((2, half, half))
    for values, weights in factors:
        halves = values.reshape(2, half, -1)
        centered = halves - halves.mean(1, keepdims=True)
        kernel += (centered * weights) @ centered.swapaxes(1, 2)
    return 2.0 * float(np.var(kernel[:, ~np.eye(half, dtype=bool)])) / (half - 1)


def _cross_fit(means: Array, functions: Sequence[Array], terms: Terms, parts: int) -> tuple[Array, Array, Array]:
    """Regresses the points of each half of the parts on those of the other half.

    Returns:
        Coefficients corrected by residuals, ``(parts, 1 + terms)``; that correction; residuals, of the shape of
        ``means``.
    """
    size, count = means.shape[1] // parts, 1 + len(terms)
    blocks = [slice(part * size, (part + 1) * size) for part in range(parts)]
    half_of = np.arange(parts) * 2 // parts
    gram, moment = np.zeros((2, count, count)), np.zeros((2, count))
    for half, rows in zip(half_of, blocks, strict=True):  # one after the other, since all may not fit into memory
        x = _design(functions, terms, rows)
        gram[half] += x.T @ x * 2 / means.size
        moment[half] += x.T @ means[:, rows].ravel() * 2 / means.size
    scales = 1.0 / np.maximum(terms, 1).prod(1)  # smooth functions have small coefficients of high degrees
    fits = np.stack([_ridge(gram[1 - half], moment[1 - half], scales) for half in (0, 1)])
    losses = np.einsum("hcp,hcd,hdp->p", fits, gram, fits) - 2.0 * np.einsum("hc,hcp->p", moment, fits)
    fitted = fits[half_of, :, int(np.argmin(losses))]
    residuals, errors = np.empty_like(means), np.empty((parts, count))
    for part, rows in enumerate(blocks):
        x = _design(functions, terms, rows)
        left = means[:, rows].ravel() - x @ fitted[part]
        residuals[:, rows], errors[part] = left.reshape(-1, size), x.T @ left / left.size
    return fitted + errors, errors, residuals


def _ridge(gram: Array, moment: Array, scales: Array) -> Array:
    """Ridge regression with each of ``_PENALTIES``; the constant is free.

    Args:
        gram: Mean products of two terms, the constant first, shape ``(1 + terms, 1 + terms)``.
        moment: Mean products of a term and the function, shape ``(1 + terms,)``.
        scales: Expected relative size of each term's coefficient.

    Returns:
        Coefficients, shape ``(1 + terms, penalties)``.
    """
    center, mean = gram[0, 1:], moment[0]
    values, vectors = np.linalg.eigh(scales[:, None] * (gram[1:, 1:] - np.outer(center, center)) * scales)
    projected = vectors.T @ (scales * (moment[1:] - center * mean))
    slopes = scales[:, None] * (vectors @ (projected[:, None] / (np.maximum(values, 0.0)[:, None] + _PENALTIES)))
    return np.vstack([mean - center @ slopes, slopes])


def _design(functions: Sequence[Array], terms: Terms, rows: slice) -> Array:
    """The constant and the terms at some points, shape ``(points, 1 + terms)``."""
    x = np.ones((*functions[0][:, rows].shape[:2], 1 + len(terms)))
    for degrees, values in zip(terms.T, functions, strict=True):
        x[..., 1:][..., degrees > 0] *= values[:, rows][..., degrees[degrees > 0] - 1]
    return x.reshape(-1, x.shape[-1])


def _terms(degrees: Sequence[int], limit: int) -> Terms:
    """The most terms of a hyperbolic cross that are within a limit (Blatman and Sudret 2011, "Adaptive sparse PCE").

    Args:
        degrees: The highest degree of each parameter.
        limit: Number of terms; all terms of degree 1 in one parameter are included, even beyond the limit.
    """
    found = _hyperbolic_cross(degrees, 2)
    for bound in range(3, 2 * MAX_DEGREE):
        more = _hyperbolic_cross(degrees, bound)
        if len(more) > limit:
            break
        found = more
    return np.array(found, dtype=np.intp).reshape(-1, len(degrees))


def _hyperbolic_cross(degrees: Sequence[int], bound: int) -> list[list[int]]:
    """Terms whose product of degrees + 1 is within a bound; terms of one parameter may have almost twice the degree."""
    found = []
    for i, highest in enumerate(degrees):
        later = degrees[i + 1 :]
        for power in range(1, min(highest, 2 * bound - 3) + 1):
            found.append([0] * i + [power] + [0] * len(later))
            rest = bound // (power + 1)
            found += [[0] * i + [power, *others] for others in _products_within(later, rest) if any(others)]
    return found


def _products_within(degrees: Sequence[int], bound: int) -> list[list[int]]:
    """All choices of degrees whose product of degrees + 1 is within a bound of at least 1."""
    if bound < 2 or not degrees:
        return [[0] * len(degrees)] if bound else []
    highest, *later = degrees
    return [
        [power, *others]
        for power in range(min(highest, bound - 1) + 1)
        for others in _products_within(later, bound // (power + 1))
    ]
