"""What the user lets vary: parameter name -> distribution and operation, with correlations if wanted.

Everything a user may write (Python objects, tuples, numbers, TOML or JSON tables, ``name=uniform:-12:-2`` on the
command line) becomes a ``Randomization`` here, and is checked against a ``ParamSpace`` here.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import ConfigError, RandomizationError, RandomizationWarning, UnknownNameError, unknown_name
from gym_dr.randomization.distributions import (
    DISTRIBUTIONS,
    Constant,
    Distribution,
    Uniform,
    distribution_from_dict,
)
from gym_dr.randomization.space import Param, ParamSpace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Array = npt.NDArray[np.float64]

MAX_FILE = 2**22  # bytes of a configuration


@dataclass(frozen=True)
class Rule:
    """How one parameter gets its value: a draw itself, or a draw applied to the nominal value."""

    distribution: Distribution
    operation: str = "absolute"  # "absolute": the draw; "scale": nominal x draw; "add": nominal + draw

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, Distribution):
            inner = as_rule(self.distribution)
            if inner.operation != "absolute":
                raise RandomizationError(f"expected a distribution inside of Scale, Add or Rule, got {inner!r}.")
            object.__setattr__(self, "distribution", inner.distribution)
        if self.operation not in ("absolute", "scale", "add"):
            raise unknown_name("operation", self.operation, ("absolute", "scale", "add"))

    def apply(self, nominal: float, drawn: npt.ArrayLike) -> Array:
        """The parameter's values for the drawn numbers; always from nominal, so nothing drifts."""
        drawn = np.asarray(drawn, dtype=np.float64)
        if self.operation == "scale":
            return nominal * drawn
        return nominal + drawn if self.operation == "add" else drawn

    def support(self, nominal: float) -> tuple[float, float]:
        """Smallest and largest value that the parameter can get."""
        ends = [self._at(nominal, end) for end in self.distribution.support]
        return min(ends), max(ends)

    def _at(self, nominal: float, drawn: float) -> float:
        if self.operation == "scale":
            return nominal * drawn if nominal else 0.0  # 0 x infinity is 0 here
        return nominal + drawn if self.operation == "add" else drawn

    def to_dict(self) -> dict[str, Any]:
        """The form for TOML and JSON."""
        form = self.distribution.to_dict()
        return form if self.operation == "absolute" else {"operation": self.operation, **form}

    def __repr__(self) -> str:
        if self.operation == "absolute":
            return repr(self.distribution)
        return f"{self.operation.capitalize()}({self.distribution!r})"


def Scale(distribution: Any) -> Rule:  # noqa: N802  reads as a type where users write it, beside Uniform
    """The nominal value times a draw: ``Scale(Uniform(0.8, 1.2))``, or ``Scale((0.8, 1.2))``."""
    return Rule(distribution, "scale")


def Add(distribution: Any) -> Rule:  # noqa: N802  as Scale
    """The nominal value plus a draw: ``Add(Normal(0, 1, low=-2, high=2))``, or ``Add((-2, 2))``."""
    return Rule(distribution, "add")


@dataclass(frozen=True)
class Correlation:
    """Correlation of the normal scores of some parameters (a Gaussian copula), which keeps each one's distribution.

    The first name keeps the draws that it would have without correlation; later ones follow it.
    """

    names: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]  # symmetric, ones on the diagonal, positive definite

    def __post_init__(self) -> None:
        try:
            matrix = np.asarray(self.matrix, dtype=np.float64)
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
                f"{smallest:.3g}. Bring the correlations nearer to 0, or leave out a parameter that follows."
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "matrix", tuple(tuple(float(v) for v in row) for row in matrix))

    @cached_property
    def cholesky(self) -> Array:
        """Lower triangular factor, shape ``(len(names), len(names))``."""
        return np.linalg.cholesky(np.asarray(self.matrix))


@dataclass(frozen=True, init=False, repr=False)
class Randomization(Mapping[str, Rule]):
    """Which parameters vary and how; a frozen, hashable mapping of names to rules.

    Parameters that it does not name keep their nominal value.
    """

    rules: tuple[tuple[str, Rule], ...]  # sorted by name, so that equal randomizations compare equal
    correlation: Correlation | None

    def __init__(self, rules: Mapping[str, Any] | None = None, *, correlation: Any = None) -> None:
        """Reads rules in any of the forms that users write.

        Args:
            rules: name -> ``Distribution``, ``Scale(...)``, ``Add(...)``, a 2-tuple (Uniform), a number (Constant), a
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
            if name == "correlation":  # files keep the correlation under that name
                raise RandomizationError("Expected parameter names, got 'correlation', which is a keyword of its own.")
            try:
                read[name] = as_rule(rule)
            except (RandomizationError, UnknownNameError) as error:
                raise type(error)(f"Parameter {name!r}: {error}") from None
        object.__setattr__(self, "rules", tuple(sorted(read.items())))
        object.__setattr__(self, "correlation", _as_correlation(correlation, read))

    def __getitem__(self, name: str) -> Rule:
        return dict(self.rules)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        rules = ", ".join(f"{name!r}: {rule!r}" for name, rule in self.rules)
        correlation = f", correlation={self.correlation!r}" if self.correlation else ""
        return f"Randomization({{{rules}}}{correlation})"

    def to_dict(self) -> dict[str, Any]:
        """The form for TOML and JSON; ``Randomization.from_dict`` gives an equal one back."""
        form: dict[str, Any] = {name: rule.to_dict() for name, rule in self.rules}
        if self.correlation is not None:
            matrix = [list(row) for row in self.correlation.matrix]
            form["correlation"] = {"names": list(self.correlation.names), "matrix": matrix}
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Randomization:
        """Reads the form that ``to_dict`` writes, or one written by hand with tuples, numbers and strings."""
        rules = {name: rule for name, rule in form.items() if name != "correlation"}
        return cls(rules, correlation=form.get("correlation"))

    @classmethod
    def from_file(cls, path: str | Path) -> Randomization:
        """Reads a TOML or JSON file, either the rules themselves or with them in a table ``randomization``.

        Raises:
            ConfigError: The file cannot be read or is not TOML or JSON.
            RandomizationError: What it says is impossible.
        """
        form = read_table(path)
        inner = form.get("randomization", form)
        if not isinstance(inner, Mapping):
            raise ConfigError(f"{path}: expected a table of parameters, got {inner!r}.")
        try:
            return cls.from_dict(inner)
        except (RandomizationError, UnknownNameError) as error:
            raise type(error)(f"{path}: {error}") from None

    def check(self, space: ParamSpace) -> None:
        """Checks every rule against the parameters that there are.

        Raises:
            UnknownNameError: A parameter is unknown.
            RandomizationError: A rule can give a value outside the parameter's bounds or of the wrong kind.

        Warns:
            RandomizationWarning: The nominal value of a parameter cannot be drawn.
        """
        for name, rule in self.rules:
            _check_rule(space[name], rule)


def read_table(path: str | Path) -> dict[str, Any]:
    """Reads a TOML file, or a JSON file if its name ends so.

    Raises:
        ConfigError: The file is missing, cannot be read or is malformed; the message names it.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:  # it may be a pipe, whose size is not known before
            content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise OSError(f"it is larger than {MAX_FILE} bytes")
        text = content.decode("utf-8-sig")  # some editors of Windows begin files with a mark
        table = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:  # of UTF-8, of JSON or TOML, or a number with too many digits
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError(f"{path}: is not a valid {kind} file: {error}.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: expected a table at the top, got {type(table).__name__}.")
    return table


def as_rule(value: Any) -> Rule:
    """Reads one rule in any of the forms that users write (see ``Randomization``)."""
    if isinstance(value, Rule):
        return value
    if isinstance(value, Distribution):
        return Rule(value)
    if isinstance(value, str):
        return parse_rule(value)
    if isinstance(value, Mapping):
        form = dict(value)
        operation = form.pop("operation", "absolute")
        return Rule(distribution_from_dict(form), operation)
    if isinstance(value, bool | int | float | np.integer | np.floating | np.bool_):
        return Rule(Constant(value if isinstance(value, int) else float(value)))
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return as_rule(value.item())
    if isinstance(value, tuple | list | np.ndarray) and len(value) == 2:
        return Rule(Uniform(*value))
    raise RandomizationError(
        "expected a distribution, Scale(...), Add(...), a pair (low, high), a number, a table with a 'distribution' "
        f"field or text such as 'uniform:-12:-2', got {value!r}."
    )


def parse_rule(text: str) -> Rule:
    """Reads the command line's form: ``uniform:-12:-2``, ``scale:normal:1:0.1:0.8:1.2``, ``choice:1,2,3``, ``-9.8``.

    Fields follow the distribution's name in the order of its constructor; lists are separated by commas.

    Raises:
        RandomizationError: The text is malformed.
        UnknownNameError: There is no such distribution.
    """
    head, *rest = text.strip().split(":")
    operation = "absolute"
    if head in ("scale", "add", "absolute") and rest:
        operation, head, rest = head, rest[0], rest[1:]
    if not rest and (number := _read_number(head)) is not None:
        return Rule(Constant(number), operation)
    if head not in DISTRIBUTIONS:
        raise unknown_name("distribution", head, DISTRIBUTIONS)
    cls = DISTRIBUTIONS[head]
    if head == "mixture":
        raise RandomizationError("a mixture cannot be written on the command line; put it into a file.")
    known = fields(cls)
    needed = sum(f.default is MISSING for f in known)
    if not needed <= len(rest) <= len(known):
        usage = ":".join([head, *(f.name.upper() if f.default is MISSING else f"[{f.name.upper()}]" for f in known)])
        raise RandomizationError(f"expected {usage}, got {text!r}.")
    return Rule(cls(*(_read_field(f.name, part) for f, part in zip(known, rest, strict=False))), operation)


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


def _as_correlation(value: Any, rules: Mapping[str, Rule]) -> Correlation | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        if set(value) != {"names", "matrix"}:
            raise RandomizationError(f"Correlation: expected the fields names and matrix, got {sorted(value)}.")
        value = Correlation(value["names"], value["matrix"])
    if not isinstance(value, Correlation):
        raise RandomizationError(f"Expected a Correlation or a table with names and matrix, got {value!r}.")
    for name in value.names:
        if name not in rules:
            raise unknown_name("parameter in the correlation (it must be randomized):", name, rules)
    return value


def _check_rule(param: Param, rule: Rule) -> None:
    low, high = rule.support(param.nominal)
    ends = [abs(end) for end in (param.low, param.high) if math.isfinite(end)]
    slack = 1e-12 * max([1.0, *ends])  # 0.1 x 3 is one ulp above 0.3; ``draw`` clips that
    if not (param.low - slack <= low and high <= param.high + slack):
        unbounded = " Give the distribution bounds (low, high)." if math.isinf(high - low) else ""
        raise RandomizationError(
            f"Parameter {param.name!r}: expected {param.bounds_text()}, "
            f"got {rule!r}, which reaches from {low:g} to {high:g}.{unbounded}"
        )
    if param.kind != "float" and not (rule.distribution.integral and rule.operation != "scale"):
        raise RandomizationError(
            f"Parameter {param.name!r}: expected {param.bounds_text()}, got {rule!r}. "
            "Use Bernoulli, Integer, Choice or Constant with whole numbers."
        )
    if not (low <= param.nominal <= high or low == high):
        warnings.warn(
            f"Parameter {param.name!r}: the nominal value {param.nominal:g} is outside of {rule!r}, "
            "so the unchanged environment is never drawn.",
            RandomizationWarning,
            stacklevel=4,
        )
