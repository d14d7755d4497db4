"""Names for files that are being written."""

from __future__ import annotations

import secrets
from pathlib import Path

UNFINISHED = ".gym_dr.tmp"  # ends the name of what is being written


def temporary_beside(path: Path, suffix: str = UNFINISHED) -> Path:
    """A new name beside a path, which no other thread takes, nor another machine on a shared disk."""
    return path.with_name(f".{path.name[:32]}.{secrets.token_hex(8)}{suffix}")
