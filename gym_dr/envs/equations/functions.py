"""Checks of the functions of equations, and calls of them in Python whose errors name the user's lines."""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.equations.equations import Equations
from gym_dr.envs.family import takes_arguments
from gym_dr.errors import EquationsError, shortened

# a user's line, and a function, in numba's errors
_LINE = re.compile(r'(?:^File "|Raised from )([^"<\n]+?)"?(?:, line | \()(\d+)', re.MULTILINE)
_FUNCTION = re.compile(r"CPUDispatcher\(<function (?:\S+\.)?(\S+) at")
_AFTER_THE_REASON = ("There are ", "File ", "During: ", "Return of")
_KERNELS = Path(__file__).with_name("kernels.py")


def check_function(name: str, function: Any, arguments: str) -> None:
    """Checks that an object is a plain function of these arguments.

    Args:
        name: Its role: "step".
        function: The object.
        arguments: Those it must take: "c, state, action".

    Raises:
        EquationsError: It is something else.
    """
    if not isinstance(function, FunctionType):
        raise EquationsError(f"expected a function {name}({arguments}), made with def or lambda, got {function!r}.")
    if not takes_arguments(function, len(arguments.split(","))):
        more = ", where w is its process noise," if arguments.endswith("w") else ""
        raise EquationsError(
            f"expected {name}({arguments}){more} at {place_of(function)}, got {name}{inspect.signature(function)}."
        )


def called(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    """What a function returns.

    Raises:
        EquationsError: It raised an error; the message says where.
    """
    try:
        return function(*arguments)
    except Exception as error:
        *outer, last = traceback.extract_tb(error.__traceback__)
        where = line_of(last.filename, last.lineno or 0) if outer else place_of(function)  # it was not even called
        values = ", ".join(shortened(argument) for argument in arguments)
        raise EquationsError(
            f"{name} failed with {type(error).__name__}: {error}, at {where}, called with {values}."
        ) from error


def not_compiled(equations: Equations, error: Exception) -> EquationsError:
    """The error for equations that numba cannot compile, with the user's function, file and line.

    Args:
        equations: The equations.
        error: What numba raised.
    """
    said = str(error)
    innermost = _FUNCTION.search(said)
    name = innermost[1] if innermost else "a function"
    own = {each.__name__: each for each in (equations.derive, equations.begin, equations.step, equations.observe)}
    places = [line_of(file, int(line)) for file, line in _LINE.findall(said) if Path(file).resolve() != _KERNELS]
    places += [place_of(own[name])] if name in own else []
    where = f" at {places[0]}" if places else ""
    lines = [line.strip() for line in said.splitlines() if not line.startswith("Failed in ")]
    reason = " ".join(takewhile(lambda line: not line.startswith(_AFTER_THE_REASON), lines)).strip(" .")
    return EquationsError(
        f"Equations {equations.name!r}: numba cannot compile {name}{where}: {shortened(reason)[1:-1]}. Use numbers, "
        "named tuples, if, for and while, the functions of math, and other functions like these."
    )


def check_numbers(name: str, function: Any, found: Any, fields: Sequence[str] | None = None) -> Array:
    """The numbers of a named tuple.

    Args:
        name: Name of the function.
        function: The function that returned ``found``.
        found: Should be a named tuple.
        fields: The expected names; None for any.

    Raises:
        EquationsError: It is something else, or a field is not a number.
    """
    own = getattr(found, "_fields", None)
    if not own or (fields is not None and own != fields):
        expected = f"a named tuple of {', '.join(fields)}" if fields is not None else "a named tuple of numbers"
        raise EquationsError(f"expected {name} at {place_of(function)} to return {expected}, got {shortened(found)}.")
    for field, value in zip(own, found, strict=True):
        if not isinstance(value, int | float | np.number | np.bool_):
            raise EquationsError(
                f"expected {name} at {place_of(function)} to return numbers, got {field} = {shortened(value)}."
            )
    return np.array(found, np.float64)


def place_of(function: Any) -> str:
    """File and line of a function."""
    code = getattr(function, "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else repr(function)


def line_of(file: str, number: int) -> str:
    """File, line and its text."""
    text = linecache.getline(file, number).strip()
    return f"{Path(file).name}:{number}" + (f" `{text}`" if text else "")
