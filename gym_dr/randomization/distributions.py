"""One-dimensional distributions, each defined by its quantile function.

A distribution is a frozen, hashable value. ``ppf(u)`` maps uniforms in (0, 1) to values; the randomness comes from
outside, keyed and replayable (``sampler.py``). ``to_dict`` gives the form used in TOML and JSON files.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError, check_known
from gym_dr.options import plain
from gym_dr.randomization.normal import normal_cdf, normal_ppf


@dataclass(frozen=True)
class Distribution:
    """Base class of the distributions."""

    # its name in TOML and JSON files and on the command line; a field, so that Gymnasium, which writes keywords with
    # ``dataclasses.asdict``, writes a form that can be read
    distribution: str = field(default="", init=False, repr=False)

    def ppf(self, u: npt.ArrayLike) -> Array:
        """Quantile function.

        Args:
            u: Probabilities in (0, 1), any shape.

        Returns:
            float64 array of the shape of ``u``.
        """
        raise NotImplementedError

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value that can be drawn (or their limit)."""
        raise NotImplementedError

    @property
    def integral(self) -> bool:
        """Whether every value is a whole number."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """The form for TOML and JSON; ``distribution_from_dict`` restores an equal distribution."""
        values = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if not _is_default(self, f)}
        return {"distribution": self.distribution, **values}

    def __repr__(self) -> str:
        shown = [(f, getattr(self, f.name)) for f in fields(self) if not _is_default(self, f)]
        parts = [repr(value) if f.default is MISSING else f"{f.name}={value!r}" for f, value in shown]
        return f"{type(self).__name__}({', '.join(parts)})"


class _Bounded(Distribution):
    """Base class of distributions between ``low`` and ``high``."""

    low: float
    high: float

    @property
    def support(self) -> tuple[float, float]:
        return float(self.low), float(self.high)

    def _check_ordered(self) -> None:
        if not self.low < self.high:
            raise RandomizationError(
                f"{self!r}: expected low < high, got low={self.low} and high={self.high}. "
                "Use Constant for a fixed value."
            )


@dataclass(frozen=True, repr=False)
class Uniform(_Bounded):
    """Uniform distribution between ``low`` and ``high``."""

    distribution: str = field(default="uniform", init=False, repr=False)
    low: float  # lowest value
    high: float  # highest value

    def __post_init__(self) -> None:
        _to_floats(self, "low", "high")
        self._check_ordered()
        if not math.isfinite(self.high - self.low):
            raise RandomizationError(f"{self!r}: expected a range that float64 can hold, got {self.high} - {self.low}.")

    def ppf(self, u: npt.ArrayLike) -> Array:
        # clipped because rounding may carry low + span * u one ulp past high
        return np.clip(self.low + (self.high - self.low) * np.asarray(u, dtype=np.float64), self.low, self.high)


@dataclass(frozen=True, repr=False)
class LogUniform(_Bounded):
    """Log-uniform distribution between two positive ends: halving is as likely as doubling."""

    distribution: str = field(default="loguniform", init=False, repr=False)
    low: float  # lowest value, above 0
    high: float  # highest value

    def __post_init__(self) -> None:
        _to_floats(self, "low", "high")
        self._check_ordered()
        if self.low <= 0:
            raise RandomizationError(
                f"{self!r}: expected low > 0, got {self.low}. Use Uniform for ranges that reach 0."
            )

    def ppf(self, u: npt.ArrayLike) -> Array:
        log_low, log_high = math.log(self.low), math.log(self.high)
        values = np.exp(log_low + (log_high - log_low) * np.asarray(u, dtype=np.float64))
        return np.clip(values, self.low, self.high)


@dataclass(frozen=True, repr=False)
class Normal(_Bounded):
    """Normal distribution, optionally bounded.

    ``method="clip"`` moves values outside the bounds to the nearest bound, which then has positive probability;
    ``"truncate"`` cuts the density off at the bounds and rescales it.
    """

    distribution: str = field(default="normal", init=False, repr=False)
    mu: float  # mean, before bounds apply
    sigma: float  # standard deviation, before bounds apply
    low: float = -math.inf  # lowest value
    high: float = math.inf  # highest value
    method: str = "clip"  # "clip" or "truncate": what happens to values outside the bounds

    def __post_init__(self) -> None:
        _to_floats(self, "mu", "sigma", "low", "high", finite=("mu", "sigma"))
        if self.sigma <= 0:
            raise RandomizationError(f"{self!r}: expected sigma > 0, got {self.sigma}. Use Constant for a fixed value.")
        self._check_ordered()
        if not math.isfinite(abs(self.mu) + 9.0 * self.sigma):
            raise RandomizationError(f"{self!r}: expected draws that float64 can hold, got mu +- 9 sigma beyond it.")
        if self.method not in ("clip", "truncate"):
            raise RandomizationError(f"{self!r}: expected method 'clip' or 'truncate', got {self.method!r}.")
        if self.method == "truncate" and not self._mass() > 1e-300:
            raise RandomizationError(
                f"{self!r}: expected bounds that hold some probability, got practically none between low and high. "
                "Move the bounds or mu."
            )

    def ppf(self, u: npt.ArrayLike) -> Array:
        u = np.asarray(u, dtype=np.float64)
        if self.method == "clip":
            return np.clip(self.mu + self.sigma * normal_ppf(u), self.low, self.high)
        a, b = self._standardized()
        below, above = normal_cdf(a) + u * self._mass(), normal_cdf(-b) + (1.0 - u) * self._mass()
        upper = (below >= 1.0) | (a > 0.0)  # mirrored into the lower tail, where probabilities keep their precision
        scores = np.where(upper, -1.0, 1.0) * normal_ppf(np.where(upper, above, below))
        return np.clip(self.mu + self.sigma * scores, self.low, self.high)

    def _standardized(self) -> tuple[float, float]:
        return (self.low - self.mu) / self.sigma, (self.high - self.mu) / self.sigma

    def _mass(self) -> float:
        """Probability between the bounds, computed in the tail that keeps precision."""
        a, b = self._standardized()
        return float(normal_cdf(-a) - normal_cdf(-b)) if a > 0 else float(normal_cdf(b) - normal_cdf(a))


@dataclass(frozen=True, repr=False)
class Integer(_Bounded):
    """Whole numbers from ``low`` to ``high``, inclusive, equally likely."""

    distribution: str = field(default="integer", init=False, repr=False)
    low: int  # smallest number, included
    high: int  # largest number, included

    def __post_init__(self) -> None:
        for key in ("low", "high"):
            value = _number(self, key, getattr(self, key))
            if not value.is_integer() or abs(value) > 2**53:
                raise RandomizationError(
                    f"Integer: expected a whole number between -2**53 and 2**53 for {key}, got {value}."
                )
            object.__setattr__(self, key, int(value))
        self._check_ordered()

    def ppf(self, u: npt.ArrayLike) -> Array:
        count = self.high - self.low + 1
        values: Array = np.clip(self.low + np.floor(np.asarray(u, dtype=np.float64) * count), self.low, self.high)
        return values

    @property
    def integral(self) -> bool:
        return True


class _Discrete(Distribution):
    """Base class of distributions on a few values."""

    def _atoms(self) -> list[tuple[float, float]]:
        """The possible values, each with its probability."""
        raise NotImplementedError

    def ppf(self, u: npt.ArrayLike) -> Array:
        values, weights = np.transpose(self._atoms())
        return np.asarray(values[_pick(weights, np.asarray(u, dtype=np.float64))])

    @property
    def support(self) -> tuple[float, float]:
        return min(self._atoms())[0], max(self._atoms())[0]

    @property
    def integral(self) -> bool:
        return all(value.is_integer() for value, _ in self._atoms())


@dataclass(frozen=True, repr=False)
class Choice(_Discrete):
    """One of ``values``, equally likely or with the given ``probabilities``, which sum to 1."""

    distribution: str = field(default="choice", init=False, repr=False)
    values: tuple[float, ...]  # what may be drawn
    probabilities: tuple[float, ...] | None = None  # one for each value, with sum 1; None for equal ones

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _numbers(self, "values", self.values))
        if self.probabilities is not None:
            object.__setattr__(self, "probabilities", _numbers(self, "probabilities", self.probabilities))
            _check_weights(self, "probabilities", self.probabilities, len(self.values))
            if abs(math.fsum(self.probabilities) - 1.0) > 1e-9:
                raise RandomizationError(
                    f"{self!r}: expected probabilities that sum to 1, got {math.fsum(self.probabilities)}."
                )

    def _atoms(self) -> list[tuple[float, float]]:
        weights = self.probabilities or (1.0 / len(self.values),) * len(self.values)
        return [(value, weight) for value, weight in zip(self.values, weights, strict=True) if weight > 0]


@dataclass(frozen=True, repr=False)
class Bernoulli(_Discrete):
    """1 with probability ``p``, else 0."""

    distribution: str = field(default="bernoulli", init=False, repr=False)
    p: float  # probability of 1

    def __post_init__(self) -> None:
        _to_floats(self, "p")
        if not 0.0 <= self.p <= 1.0:
            raise RandomizationError(f"{self!r}: expected a probability between 0 and 1, got {self.p}.")

    def ppf(self, u: npt.ArrayLike) -> Array:
        return (np.asarray(u, dtype=np.float64) > 1.0 - self.p).astype(np.float64)

    def _atoms(self) -> list[tuple[float, float]]:
        return [(value, weight) for value, weight in ((0.0, 1.0 - self.p), (1.0, self.p)) if weight > 0]


@dataclass(frozen=True, repr=False)
class Constant(_Discrete):
    """Always ``value``."""

    distribution: str = field(default="constant", init=False, repr=False)
    value: float  # the value

    def __post_init__(self) -> None:
        _to_floats(self, "value")

    def _atoms(self) -> list[tuple[float, float]]:
        return [(self.value, 1.0)]


@dataclass(frozen=True, repr=False)
class Mixture(Distribution):
    """One of several distributions, with probability proportional to its weight (equal by default).

    The uniform picks a component, and its remainder goes through the component's ``ppf``. If the components' supports
    do not overlap and are listed in ascending order, this is the mixture's quantile function; otherwise the
    distribution is still correct, but a correlation with other parameters acts only within components.
    """

    distribution: str = field(default="mixture", init=False, repr=False)
    components: tuple[Distribution, ...]  # the distributions; in files, tables of the same form
    weights: tuple[float, ...] | None = None  # one for each component, at least 0; None for equal ones

    def __post_init__(self) -> None:
        if not isinstance(self.components, Sequence) or isinstance(self.components, str) or not self.components:
            raise RandomizationError(f"Mixture: expected a list of distributions, got {self.components!r}.")
        parts = tuple(distribution_from_dict(c) if isinstance(c, Mapping) else c for c in self.components)
        for part in parts:
            if not isinstance(part, Distribution):
                raise RandomizationError(f"Mixture: expected distributions, got {part!r}.")
        object.__setattr__(self, "components", parts)
        if self.weights is not None:
            object.__setattr__(self, "weights", _numbers(self, "weights", self.weights))
            _check_weights(self, "weights", self.weights, len(parts))

    def ppf(self, u: npt.ArrayLike) -> Array:
        u = np.asarray(u, dtype=np.float64)
        weights = self._normalized()
        picked = _pick(weights, u)
        start = np.concatenate(([0.0], np.cumsum(weights)[:-1]))
        out = np.empty(u.shape)
        for k, (part, weight) in enumerate(zip(self.components, weights, strict=True)):
            here = picked == k
            if here.any():
                # stays inside the open interval: a component's quantile at 0 or 1 may be infinite
                rest = np.clip((u[here] - start[k]) / weight, 2.0**-53, 1.0 - 2.0**-53)
                out[here] = part.ppf(rest)
        return out

    @property
    def support(self) -> tuple[float, float]:
        ends = [part.support for part, w in zip(self.components, self._normalized(), strict=True) if w > 0]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def integral(self) -> bool:
        return all(part.integral for part in self.components)

    def _normalized(self) -> tuple[float, ...]:
        weights = self.weights or (1.0,) * len(self.components)
        total = math.fsum(weights)
        return tuple(w / total for w in weights)


def uniform_outside(low: float, inner_low: float, inner_high: float, high: float) -> Mixture:
    """Uniform on [low, high] without [inner_low, inner_high]."""
    return Mixture((Uniform(low, inner_low), Uniform(inner_high, high)), (inner_low - low, high - inner_high))


DISTRIBUTIONS: dict[str, type[Distribution]] = {
    cls.distribution: cls for cls in (Uniform, LogUniform, Normal, Integer, Choice, Bernoulli, Constant, Mixture)
}


def distribution_from_dict(form: Mapping[str, Any]) -> Distribution:
    """Reads the form that ``Distribution.to_dict`` writes.

    Raises:
        RandomizationError: A field is missing or has an impossible value.
        UnknownNameError: There is no such distribution or field.
    """
    values = dict(form)
    name = values.pop("distribution", None)
    if not isinstance(name, str):
        raise RandomizationError(f"Expected a 'distribution' field ({', '.join(DISTRIBUTIONS)}), got {dict(form)!r}.")
    check_known("distribution", name, DISTRIBUTIONS)
    cls = DISTRIBUTIONS[name]
    known = {f.name: f for f in fields(cls) if f.init}
    for key in values:
        check_known(f"field of distribution {name!r}:", key, known)
    if missing := [key for key, f in known.items() if f.default is MISSING and key not in values]:
        raise RandomizationError(f"Distribution {name!r}: expected {', '.join(missing)}, got {dict(form)!r}.")
    return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Distribution):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _is_default(self: Distribution, f: Field[Any]) -> bool:
    return f.default is not MISSING and bool(getattr(self, f.name) == f.default)


def _number(self: Distribution, key: str, value: Any) -> float:
    value = value if isinstance(value, int | float) else plain(value)
    if isinstance(value, int | float | np.floating) and value == value:
        with contextlib.suppress(OverflowError):  # hundreds of digits
            return float(value)
    raise RandomizationError(f"{type(self).__name__}: expected a number for {key}, got {value!r}.")


def _numbers(self: Distribution, key: str, values: Any) -> tuple[float, ...]:
    if hasattr(values, "tolist"):  # an array or a tensor
        values = values.tolist()
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) == 0:
        raise RandomizationError(f"{type(self).__name__}: expected a list of numbers for {key}, got {values!r}.")
    numbers = tuple(_number(self, key, value) for value in values)
    if not all(map(math.isfinite, numbers)):
        raise RandomizationError(f"{type(self).__name__}: expected finite numbers for {key}, got {values!r}.")
    return numbers


def _to_floats(self: Distribution, *keys: str, finite: tuple[str, ...] | None = None) -> None:
    for key in keys:
        value = _number(self, key, getattr(self, key))
        if not math.isfinite(value) and (finite is None or key in finite):
            raise RandomizationError(f"{type(self).__name__}: expected a finite {key}, got {value}.")
        object.__setattr__(self, key, value)


def _check_weights(self: Distribution, key: str, weights: tuple[float, ...], count: int) -> None:
    if len(weights) != count:
        raise RandomizationError(f"{type(self).__name__}: expected {count} {key}, got {len(weights)}.")
    if min(weights) < 0 or not 0.0 < sum(weights) < math.inf:
        raise RandomizationError(f"{type(self).__name__}: expected {key} >= 0 with a finite sum > 0, got {weights}.")


def _pick(weights: npt.ArrayLike, u: Array) -> npt.NDArray[np.intp]:
    """Index of the weight whose share of (0, 1) each ``u`` falls into; zero weights are never picked."""
    ends = np.cumsum(weights)
    last = int(np.flatnonzero(np.asarray(weights))[-1])
    return np.minimum(np.searchsorted(ends, u, side="right"), last)
