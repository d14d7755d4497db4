"""What to write instead where numba cannot compile a function of equations."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from gym_dr.envs.equations.checks import line_of
from gym_dr.envs.equations.equations import Equations
from gym_dr.errors import EquationsError, shortened

_GENERAL = "Use numbers, named tuples, if, for and while, the functions of math, and other functions like these."

# what numba says -> what to write instead; the first that fits
_ADVICE = (
    (r"exception_match|try|except", "Instead of try, test before: x / m if m != 0.0 else 0.0."),
    (r"[Cc]an't unify|[Cc]annot unify", "Make numbers of one type on every path: 0.0 rather than 0, and never None."),
    (r"OptionalType|none\b", "Give each variable a number on every path, such as 0.0 or nan, never None."),
    (r"'_\w+' of type", "Write all fields out: State(s.x + 1.0, s.v)."),
    (r"attribute '(\w+)' of type Module\(<module '(?:math|numpy)'", r"Numba has no \1: use other functions of math."),
    (r"attribute '(\w+)' of type Module\(<module '([\w.]+)'", r"Import it by its name: from \2 import \1."),
    (r"NameError: name '(\w+)'", r"Define or import \1 at the top of the file."),
    (r"Untyped global name '(\w+)'|assigned to variable '(\w+)'", r"Make \1\2 a number, a tuple or a function."),
    (r"yield|closure|generator", "Write the sum or the loop out, without a comprehension."),
    (r"context manager|\bwith\b", "Leave the with statement out."),
    (r"f-string|unicode|str\b", "Leave text out."),
    (r"Function\(<(?:function|ufunc) '?(\w+)", r"Numba has no such \1: use min, max, abs and functions of math."),
    (r"array|list\(|\*args|NRT", "Make no lists or arrays: use numbers and write all fields of a named tuple out."),
)  # fmt: skip


def diagnosis(equations: Equations, error: Exception) -> EquationsError:
    """The error of the user's function and line, with advice, in place of numba's.

    Args:
        equations: That numba could not compile.
        error: What it raised.
    """
    said = str(error)
    reasons = (line.strip(" .:") for line in said.splitlines() if not line.startswith("Failed in "))
    reason = next(filter(None, reasons), type(error).__name__)
    function, line = _guilty(equations, said)
    where = line_of(function.__code__.co_filename, line) if function else "one of their functions"
    name = f"{function.__name__} at " if function else ""
    advice = next((match.expand(text) for pattern, text in _ADVICE if (match := re.search(pattern, said))), _GENERAL)
    return EquationsError(
        f"Equations {equations.name!r}: numba cannot compile {name}{where}: {shortened(reason)[1:-1]}. {advice}"
    )


def _guilty(equations: Equations, said: str) -> tuple[FunctionType | None, int]:
    """The function, and its line, of which numba speaks first."""
    functions = list(dict.fromkeys(_all_of(equations)))
    for file, number in re.findall(r"([^\s\"(]+\.py|<[^>\s]+>)\"?(?:, line | \()(\d+)", said):
        for function in functions:
            lines = [line for _, _, line in function.__code__.co_lines() if line is not None]
            if Path(function.__code__.co_filename).name == Path(file).name and int(number) in lines:
                return function, int(number)
    for function in functions:
        for instruction in dis.get_instructions(function):
            if instruction.opname == "BEFORE_WITH" and instruction.positions is not None:
                return function, instruction.positions.lineno or function.__code__.co_firstlineno
    named = re.findall(r"<function (\w+) at", said)
    for function in functions:
        if function.__name__ in named[:1]:
            return function, function.__code__.co_firstlineno
    return None, 0


def _all_of(equations: Equations) -> Iterator[FunctionType]:
    """The functions of equations, after those that they call."""
    for function in (equations.derive, equations.begin, equations.step, equations.observe):
        yield from _with_called(function)


def _with_called(function: Any) -> Iterator[FunctionType]:
    if isinstance(function, FunctionType):
        for name in function.__code__.co_names:
            yield from _with_called(function.__globals__.get(name))
        yield function
