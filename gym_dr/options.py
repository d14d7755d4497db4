"""Documented fields of configuration dataclasses, and checks of their values.

The fields of an algorithm or a sampler become command-line options and settings in files.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Sequence
from typing import Any

from gym_dr.errors import ConfigError, unknown_name


def option(default: Any, help: str, choices: Sequence[str] = ()) -> Any:
    """A documented configuration field; it becomes a command-line option with this help text.

    Args:
        default: Value if none is given.
        help: One line of help.
        choices: All allowed values, if there are only a few; ``check_choices`` enforces them.
    """
    return dataclasses.field(default=default, metadata={"help": help, "choices": tuple(choices)})


def check_choices(config: Any) -> None:
    """Checks the fields of a configuration that have ``choices``.

    Raises:
        UnknownNameError: A value is not among the choices.
    """
    for field in dataclasses.fields(config):
        known, value = field.metadata.get("choices"), getattr(config, field.name)
        if known and value not in known:
            raise unknown_name(field.name, value, known)


def is_whole(value: object) -> bool:
    """Whether a value given in Python is a whole number."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value given in Python is a finite real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def expect(good: bool, name: str, expected: str, got: object) -> None:
    """Checks one field of a configuration.

    Raises:
        ConfigError: ``good`` is false; the message says what was expected.
    """
    if not good:
        raise ConfigError(f"{name}: expected {expected}, got {got!r}.")
