"""Traces which files of gym_dr a value passes through while code runs.

A file counts if one of its functions has the value: as an argument, a local variable or what it returns, or one level
inside one of these (an item of a list or a dictionary, an attribute of one of our objects).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from tests.sources import PACKAGE

same_functions = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from 3.12 on, a comprehension is no function that holds the value"
)

_ROOT = str(PACKAGE) + os.sep
_PAGE = PACKAGE.parent / "docs" / "CONTRIBUTING.md"
_MOST = 200  # items that are looked at


@contextlib.contextmanager
def traced(*ways: Way) -> Iterator[None]:
    """Traces values while the block runs."""

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "return") and frame.f_code.co_filename.startswith(_ROOT):
            for way in ways:
                way.note(frame, event == "return", arg)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def described(command: str) -> dict[str, str]:
    """A way as CONTRIBUTING.md describes it: file -> one of its functions."""
    _, block = _PAGE.read_text(encoding="utf-8").split(f"```none\n{command}\n", 1)
    lines = block.split("```", 1)[0].splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


class Way:
    """The way of one value.

    Attributes:
        files: The files below ``gym_dr/`` that it has passed through, in order, each with the functions that had it.
        arrived: Whether it has reached the end of the way.
    """

    def __init__(self, is_it: Callable[[Any], bool], until: str) -> None:
        """Begins with no file.

        Args:
            is_it: Whether an object is the value.
            until: Qualified name of the function that ends the way when it returns, such as "Agent.__init__".
        """
        self.files: dict[str, list[str]] = {}
        self.arrived = False
        self._is_it, self._until = is_it, until

    def note(self, frame: FrameType, returns: bool, returned: Any) -> None:
        """Adds the function that is called, or that returns, if it has the value."""
        if self.arrived:
            return
        file, name = frame.f_code.co_filename.removeprefix(_ROOT), frame.f_code.co_qualname
        function, functions = name.partition(".<locals>")[0], self.files.get(file, [])
        if function not in functions and any(map(self._holds, [*frame.f_locals.values(), returned])):
            self.files[file] = [*functions, function]
        self.arrived = returns and name == self._until and name in self.files.get(file, ())

    def check(self, command: str, most: int) -> None:
        """Checks that the way is short and that CONTRIBUTING.md describes it under ``command``."""
        print(*self.files.items(), sep="\n")  # shown if this fails
        assert self.arrived
        assert len(self.files) <= most
        functions = described(command)
        assert list(functions) == list(self.files)
        assert {file: name for file, name in functions.items() if name not in self.files[file]} == {}

    def _holds(self, value: Any, deeper: bool = True) -> bool:
        if self._is_it(value):
            return True
        inside: list[Any] = []
        if deeper and isinstance(value, dict):
            inside = list(value.values())
        elif deeper and isinstance(value, list | tuple):
            inside = list(value)
        elif deeper and type(value).__module__.startswith("gym_dr."):
            inside = list(getattr(value, "__dict__", {}).values())
        return len(inside) <= _MOST and any(self._holds(one, deeper=False) for one in inside)
