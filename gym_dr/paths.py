"""Paths that users give, and names for files that are being written."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gym_dr.errors import ConfigError

UNFINISHED = ".gym_dr.tmp"  # ends the name of what is being written


def as_path(given: str | os.PathLike[str]) -> Path:
    """A path as users write it, where ``~`` is the home folder.

    Raises:
        ConfigError: There is no such user, or no home folder.
    """
    try:
        return Path(given).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{os.fspath(given)}: {error}") from None


def temporary_beside(path: Path, suffix: str = UNFINISHED) -> Path:
    """A new name beside a path, which no other thread takes, nor another machine on a shared disk."""
    return path.with_name(f".{path.name[:32]}.{secrets.token_hex(8)}{suffix}")
