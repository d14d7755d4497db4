"""Rules: a distribution and an operation give a parameter its value. Reads every form that users write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError, check_known
from gym_dr.randomization.distributions import DISTRIBUTIONS, Constant, Distribution, Uniform, distribution_from_dict


@dataclass(frozen=True)
class Rule:
    """How a parameter gets its value: the draw itself, or the draw applied to the nominal value."""

    distribution: Distribution
    operation: str = "absolute"  # "absolute": the draw; "scale": nominal x draw; "add": nominal + draw

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, Distribution):
            inner = as_rule(self.distribution)
            if inner.operation != "absolute":
                raise RandomizationError(f"expected a distribution inside Scale, Add or Rule, got {inner!r}.")
            object.__setattr__(self, "distribution", inner.distribution)
        check_known("operation", self.operation, ("absolute", "scale", "add"))

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
        form = self.distribution.to_dict()
        return form if self.operation == "absolute" else {"operation": self.operation, **form}

    def __repr__(self) -> str:
        if self.operation == "absolute":
            return repr(self.distribution)
        return f"{self.operation.capitalize()}({self.distribution!r})"


def Scale(distribution: Any) -> Rule:  # noqa: N802  reads as a type where users write it, beside Uniform
    """The nominal value times a draw: ``Scale(Uniform(0.8, 1.2))``, or ``Scale((0.8, 1.2))``.

    Args:
        distribution: Of the factor; a pair means ``Uniform``, a number a constant.
    """
    return Rule(distribution, "scale")


def Add(distribution: Any) -> Rule:  # noqa: N802  as Scale
    """The nominal value plus a draw: ``Add(Normal(0, 1, low=-2, high=2))``, or ``Add((-2, 2))``.

    Args:
        distribution: Of the summand; a pair means ``Uniform``, a number a constant.
    """
    return Rule(distribution, "add")


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
    """Reads the command line's form: ``-12:-2``, ``scale:normal:1:0.1:0.8:1.2``, ``choice:1,2,3``, ``-9.8``.

    Fields follow the distribution's name in the order of its constructor; commas separate the items of a list. Two
    numbers alone are the ends of a uniform distribution.

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
    if _read_number(head) is not None:
        if len(rest) != 1:
            raise RandomizationError(f"expected a number, LOW:HIGH or DISTRIBUTION:..., got {text!r}.")
        head, rest = "uniform", [head, *rest]
    check_known("distribution", head, DISTRIBUTIONS)
    cls = DISTRIBUTIONS[head]
    if head == "mixture":
        raise RandomizationError(
            "a mixture cannot be written as one text; put it in a file, or in Python use gym_dr.Mixture."
        )
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
