"""Messages at the command line: Python arguments are shown as options."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import warnings
from collections.abc import Iterator
from typing import Any

from gym_dr.errors import RandomizationWarning, say

# arguments whose options have other names
OPTIONS = {"loggers": "log", "references": "reference", "policies": "policy", "params": "set"}

_ARGUMENT = re.compile(r"`([a-z]\w*)(?:=([^`]+))?`")  # as messages name an argument, alone or with a value


def option(argument: str) -> str:
    """The option that sets an argument: ``run_dir`` -> ``--run-dir``."""
    return f"--{OPTIONS.get(argument, argument).replace('_', '-')}"


def as_typed(message: str) -> str:
    """A message with options in place of its arguments in backticks.

    Example:
        >>> as_typed("Leave out `run_dir`, or add `overwrite=True` or `trust=['a', 'b']`.")
        'Leave out --run-dir, or add --overwrite or --trust a --trust b.'
    """
    return _ARGUMENT.sub(lambda found: _typed(*found.groups()), message)


def _typed(argument: str, text: str | None) -> str:
    if text is None:
        return option(argument)
    try:
        value: Any = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = ...
    if value is ...:  # a placeholder, such as LOW:HIGH
        return f"{option(argument)} {text}"
    if isinstance(value, bool):
        return option(argument if value else f"no_{argument}")
    if isinstance(value, dict):  # the option is repeated for each item
        return " ".join(f"{option(argument)} {shlex.quote(f'{name}={one}')}" for name, one in value.items())
    if isinstance(value, tuple):  # one option for all items
        return f"{option(argument)} {','.join(map(str, value)) or shlex.quote('')}"
    items = value if isinstance(value, list) else [value]
    return " ".join(f"{option(argument)} {shlex.quote(str(item))}" for item in items)


@contextlib.contextmanager
def short_warnings() -> Iterator[None]:
    """Shows each warning in the block once, as a line: environments are made more than once."""
    shown = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if (text := as_typed(str(message))) not in shown:
            shown.add(text)
            say(f"Warning: {text}")

    with warnings.catch_warnings():
        # not "once": Python forgets what it has shown when a filter changes, as happens in the block
        warnings.simplefilter("always", RandomizationWarning)
        warnings.showwarning = show
        yield
