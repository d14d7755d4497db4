"""How messages name what a reader can change: an option of the command line, or a keyword in Python.

Functions below the command line do not know who has called them. ``gym_dr.cli.main`` says so for the time of a command,
and for everybody else messages speak Python.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

_command_line: ContextVar[bool] = ContextVar("command_line", default=False)


def at_command_line() -> bool:
    """Whether the reader of messages has typed a command."""
    return _command_line.get()


@contextlib.contextmanager
def addressing(*, command_line: bool) -> Iterator[None]:
    """Words messages in the block for a reader at the command line, or for one in Python."""
    before = _command_line.set(command_line)
    try:
        yield
    finally:
        _command_line.reset(before)


def either(command_line: str, python: str) -> str:
    """The text for the reader: of what is called differently in Python."""
    return command_line if at_command_line() else python


TYPED = {"loggers": "log", "references": "reference"}  # what is typed shorter at the command line


def flag(name: str) -> str:
    """The option of the command line that sets a field or keyword: ``run_dir`` -> ``--run-dir``."""
    return f"--{TYPED.get(name, name).replace('_', '-')}"


def spelled(name: str, value: object = None) -> str:
    """An option with the same name in both worlds: ``--run-dir`` or ``run_dir``.

    Args:
        name: Its keyword in Python.
        value: A value to give it: ``--on-nan skip`` or ``on_nan='skip'``. A switch is True or False, ``--overwrite`` or
            ``overwrite=True``, ``--no-overwrite`` or ``overwrite=False``; a list has one item for each time that the
            option is typed, ``--trust a --trust b`` or ``trust=['a', 'b']``, and a tuple is typed at once,
            ``--hidden-sizes 8,4`` or ``hidden_sizes=(8, 4)``.
    """
    if value is None:
        return either(flag(name), name)
    if isinstance(value, bool):
        return either(flag(name if value else f"no_{name}"), f"{name}={value}")
    if isinstance(value, tuple):
        typed = ",".join(map(str, value)) or '""'
        return either(f"{flag(name)} {typed}", f"{name}={value!r}")
    items = value if isinstance(value, list) else [value]
    return either(" ".join(f"{flag(name)} {shlex.quote(str(item))}" for item in items), f"{name}={value!r}")


def how_to_resume(path: str | Path, **options: str) -> str:
    """What continues the run, or the runs, in a folder, for the end of a message.

    Args:
        path: The folder.
        **options: Settings to change.
    """
    changes = [spelled(name, value) for name, value in options.items()]
    called = f"gym_dr.load_run({str(path)!r}).resume({', '.join(changes)})"
    return either(" ".join([f"gymdr resume {path}", *changes]), called)


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless there is one: ``1 core``, ``1,200 episodes``."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names separated by commas; "and N more" in place of those that do not fit."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def percent(share: float) -> str:
    """A share with two digits, or with all before the point: ``0.12 %``, ``12 %``, ``1,200 %``."""
    value = 100.0 * share
    return f"{value:,.0f} %" if abs(value) >= 99.5 else f"{value:.2g} %"
