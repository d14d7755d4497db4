"""How messages word numbers and names, and how they are shown."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from gym_dr.errors import printable


def say(text: str, end: str = "\n") -> None:
    """Shows a line on standard error, which may be None, closed, or an object with nothing but ``write``.

    With a carriage return as its end, the next line replaces it on a terminal, and nothing is shown elsewhere.
    """
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if end == "\n" or sys.stderr.isatty():
            sys.stderr.write(f"{printable(text)}{end}")
            sys.stderr.flush()


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is 1: ``1 core``, ``1,200 episodes``."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names separated by commas; "and N more" replaces those beyond ``most``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def percent(share: float) -> str:
    """A share with two digits, or with all before the point: ``0.12 %``, ``12 %``, ``1,200 %``."""
    value = 100.0 * share
    return f"{value:,.0f} %" if abs(value) >= 99.5 else f"{value:.2g} %"


def exact_text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))
