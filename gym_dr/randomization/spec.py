"""Randomizations: parameter name -> rule, with optional correlations, in every form that users write.

A rule is a distribution and an operation, which together give a parameter its value.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError, check_known, located, shortened
from gym_dr.randomization.distributions import DISTRIBUTIONS, Constant, Distribution, Uniform, distribution_from_dict


@dataclass(frozen=True)
class Rule:
    """How a parameter gets its value: the draw itself, or the draw applied to the nominal value."""

    distribution: Distribution
    operation: str = "absolute"  # "absolute": the draw; "scale": nominal x draw; "add": nominal + draw
    shared: bool = False  # whether a pattern of names draws one value for all that it matches

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, Distribution):
            inner = as_rule(self.distribution)
            if inner.operation != "absolute":
                raise RandomizationError(f"expected a distribution inside Scale, Add or Rule, got {inner!r}.")
            object.__setattr__(self, "distribution", inner.distribution)
        check_known("operation", self.operation, ("absolute", "scale", "add"))
        if not isinstance(self.shared, bool):
            raise RandomizationError(f"shared: expected True or False, got {shortened(self.shared)}.")

    def apply(self, nominal: float, drawn: npt.ArrayLike) -> Array:
        """The parameter's values for drawn numbers; always starts from nominal, so values never drift."""
        drawn = np.asarray(drawn, dtype=np.float64)
        if self.operation == "scale":
            return nominal * drawn
        return nominal + drawn if self.operation == "add" else drawn

    def support(self, nominal: float) -> tuple[float, float]:
        """Smallest and largest value that the parameter can take."""
        if self.operation == "scale" and nominal == 0.0:
            return 0.0, 0.0  # also of infinite draws
        ends = [float(self.apply(nominal, end)) for end in self.distribution.support]
        return min(ends), max(ends)

    def to_dict(self) -> dict[str, Any]:
        """The form for TOML and JSON."""
        own = {f.name: getattr(self, f.name) for f in fields(self)[1:] if getattr(self, f.name) != f.default}
        return own | self.distribution.to_dict()

    def __repr__(self) -> str:
        if self.operation == "absolute":
            return f"Rule({self.distribution!r}, shared=True)" if self.shared else repr(self.distribution)
        return f"{self.operation.capitalize()}({self.distribution!r}{', shared=True' if self.shared else ''})"


def Scale(distribution: Any, *, shared: bool = False) -> Rule:  # noqa: N802  reads as a type where users write it
    """The nominal value times a draw: ``Scale(Uniform(0.8, 1.2))``, or ``Scale((0.8, 1.2))``.

    Args:
        distribution: Of the factor; a pair means ``Uniform``, a number a constant.
        shared: Whether a pattern such as ``geom_friction:*foot`` draws one factor for all that it matches.
    """
    return Rule(distribution, "scale", shared)


def Add(distribution: Any, *, shared: bool = False) -> Rule:  # noqa: N802  as Scale
    """The nominal value plus a draw: ``Add(Normal(0, 1, low=-2, high=2))``, or ``Add((-2, 2))``.

    Args:
        distribution: Of the summand; a pair means ``Uniform``, a number a constant.
        shared: See ``Scale``.
    """
    return Rule(distribution, "add", shared)


@dataclass(frozen=True)
class Correlation:
    """Correlation of some parameters' normal scores (a Gaussian copula); each keeps its own distribution.

    The first parameter keeps the draws that it would have without correlation; the others follow it. It links draws
    before Scale and Add apply, so a Scale of a negative nominal value reverses its sign. The values of a Choice are
    ranked in their order.
    """

    names: tuple[str, ...]  # of the parameters, in the order of the matrix
    matrix: tuple[tuple[float, ...], ...]  # symmetric, ones on the diagonal, positive definite

    def __post_init__(self) -> None:
        try:
            matrix = np.asarray(self.matrix).astype(np.float64, casting="same_kind")  # refuses text
            names = tuple(str(name) for name in self.names)
        except (TypeError, ValueError, OverflowError):
            raise RandomizationError(f"Correlation: expected names and a matrix of numbers, got {self!r}.") from None
        if isinstance(self.names, str) or matrix.shape != (len(names), len(names)) or not names:
            raise RandomizationError(
                f"Correlation: expected a {len(names)} x {len(names)} matrix for {names}, got shape {matrix.shape}."
            )
        if len(set(names)) != len(names):
            raise RandomizationError(f"Correlation: expected each name once, got {names}.")
        if not (np.isfinite(matrix).all() and np.allclose(matrix, matrix.T) and np.allclose(np.diag(matrix), 1.0)):
            raise RandomizationError(
                "Correlation: expected a symmetric matrix of finite numbers with ones on the diagonal, "
                f"got {matrix.tolist()}."
            )
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < 1e-10:
            raise RandomizationError(
                f"Correlation: expected a positive definite matrix, got {matrix.tolist()} with smallest eigenvalue "
                f"{smallest:.3g}. Move the correlations closer to 0, or leave a dependent parameter out."
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "matrix", tuple(tuple(float(v) for v in row) for row in matrix))

    def without(self, names: Collection[str]) -> Correlation | None:
        """The correlation of the other parameters; None if there are none."""
        kept = [k for k, name in enumerate(self.names) if name not in names]
        matrix = tuple(tuple(self.matrix[i][j] for j in kept) for i in kept)
        return Correlation(tuple(self.names[k] for k in kept), matrix) if kept else None

    @cached_property
    def cholesky(self) -> Array:
        """Lower triangular factor, shape ``(len(names), len(names))``."""
        return np.linalg.cholesky(np.asarray(self.matrix))


CORRELATION = "correlation"  # key of the form for files, beside the names of parameters


@dataclass(frozen=True, init=False, repr=False)
class Randomization(Mapping[str, Rule]):
    """Which parameters vary and how: a frozen, hashable mapping of names to rules.

    All other parameters keep their nominal values. An environment adds rules for switches that the parameters need.
    """

    rules: tuple[tuple[str, Rule], ...]  # sorted by name, so that equal randomizations compare equal
    correlation: Correlation | None

    def __init__(self, rules: Mapping[str, Any] | None = None, *, correlation: Any = None) -> None:
        """Reads rules in any of the forms that users write.

        Args:
            rules: name -> ``Distribution``, ``Scale(...)``, ``Add(...)``, a pair (Uniform), a number (Constant), a
                table as in TOML files, or a string as on the command line.
            correlation: A ``Correlation`` or a mapping with ``names`` and ``matrix``.

        Raises:
            RandomizationError: A rule or the correlation is impossible.
            UnknownNameError: A distribution or field is unknown.
        """
        if rules is not None and not isinstance(rules, Mapping):
            raise RandomizationError(f"Expected a mapping of parameter names to distributions, got {rules!r}.")
        read = {}
        for name, rule in (rules or {}).items():
            if not isinstance(name, str):
                raise RandomizationError(f"Expected parameter names, got {name!r}.")
            if name == CORRELATION:
                raise RandomizationError(f"Expected parameter names, got {name!r}. Pass it as {name}=....")
            with located(f"Parameter {name!r}"):
                read[name] = as_rule(rule)
        object.__setattr__(self, "rules", tuple(sorted(read.items())))
        object.__setattr__(self, "correlation", _as_correlation(correlation, read))

    def __getitem__(self, name: str) -> Rule:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Rule]:
        return dict(self.rules)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        rules = ", ".join(f"{name!r}: {rule!r}" for name, rule in self.rules)
        return f"Randomization({{{rules}}}{f', correlation={self.correlation!r}' if self.correlation else ''})"

    def without(self, names: Collection[str]) -> Randomization:
        """The same without some parameters."""
        rules = {name: rule for name, rule in self.rules if name not in names}
        return Randomization(rules, correlation=self.correlation and self.correlation.without(names))

    def to_dict(self) -> dict[str, Any]:
        """The form for TOML and JSON; ``Randomization.from_dict`` restores an equal one."""
        form: dict[str, Any] = {name: rule.to_dict() for name, rule in self.rules}
        if self.correlation is not None:
            matrix = [list(row) for row in self.correlation.matrix]
            form["correlation"] = {"names": list(self.correlation.names), "matrix": matrix}
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Randomization:
        """Reads the form that ``to_dict`` or ``dataclasses.asdict`` writes, or a handwritten one.

        The latter may have tuples, numbers and strings.
        """
        pairs = form.get("rules")
        if (
            set(form) == {"rules", CORRELATION}
            and isinstance(pairs, list | tuple)
            and all(isinstance(p, list | tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs)
        ):
            return cls(dict(pairs), correlation=form[CORRELATION])  # Gymnasium's specs use ``asdict``
        rules = {name: rule for name, rule in form.items() if name != CORRELATION}
        return cls(rules, correlation=form.correlation if isinstance(form, Randomization) else form.get(CORRELATION))


def _as_correlation(value: Any, rules: Mapping[str, Rule]) -> Correlation | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        if set(value) != {"names", "matrix"}:
            raise RandomizationError(
                f"Correlation: expected the fields names and matrix, got {sorted(map(str, value))}."
            )
        value = Correlation(value["names"], value["matrix"])
    if not isinstance(value, Correlation):
        raise RandomizationError(f"Expected a Correlation or a table with names and matrix, got {value!r}.")
    for name in value.names:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in rules):  # as body_mass:* stands for several
            check_known("parameter in the correlation (it must be randomized):", name, rules)
    return value


def as_rule(value: Any) -> Rule:
    """Reads a rule in any of the forms that users write (see ``Randomization``)."""
    if isinstance(value, Rule):
        return value
    if isinstance(value, Distribution):
        return Rule(value)
    if isinstance(value, str):
        return parse_rule(value)
    if isinstance(value, Mapping):
        form = dict(value)
        operation, shared = form.pop("operation", "absolute"), form.pop("shared", False)
        nested = set(form) == {"distribution"} and isinstance(form["distribution"], Mapping)  # from ``asdict``
        return Rule(distribution_from_dict(form["distribution"] if nested else form), operation, shared)
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy or torch; None if it is masked
    if isinstance(value, int | float | np.floating):
        return Rule(Constant(value if isinstance(value, int) else float(value)))
    if isinstance(value, tuple | list) and len(value) == 2:
        return Rule(Uniform(*value))
    raise RandomizationError(
        "expected a distribution, Scale(...), Add(...), a pair (low, high), a number, a table with a 'distribution' "
        f"field or text such as 'uniform:-12:-2', got {value!r}."
    )


def parse_rule(text: str) -> Rule:
    """Reads the command line's form: ``-12:-2``, ``scale:normal:1:0.1:0.8:1.2``, ``choice:1,2,3``, ``-9.8``.

    ``shared:`` before it lets a pattern of names draw one value for all.
    Fields follow the distribution's name in the order of its constructor; commas separate the items of a list. Two
    numbers alone are the ends of a uniform distribution.

    Raises:
        RandomizationError: The text is malformed.
        UnknownNameError: There is no such distribution.
    """
    head, *rest = text.strip().split(":")
    shared, operation = head == "shared" and bool(rest), "absolute"
    if shared:
        head, *rest = rest
    if head in ("scale", "add", "absolute") and rest:
        operation, head, rest = head, rest[0], rest[1:]
    if not rest and (number := _read_number(head)) is not None:
        return Rule(Constant(number), operation, shared)
    if _read_number(head) is not None:
        if len(rest) != 1:
            raise RandomizationError(f"expected a number, LOW:HIGH or DISTRIBUTION:..., got {text!r}.")
        head, rest = "uniform", [head, *rest]
    if "," in head:
        raise RandomizationError(f"expected LOW:HIGH such as -11:-5, or choice:1,2,3, got {text!r}.")
    check_known("distribution", head, DISTRIBUTIONS)
    cls = DISTRIBUTIONS[head]
    known = [f for f in fields(cls) if f.init]
    needed = sum(f.default is MISSING for f in known)
    if not needed <= len(rest) <= len(known):
        usage = ":".join([head, *(f.name.upper() if f.default is MISSING else f"[{f.name.upper()}]" for f in known)])
        raise RandomizationError(f"expected {usage}, got {text!r}.")
    return Rule(cls(*(_read_field(f.name, part) for f, part in zip(known, rest, strict=False))), operation, shared)


def _read_field(name: str, text: str) -> Any:
    if name in ("values", "probabilities"):
        return tuple(_read_field("", part) for part in text.split(","))
    if name == "method":
        return text
    number = _read_number(text)
    if number is None:
        raise RandomizationError(f"expected a number, got {text!r}.")
    return number


def _read_number(text: str) -> float | None:
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text)
    except ValueError:
        return None
