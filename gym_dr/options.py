"""Documented fields of configuration dataclasses, and checks of their values.

The fields of an algorithm or a sampler become command-line options and settings in files.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Union, get_args, get_origin

from gym_dr.errors import ConfigError, check_known, shortened, unknown_name

# ranges of numbers, as messages word them
AT_LEAST_0, AT_LEAST_1, AT_LEAST_2, SHARE = "at least 0", "at least 1", "at least 2", "between 0 and 1"
POSITIVE, NOT_NEGATIVE = "above 0 and finite", "0 or above and finite"
_RANGES: dict[str, Callable[[float], bool]] = {
    AT_LEAST_0: lambda value: value >= 0,
    AT_LEAST_1: lambda value: value >= 1,
    AT_LEAST_2: lambda value: value >= 2,
    SHARE: lambda value: 0.0 <= value <= 1.0,
    POSITIVE: lambda value: 0.0 < value < math.inf,
    NOT_NEGATIVE: lambda value: 0.0 <= value < math.inf,
}


def option(
    default: Any,
    help: str,
    choices: Sequence[str] = (),
    *,
    within: str = "",
    run: str = "",
    continuous: bool = False,
) -> Any:
    """A documented configuration field; it becomes a command-line option with this help text.

    Args:
        default: Value if none is given.
        help: One line of help.
        choices: All allowed values, if they are few; ``check_values`` refuses others.
        within: The allowed range, such as ``POSITIVE``; ``check_values`` refuses other numbers.
        run: For an option that may name another run's folder: its purpose, "weights" to start from or a "teacher" to
            imitate.
        continuous: Whether it is for continuous actions only; a run with discrete ones refuses all but the default.
    """
    known = {"help": help, "choices": tuple(choices), "within": within, "run": run, "continuous": continuous}
    return dataclasses.field(default=default, metadata=known)


def changed(cls: type, name: str, default: Any) -> Any:
    """A field of another configuration, with another default."""
    (field,) = (field for field in dataclasses.fields(cls) if field.name == name)
    return dataclasses.field(default=default, metadata=field.metadata)


def check_values(config: Any) -> None:
    """Checks fields with ``choices`` or a range (``within``), then the ``CHECKS`` of the configuration's class.

    Numbers become Python's (``plain``). Each of the ``CHECKS`` is a function and the names of the fields that it takes.

    Raises:
        UnknownNameError: A value is not among the choices.
        ConfigError: A number is out of its range, or a further check fails.
    """
    for field in dataclasses.fields(config):
        value, known, within = plain(getattr(config, field.name)), *map(field.metadata.get, ("choices", "within"))
        object.__setattr__(config, field.name, value)
        if within:
            expect(_RANGES[within](value), field.name, within, value)
        if known and value != field.default and not field.metadata.get("run"):
            for item in value if isinstance(value, tuple | list) else [value]:
                check_known(field.name, item, known)
    for check, names in getattr(config, "CHECKS", ()):
        check(*(getattr(config, name) for name in names))


def as_json(config: Any) -> dict[str, Any]:
    """The fields of a configuration in JSON form."""
    return {
        name: list(value) if isinstance(value, tuple) else value.to_dict() if hasattr(value, "to_dict") else value
        for name, value in vars(config).items()
    }


def flattened(nested: Mapping[str, Any], separator: str, before: str = "") -> dict[str, Any]:
    """A nested mapping as one, with names that are joined by a separator."""
    found: dict[str, Any] = {}
    for name, value in nested.items():
        inner = flattened(value, separator, f"{before}{name}{separator}") if isinstance(value, Mapping) else None
        found |= {f"{before}{name}": value} if inner is None else inner
    return found


Check = tuple[Callable[..., None], tuple[str, ...]]  # raises ConfigError; takes the fields with these names


class Checked:
    """Base of configurations that check themselves; see ``check_values``."""

    CHECKS: ClassVar[tuple[Check, ...]] = ()

    def __post_init__(self) -> None:
        check_values(self)


def plain(value: Any) -> Any:
    """A number of numpy or torch, also in an array or tensor without dimensions, as Python's; other values as is."""
    return value.tolist() if getattr(value, "ndim", None) == 0 else value


def is_whole(value: object) -> bool:
    """Whether a value given in Python is a whole number."""
    value = plain(value)
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value given in Python is a finite real number."""
    value = plain(value)
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def expect(good: bool, name: str, expected: str, got: object) -> None:
    """Checks one value, such as a field of a configuration.

    Raises:
        ConfigError: ``good`` is false; the message says what was expected.
    """
    if not good:
        raise ConfigError(f"{name}: expected {expected}, got {shortened(got)}.")


hints_of = functools.cache(typing.get_type_hints)  # of a dataclass, which takes a millisecond


def check_fields(cls: type, values: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, Any]:
    """Checks names and types of a dataclass's values; converts lists to tuples and ints to floats where needed.

    Suggestions for an unknown name come from the fields and ``also``.

    Raises:
        UnknownNameError: The dataclass has no such field.
        ConfigError: A value has another type.
    """
    hints = hints_of(cls)
    known = {field.name for field in dataclasses.fields(cls)}
    checked = {}
    for name, value in values.items():
        if name not in known:
            raise unknown_name("setting", name, known.union(also))
        checked[name] = _convert(name, hints[name], value)
    return checked


def _convert(name: str, hint: Any, value: Any) -> Any:
    value = plain(value)
    if get_origin(hint) in (Union, types.UnionType):
        inner = [part for part in get_args(hint) if part is not type(None)]
        if isinstance(value, Mapping) and any(get_origin(part) is Mapping for part in inner):
            return value
        return None if value is None else _convert(name, inner[0], value)
    if get_origin(hint) is tuple:
        if isinstance(value, list | tuple):
            return tuple(_convert(name, get_args(hint)[0], item) for item in value)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        raise ConfigError(f"{name}: expected a number of at most 64 bits, got {value.bit_length()} bits.")
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    expected = "a list" if get_origin(hint) is tuple else getattr(hint, "__name__", str(hint))
    raise ConfigError(f"{name}: expected {expected}, got {shortened(value)}.")
