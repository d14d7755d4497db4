"""Documented fields of configuration dataclasses, and checks of their values.

What has such fields, an algorithm or a sampler, has them as options of the command line and as settings of files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gym_dr.errors import ConfigError, unknown_name


def option(default: Any, help: str, choices: Sequence[str] = ()) -> Any:
    """A documented field of a configuration; it becomes a command-line option with this help.

    Args:
        default: Its value if none is given.
        help: What it is.
        choices: All values that it may have, where these are few; ``check_choices`` holds it to them.
    """
    return dataclasses.field(default=default, metadata={"help": help, "choices": tuple(choices)})


def check_choices(config: Any) -> None:
    """Checks the fields of a configuration that have ``choices``.

    Raises:
        UnknownNameError: One has another value.
    """
    for field in dataclasses.fields(config):
        known, value = field.metadata.get("choices"), getattr(config, field.name)
        if known and value not in known:
            raise unknown_name(field.name, value, known)


def expect(good: bool, name: str, expected: str, got: object) -> None:
    """Checks one field of a configuration.

    Raises:
        ConfigError: It is not good; the message says what was expected.
    """
    if not good:
        raise ConfigError(f"{name}: expected {expected}, got {got!r}.")
