"""What to write instead where numba cannot compile a function of equations."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from gym_dr.compiled.named import named_by, plain
from gym_dr.envs.equations.equations import Equations
from gym_dr.envs.equations.functions import line_of
from gym_dr.errors import EquationsError, shortened

_GENERAL = "Use numbers, named tuples, if, for and while, the functions of math, and other functions like these."

# what numba says -> what to write instead; the first that fits
_ADVICE = (
    (r"exception_match|\btry\b|\bexcept\b", "Instead of try, test before: x / m if m != 0.0 else 0.0."),
    (r"[Cc]an't unify|[Cc]annot unify", "Make numbers of one type on every path: 0.0 rather than 0, and never None."),
    (r"OptionalType|none\b", "Give each variable a number on every path, such as 0.0 or nan, never None."),
    (r"attribute '_\w+' of type", "Write all fields out: State(s.x + 1.0, s.v)."),
    (r"attribute '(\w+)' of type Module\(<module '(?:math|numpy)'", r"Numba has no \1: use other functions of math."),
    (r"attribute '(\w+)' of type Module\(<module '([\w.]+)'", r"Import it by its name: from \2 import \1."),
    (r"Function\(<(?:function|ufunc) '?(\w+)", r"Numba has no such \1: use min, max, abs and functions of math."),
    (r"attribute '(\w+)' of type", r"If \1 is a method or a property, write it as a function of the fields."),
    (r"NameError: name '(\w+)'", r"Define or import \1 at the top of the file."),
    (r"Untyped global name '(\w+)'|assigned to variable '(\w+)'", r"Make \1\2 a number, a tuple or a function."),
    (r"getitem|index", "Fields are floats: index with int(s.n)."),
    (r"yield|closure|generator", "Write the sum or the loop out, without a comprehension."),
    (r"context manager|'with", "Leave the with statement out."),
    (r"f-string|FORMAT_|unicode|str\b", "Leave text out."),
    (r"array|list\(|\*args|NRT", "Make no lists or arrays: use numbers and write all fields of a named tuple out."),
    (r"bind args|keyword", "Give arguments by position, without defaults."),
    (r"tuple index out of range", "Give named tuples no default values."),
    (r"import", "Import at the top of the file."),
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
    words = _without_code(said)
    advice = next((match.expand(text) for pattern, text in _ADVICE if (match := re.search(pattern, words))), _GENERAL)
    return EquationsError(
        f"Equations {equations.name!r}: numba cannot compile {name}{where}: {shortened(reason)[1:-1]}. {advice}"
    )


def _guilty(equations: Equations, said: str) -> tuple[FunctionType | None, int]:
    """The function, and its line, of which numba speaks first."""
    functions = list(_all_of(equations))
    missing = set(re.findall(r"NameError: name '(\w+)'", said))
    for function in functions if missing else ():
        reads = {each.argval for each in dis.get_instructions(function) if each.opname == "LOAD_GLOBAL"}
        if missing & reads - function.__globals__.keys():
            return function, function.__code__.co_firstlineno
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


def _without_code(said: str) -> str:
    """What numba says, without names of files and the lines of code that it quotes."""
    lines, quoting = [], False
    for line in said.splitlines():
        quoting = (quoting and bool(line.strip())) or line.startswith('File "')
        if not quoting:
            lines.append(re.sub(r"\S*\.py\b|from '[^']*'", "", line))
    return "\n".join(lines)


def _all_of(equations: Equations) -> Iterator[FunctionType]:
    """The functions of equations, after those that they call."""
    seen: set[Any] = set()
    for function in (equations.derive, equations.begin, equations.step, equations.observe):
        yield from _with_called(function, seen)


def _with_called(function: Any, seen: set[Any]) -> Iterator[FunctionType]:
    if isinstance(function, FunctionType) and function not in seen:
        seen.add(function)
        for named in named_by(function):
            yield from _with_called(plain(named.value), seen)
        yield function
