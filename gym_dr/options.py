"""Documented fields of configuration dataclasses, and checks of their values.

What has such fields, an algorithm or a sampler, has them as options of the command line and as settings of files.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from gym_dr.errors import ConfigError


def option(default: Any, help: str) -> Any:
    """A documented field of a configuration; it becomes a command-line option with this help."""
    return dataclasses.field(default=default, metadata={"help": help})


def expect(good: bool, name: str, expected: str, got: object) -> None:
    """Checks one field of a configuration.

    Raises:
        ConfigError: It is not good; the message says what was expected.
    """
    if not good:
        raise ConfigError(f"{name}: expected {expected}, got {got!r}.")
